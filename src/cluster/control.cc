#include "cluster/control.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cluster/message.h"
#include "cluster/message_fields.h"
#include "cluster/time_limits.h"

namespace headrace::cluster {
namespace {

/// How often a long task tells how far it is.
constexpr double kProgressSeconds = 0.5;

}  // namespace

nlohmann::json ControlClient::ask(const char* what, nlohmann::json fields, double seconds,
                                  const TaskProgress& progress) {
  const auto refuse = [&](const Error& error) {
    throw Error(error.code(), cat("worker ", name_, ": ", what, ": ", error.message()));
  };
  fields["ask"] = what;
  const uint64_t id = ++questions_;
  if (const auto sent = send_message(*link_, id, fields, after(seconds)); !sent) refuse(sent.error());
  while (true) {
    uint64_t answered = 0;
    auto received = receive_message(*link_, answered, payload_, after(seconds));
    if (!received) refuse(received.error());
    if (answered != id) refuse(Error(ErrorCode::kCorrupt, "an answer to another question"));
    if (!received.value().contains("progress")) return std::move(received).value();
    if (progress) progress(read_number(received.value(), "progress", 0, 1));
  }
}

void serve_control(Link& link, const ControlAnswer& answer) {
  std::vector<std::byte> payload;
  while (true) {
    uint64_t id = 0;
    auto received = receive_message(link, id, payload, after(kIdleSeconds));
    if (!received) {
      if (received.error().code() == ErrorCode::kTimeout) continue;
      return;
    }
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
