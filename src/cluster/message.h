#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "cluster/link.h"

namespace headrace::cluster {

/// Sends one JSON object as a kMessage frame with that id.
[[nodiscard]] Result<std::monostate> send_message(Link& link, uint64_t id, const nlohmann::json& object,
                                                  Deadline deadline);

/// The JSON object of a kMessage frame's payload, which came from `peer`. kCorrupt where it is none (a key twice and
/// more than kMaxJsonDepth levels included). {"error": {"code", "message"}} gives that Error, after the peer's name.
[[nodiscard]] Result<nlohmann::json> parse_message(const std::string& peer, std::span<const std::byte> payload);

/// The next frame, which must be a message; `id` becomes the frame's. Errors of Link::receive and parse_message;
/// kCorrupt for a frame of another kind. Fields are read by message_fields.h.
[[nodiscard]] Result<nlohmann::json> receive_message(Link& link, uint64_t& id, std::vector<std::byte>& payload,
                                                     Deadline deadline);

/// Sends `request` and waits for the message with the same id.
[[nodiscard]] Result<nlohmann::json> ask(Link& link, uint64_t id, const nlohmann::json& request, Deadline deadline);

/// The answer that parse_message turns back into `error`.
[[nodiscard]] nlohmann::json error_message(const Error& error);

}  // namespace headrace::cluster
