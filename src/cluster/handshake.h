#pragma once

#include <optional>
#include <string>

#include "cluster/data_keys.h"
#include "cluster/link.h"

namespace headrace::cluster {

/// Longest that a peer may take to prove who it is, and the longest frame it may send until then.
inline constexpr double kHandshakeSeconds = 5;
inline constexpr int64_t kMaxHandshakeFrameBytes = 4096;

/// The one line that a peer gets that has not proven what it must; it says nothing about what was wrong.
inline constexpr std::string_view kHandshakeRefusal =
    "refused: give all machines the same shared secret; keys of data connections serve once and for a minute";

/// What one side brings. Without a secret, links are only made with peers that have none either.
struct Credentials {
  std::string role;  ///< "head", "worker"
  std::optional<std::string> secret = {};
  std::string identity = {};  ///< of this process: tells whether two addresses are one and the same
};

/// What a peer said of itself and has proven.
struct PeerHello {
  std::string role;
  std::string purpose;   ///< what the link is for: "control", "heartbeat", "activations 1>2"
  std::string identity;  ///< of the process; empty on data connections
};

// The first frames of every link, before anything else is believed:
//   connects -> accepts   {"role", "purpose", "identity", "nonce", "proof": "secret" | "key" | "none", "key": its id}
//   accepts -> connects   {"role", "identity", "nonce"}
//   connects -> accepts   {"proof": HMAC-SHA256 of the secret or key over the direction and all of the above}
//   accepts -> connects   {"proof": the same for the other direction}, or {} where both have no secret
// The secret never crosses the wire; fresh nonces of both sides make a replayed proof false, the direction a reflected
// one. It does not hide or protect what follows: TLS does. Frames of a peer that speaks another protocol version are
// refused by decode_header with both versions.

/// The side that connected. kInvalidArgument when the peer refuses or has not proven to have the secret.
[[nodiscard]] Result<PeerHello> open_handshake(Link& link, const Credentials& mine, const std::string& purpose,
                                               Deadline deadline);
/// The side that accepted; takes at most kHandshakeSeconds. A peer that fails is told kHandshakeRefusal, and the link
/// closed. `keys`: those that may open data connections; null: none may.
[[nodiscard]] Result<PeerHello> answer_handshake(Link& link, const Credentials& mine, DataKeys* keys,
                                                 Deadline deadline);

/// A data connection, opened with a key that the accepting side issued for that purpose.
[[nodiscard]] Result<std::unique_ptr<Link>> open_data_link(Network& network, const std::string& address,
                                                           const std::string& key, const std::string& purpose,
                                                           Deadline deadline);

}  // namespace headrace::cluster
