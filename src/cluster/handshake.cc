#include "cluster/handshake.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/ascii_text.h"
#include "base/crypto.h"
#include "cluster/message.h"
#include "cluster/message_fields.h"

namespace headrace::cluster {
namespace {

using Json = nlohmann::json;

constexpr size_t kNonceBytes = 32;
constexpr size_t kMaxWordBytes = 256;

/// All that both sides know once they have exchanged hellos.
struct Transcript {
  std::string opener_role, accepter_role, purpose, opener_identity, accepter_identity, proof_kind, key_id, opener_nonce,
      accepter_nonce;
};

/// The proof of `secret` that the side `direction` gives: lengths keep fields apart.
std::string proof_of(const std::string& secret, std::string_view direction, const Transcript& all) {
  std::string text = cat("headrace cluster ", kProtocolVersion, '\n');
  for (const std::string_view field :
       {direction, std::string_view(all.opener_role), std::string_view(all.accepter_role),
        std::string_view(all.purpose), std::string_view(all.opener_identity), std::string_view(all.accepter_identity),
        std::string_view(all.proof_kind), std::string_view(all.key_id), std::string_view(all.opener_nonce),
        std::string_view(all.accepter_nonce)}) {
    text += cat(field.size(), ':', field, '\n');
  }
  std::array<unsigned char, 32> digest{};
  unsigned size = 0;
  if (HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
           reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data(), &size) == nullptr)
    throw Error(ErrorCode::kInternal, "HMAC-SHA256 is not to be had from OpenSSL");
  return hex_text(digest);
}

constexpr std::string_view kOpens = "opens";
constexpr std::string_view kAccepts = "accepts";

bool same_proof(const std::string& found, const std::string& expected) {
  return found.size() == expected.size() && CRYPTO_memcmp(found.data(), expected.data(), found.size()) == 0;
}

Error refused(const Link& link, const std::string& what) {
  return Error(ErrorCode::kInvalidArgument, cat(link.peer(), ": ", what));
}

/// Messages of one handshake. Throws Error, so that the steps read one after the other.
class Exchange {
 public:
  Exchange(Link& link, Deadline deadline) : link_(link), deadline_(deadline) {}
  void send(const Json& message) {
    if (const auto sent = send_message(link_, 0, message, deadline_); !sent) throw Error(sent.error());
  }
  [[nodiscard]] Json receive() {
    uint64_t id = 0;
    Result<Json> message = receive_message(link_, id, payload_, deadline_);
    if (!message) throw Error(message.error());
    return std::move(message).value();
  }

 private:
  Link& link_;
  Deadline deadline_;
  std::vector<std::byte> payload_;
};

/// The word for what proves a link's opener to be who it should be.
const char* proof_kind(const Credentials& mine) { return mine.secret ? "secret" : "none"; }

PeerHello open(Link& link, const std::optional<std::string>& secret, Transcript all, Deadline deadline) {
  Exchange exchange(link, deadline);
  all.opener_nonce = random_hex(kNonceBytes);
  exchange.send({{"role", all.opener_role},
                 {"purpose", all.purpose},
                 {"identity", all.opener_identity},
                 {"nonce", all.opener_nonce},
                 {"proof", all.proof_kind},
                 {"key", all.key_id}});
  const Json hello = exchange.receive();
  all.accepter_role = read_text(hello, "role", kMaxWordBytes);
  all.accepter_identity = read_text(hello, "identity", kMaxWordBytes);
  all.accepter_nonce = read_text(hello, "nonce", 2 * kNonceBytes);
  if (secret) {
    exchange.send({{"proof", proof_of(*secret, kOpens, all)}});
    const std::string proof = read_text(exchange.receive(), "proof", 64);
    if (!same_proof(proof, proof_of(*secret, kAccepts, all)))
      throw refused(link, "did not prove to have the shared secret; give all machines the same one");
  } else {
    exchange.send(Json::object());
    (void)exchange.receive();
  }
  return {.role = all.accepter_role, .purpose = all.purpose, .identity = all.accepter_identity};
}

Result<PeerHello> open_with(Link& link, const std::optional<std::string>& secret, Transcript all, Deadline deadline) {
  try {
    link.limit_payload(kMaxHandshakeFrameBytes);
    PeerHello peer = open(link, secret, std::move(all), deadline);
    link.limit_payload(std::numeric_limits<int64_t>::max());
    return peer;
  } catch (const Error& error) {
    link.close();
    return Error(error.code(), error.message());
  }
}

/// What the opener must prove to have, by its hello; nullopt in the result: nothing.
Result<std::optional<std::string>> wanted_secret(const Link& link, const Credentials& mine, DataKeys* keys,
                                                 const Transcript& all) {
  if (all.proof_kind == "key") {
    const std::optional<std::string> key = keys != nullptr ? keys->take(all.key_id, all.purpose) : std::nullopt;
    if (key) return key;
    return refused(link, cat("data connection for '", printable(all.purpose),
                             "' with a key that was not issued for "
                             "it, was used before or is too old"));
  }
  if (all.proof_kind == proof_kind(mine)) return mine.secret;
  return refused(link, mine.secret ? "has no shared secret; this machine has one: give all machines the same"
                                   : "has a shared secret; this machine has none: give all machines the same");
}

PeerHello answer(Link& link, const Credentials& mine, DataKeys* keys, Deadline deadline) {
  Exchange exchange(link, deadline);
  const Json hello = exchange.receive();
  Transcript all{.opener_role = read_text(hello, "role", kMaxWordBytes),
                 .accepter_role = mine.role,
                 .purpose = read_text(hello, "purpose", kMaxWordBytes),
                 .opener_identity = read_text(hello, "identity", kMaxWordBytes),
                 .accepter_identity = mine.identity,
                 .proof_kind = read_text(hello, "proof", 8),
                 .key_id = read_text(hello, "key", 64),
                 .opener_nonce = read_text(hello, "nonce", 2 * kNonceBytes),
                 .accepter_nonce = random_hex(kNonceBytes)};
  const Result<std::optional<std::string>> wanted = wanted_secret(link, mine, keys, all);
  if (!wanted) throw Error(wanted.error());
  exchange.send({{"role", all.accepter_role}, {"identity", all.accepter_identity}, {"nonce", all.accepter_nonce}});
  const Json proof = exchange.receive();
  if (const std::optional<std::string>& secret = wanted.value()) {
    if (!same_proof(read_text(proof, "proof", 64), proof_of(*secret, kOpens, all)))
      throw refused(link, "has another shared secret than this machine; give all machines the same");
    exchange.send({{"proof", proof_of(*secret, kAccepts, all)}});
  } else {
    exchange.send(Json::object());
  }
  return {.role = all.opener_role, .purpose = all.purpose, .identity = all.opener_identity};
}

}  // namespace

Result<PeerHello> open_handshake(Link& link, const Credentials& mine, const std::string& purpose, Deadline deadline) {
  return open_with(link, mine.secret,
                   {.opener_role = mine.role,
                    .accepter_role = {},
                    .purpose = purpose,
                    .opener_identity = mine.identity,
                    .accepter_identity = {},
                    .proof_kind = proof_kind(mine),
                    .key_id = {},
                    .opener_nonce = {},
                    .accepter_nonce = {}},
                   deadline);
}

Result<PeerHello> answer_handshake(Link& link, const Credentials& mine, DataKeys* keys, Deadline deadline) {
  const Deadline until = std::min(deadline, after(kHandshakeSeconds));
  try {
    link.limit_payload(kMaxHandshakeFrameBytes);
    PeerHello peer = answer(link, mine, keys, until);
    link.limit_payload(std::numeric_limits<int64_t>::max());
    return peer;
  } catch (const Error& error) {
    const Error refusal(ErrorCode::kInvalidArgument, std::string(kHandshakeRefusal));
    (void)send_message(link, 0, error_message(refusal), until);  // a peer that is gone has no use for it
    link.close();
    return Error(error.code(), error.message());
  }
}

Result<std::unique_ptr<Link>> open_data_link(Network& network, const std::string& address, const std::string& key,
                                             const std::string& purpose, Deadline deadline) {
  Result<std::unique_ptr<Link>> link = network.connect(address, deadline);
  if (!link) return link;
  const Result<PeerHello> peer = open_with(*link.value(), key,
                                           {.opener_role = "data",
                                            .accepter_role = {},
                                            .purpose = purpose,
                                            .opener_identity = {},
                                            .accepter_identity = {},
                                            .proof_kind = "key",
                                            .key_id = data_key_id(key),
                                            .opener_nonce = {},
                                            .accepter_nonce = {}},
                                           deadline);
  if (!peer) return peer.error();
  return link;
}

}  // namespace headrace::cluster
