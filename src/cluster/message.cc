#include "cluster/message.h"

#include <array>
#include <nlohmann/json.hpp>

#include "cluster/error_code.h"
#include "cluster/message_fields.h"
#include "cluster/named_error.h"
#include "files/json_file.h"

namespace headrace::cluster {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxErrorBytes = 4096;

Error error_of(const std::string& peer, const Json& fields) {
  const std::optional<ErrorCode> code = find_error_code(read_text(fields, "code", 64));
  const std::string message = printable(read_text(fields, "message", kMaxErrorBytes), kMaxErrorBytes);
  return Error(code.value_or(ErrorCode::kInternal), cat(peer, ": ", message));
}

}  // namespace

Result<std::monostate> send_message(Link& link, uint64_t id, const Json& object, Deadline deadline) {
  // A name with invalid UTF-8, say of a file, is no reason to fail.
  const std::string text = object.dump(-1, ' ', false, Json::error_handler_t::replace);
  const std::array parts{std::as_bytes(std::span(text))};
  return link.send({.kind = FrameKind::kMessage, .id = id}, parts, deadline);
}

Result<Json> parse_message(const std::string& peer, std::span<const std::byte> payload) {
  try {
    const std::string_view text(reinterpret_cast<const char*>(payload.data()), payload.size());
    Json message = parse_json(cat(peer, ": control message"), text);
    if (!message.is_object()) return Error(ErrorCode::kCorrupt, cat(peer, ": control message: not a JSON object"));
    if (message.contains("error")) return error_of(peer, message["error"]);
    return message;
  } catch (const LoadError& error) {
    return static_cast<const Error&>(error);
  } catch (const Error& error) {  // a field, which does not know who sent it
    return named_error(peer, error);
  }
}

Result<Json> receive_message(Link& link, uint64_t& id, std::vector<std::byte>& payload, Deadline deadline) {
  const Result<FrameHeader> header = link.receive(payload, deadline);
  if (!header) return header.error();
  id = header.value().id;
  if (header.value().kind != FrameKind::kMessage) {
    return Error(ErrorCode::kCorrupt, cat(link.peer(), ": frame of kind ", uint32_t{raw(header.value().kind)},
                                          ", expected a control message"));
  }
  return parse_message(link.peer(), payload);
}

Result<Json> ask(Link& link, uint64_t id, const Json& request, Deadline deadline) {
  if (const auto sent = send_message(link, id, request, deadline); !sent) return sent.error();
  std::vector<std::byte> payload;
  uint64_t answered = 0;
  Result<Json> answer = receive_message(link, answered, payload, deadline);
  if (answer.ok() && answered != id)
    return Error(ErrorCode::kCorrupt, cat(link.peer(), ": answer to request ", answered, ", expected to ", id));
  return answer;
}

Json error_message(const Error& error) {
  return {{"error",
           {{"code", error_code_name(error.code())}, {"message", printable(error.message(), kMaxErrorBytes - 8)}}}};
}

}  // namespace headrace::cluster
