#include "cluster/control.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cluster/message.h"
#include "cluster/message_fields.h"
#include "cluster/named_error.h"
#include "cluster/time_limits.h"

namespace headrace::cluster {
namespace {

/// How often a long task tells how far it is.
constexpr double kProgressSeconds = 0.5;

}  // namespace

nlohmann::json ControlClient::ask(const char* what, nlohmann::json fields, double seconds,
                                  const TaskProgress& progress) {
  const std::string where = cat("worker ", name_, ": ", what);
  fields["ask"] = what;
  const uint64_t id = ++questions_;
  (void)value_or_throw(send_message(*link_, id, fields, after(seconds)), where);
  while (true) {
    uint64_t answered = 0;
    nlohmann::json answer = value_or_throw(receive_message(*link_, answered, payload_, after(seconds)), where);
    if (answered != id) throw Error(ErrorCode::kCorrupt, cat(where, ": an answer to another question"));
    if (!answer.contains("progress")) return answer;
    if (progress) progress(read_number(answer, "progress", 0, 1));
  }
}

void serve_control(Link& link, const ControlAnswer& answer) {
  std::vector<std::byte> payload;
  while (true) {
    uint64_t id = 0;
    auto received = receive_message(link, id, payload, kNoDeadline);
    if (!received) return;
    auto told = std::chrono::steady_clock::now();
    const auto progress = [&](double share) {
      const auto now = std::chrono::steady_clock::now();
      if (std::chrono::duration<double>(now - told).count() < kProgressSeconds) return;
      told = now;
      (void)send_message(link, id, {{"progress", share}}, after(kStallSeconds));
    };
    nlohmann::json reply;
    try {
      reply = answer(read_text(received.value(), "ask", 64), received.value(), progress);
    } catch (const Error& error) {
      reply = error_message(error);
    } catch (const std::exception& error) {  // no memory, above all: of this one question
      reply = error_message(Error(ErrorCode::kInternal, error.what()));
    }
    if (!send_message(link, id, reply, after(kStallSeconds))) return;
  }
}

}  // namespace headrace::cluster
