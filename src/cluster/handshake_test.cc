#include "cluster/handshake.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/crypto.h"
#include "cluster/message.h"
#include "cluster/message_fields.h"
#include "cluster/reception.h"
#include "cluster/secret_file.h"
#include "cluster/tcp_socket.h"
#include "cluster/test_links.h"

namespace headrace::cluster {
namespace {

using Json = nlohmann::json;

Credentials worker(std::optional<std::string> secret = "0123456789abcdef") {
  return {"worker", std::move(secret), "of the worker"};
}
Credentials head(std::optional<std::string> secret = "0123456789abcdef") {
  return {"head", std::move(secret), "of the head"};
}

struct BothSides {
  Result<PeerHello> opener, accepter;
};
/// Lets both sides shake hands over a new connection.
BothSides shake(const Credentials& opener, const Credentials& accepter) {
  const LinkPair pair = connected_pair();
  auto far = std::async(std::launch::async, [&] { return answer_handshake(*pair.far, accepter, nullptr, soon()); });
  Result<PeerHello> near = open_handshake(*pair.near, opener, "control", soon());
  return {.opener = std::move(near), .accepter = far.get()};
}

TEST(Handshake, BothLearnOfEachOther) {
  for (const bool secret : {true, false}) {
    const BothSides both = shake(secret ? worker() : worker(std::nullopt), secret ? head() : head(std::nullopt));
    ASSERT_TRUE(both.opener.ok()) << both.opener.error().message();
    ASSERT_TRUE(both.accepter.ok()) << both.accepter.error().message();
    EXPECT_EQ(both.opener.value().role, "head");
    EXPECT_EQ(both.accepter.value().role, "worker");
    EXPECT_EQ(both.accepter.value().purpose, "control");
    EXPECT_EQ(both.opener.value().identity, "of the head");
    EXPECT_EQ(both.accepter.value().identity, "of the worker");
  }
}

TEST(Handshake, LongFramesAreTakenAfterwards) {
  const LinkPair pair = connected_pair();
  std::thread far([&] { EXPECT_TRUE(answer_handshake(*pair.far, head(), nullptr, soon()).ok()); });
  ASSERT_TRUE(open_handshake(*pair.near, worker(), "control", soon()).ok());
  far.join();
  const std::vector<std::byte> bytes(100'000);
  const std::array parts{std::span<const std::byte>(bytes)};
  std::vector<std::byte> payload;
  ASSERT_TRUE(pair.near->send({.kind = FrameKind::kBytes}, parts, soon()).ok());
  ASSERT_TRUE(pair.far->send({.kind = FrameKind::kBytes}, parts, soon()).ok());
  EXPECT_TRUE(pair.far->receive(payload, soon()).ok());
  EXPECT_TRUE(pair.near->receive(payload, soon()).ok());
}

/// Whoever lacks the secret is told the same line, whatever it lacks.
TEST(Handshake, OthersAreRefusedInOneLine) {
  const std::optional<std::string> other = "another secret, as long";
  for (const auto& [opens, accepts] : std::vector<std::pair<Credentials, Credentials>>{
           {worker(other), head()}, {worker(std::nullopt), head()}, {worker(), head(std::nullopt)}}) {
    const BothSides both = shake(opens, accepts);
    ASSERT_FALSE(both.opener.ok());
    ASSERT_FALSE(both.accepter.ok());
    EXPECT_EQ(both.opener.error().code(), ErrorCode::kInvalidArgument);
    EXPECT_EQ(both.accepter.error().code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(both.opener.error().message().find(kHandshakeRefusal), std::string::npos);
  }
}

/// A listener that has no secret, but takes whatever comes, is found out by the side that opens.
TEST(Handshake, AccepterMustProveTheSecretToo) {
  const LinkPair pair = connected_pair();
  std::thread far([&] {
    std::vector<std::byte> payload;
    uint64_t id = 0;
    ASSERT_TRUE(receive_message(*pair.far, id, payload, soon()).ok());
    ASSERT_TRUE(
        send_message(*pair.far, 0, {{"role", "head"}, {"identity", ""}, {"nonce", random_hex(32)}}, soon()).ok());
    const Result<Json> proof = receive_message(*pair.far, id, payload, soon());
    ASSERT_TRUE(proof.ok());
    ASSERT_TRUE(send_message(*pair.far, 0, proof.value(), soon()).ok());  // reflected
  });
  const Result<PeerHello> peer = open_handshake(*pair.near, worker(), "control", soon());
  far.join();
  ASSERT_FALSE(peer.ok());
  EXPECT_EQ(peer.error().code(), ErrorCode::kInvalidArgument);
}

/// Says the same as a peer that was let in, heard on the way.
TEST(Handshake, ReplayedProofIsRefused) {
  Json hello, proof;
  {
    const LinkPair outer = connected_pair();  // opener .. thief
    const LinkPair inner = connected_pair();  // thief .. accepter
    auto accepter =
        std::async(std::launch::async, [&] { return answer_handshake(*inner.far, head(), nullptr, soon()); });
    auto opener =
        std::async(std::launch::async, [&] { return open_handshake(*outer.near, worker(), "control", soon()); });
    std::vector<std::byte> payload;
    uint64_t id = 0;
    const auto pass_on = [&](Link& from, Link& to) {
      Json message = receive_message(from, id, payload, soon()).value();
      EXPECT_TRUE(send_message(to, 0, message, soon()).ok());
      return message;
    };
    hello = pass_on(*outer.far, *inner.near);
    (void)pass_on(*inner.near, *outer.far);
    proof = pass_on(*outer.far, *inner.near);
    (void)pass_on(*inner.near, *outer.far);
    ASSERT_TRUE(opener.get().ok());
    ASSERT_TRUE(accepter.get().ok());
  }
  const LinkPair pair = connected_pair();
  auto accepter = std::async(std::launch::async, [&] { return answer_handshake(*pair.far, head(), nullptr, soon()); });
  std::vector<std::byte> payload;
  uint64_t id = 0;
  ASSERT_TRUE(send_message(*pair.near, 0, hello, soon()).ok());
  ASSERT_TRUE(receive_message(*pair.near, id, payload, soon()).ok());
  ASSERT_TRUE(send_message(*pair.near, 0, proof, soon()).ok());
  EXPECT_FALSE(receive_message(*pair.near, id, payload, soon()).ok());
  EXPECT_EQ(accepter.get().error().code(), ErrorCode::kInvalidArgument);
}

/// A proof for one purpose or role does not serve for another: everything said is under the proof.
TEST(Handshake, EveryWordIsUnderTheProof) {
  for (const char* field : {"role", "purpose", "identity", "nonce"}) {
    const LinkPair outer = connected_pair();
    const LinkPair inner = connected_pair();
    auto accepter =
        std::async(std::launch::async, [&] { return answer_handshake(*inner.far, head(), nullptr, soon()); });
    auto opener =
        std::async(std::launch::async, [&] { return open_handshake(*outer.near, worker(), "control", soon()); });
    std::vector<std::byte> payload;
    uint64_t id = 0;
    Json hello = receive_message(*outer.far, id, payload, soon()).value();
    hello[field] = cat("x", hello[field].get<std::string>().substr(1));
    ASSERT_TRUE(send_message(*inner.near, 0, hello, soon()).ok());
    ASSERT_TRUE(send_message(*outer.far, 0, receive_message(*inner.near, id, payload, soon()).value(), soon()).ok());
    ASSERT_TRUE(send_message(*inner.near, 0, receive_message(*outer.far, id, payload, soon()).value(), soon()).ok());
    EXPECT_FALSE(accepter.get().ok()) << field;
    outer.far->close();
    EXPECT_FALSE(opener.get().ok()) << field;
  }
}

TEST(Handshake, LongFrameBeforeItIsRefusedUnread) {
  const LinkPair pair = connected_pair();
  auto accepter = std::async(std::launch::async, [&] { return answer_handshake(*pair.far, head(), nullptr, soon()); });
  (void)send_message(*pair.near, 0, {{"role", std::string(5000, 'a')}}, soon());
  EXPECT_EQ(accepter.get().error().code(), ErrorCode::kCorrupt);
}

TEST(Handshake, SilentPeerIsGivenUp) {
  const LinkPair pair = connected_pair();
  EXPECT_EQ(answer_handshake(*pair.far, head(), nullptr, after(0.05)).error().code(), ErrorCode::kTimeout);
  std::vector<std::byte> payload;
  uint64_t id = 0;
  EXPECT_NE(receive_message(*pair.near, id, payload, soon()).error().message().find(kHandshakeRefusal),
            std::string::npos);
}

TEST(DataKeys, EachServesOnceForItsPurposeAndAMinute) {
  Deadline now{};
  DataKeys keys([&] { return now; });
  const std::string key = keys.issue("activations");
  EXPECT_EQ(key.size(), 64u);
  EXPECT_NE(keys.issue("activations"), key);
  EXPECT_EQ(keys.take("nonsense", "activations"), std::nullopt);
  EXPECT_EQ(keys.take(data_key_id(key), "activations"), key);
  EXPECT_EQ(keys.take(data_key_id(key), "activations"), std::nullopt);

  const std::string other = keys.issue("activations");
  EXPECT_EQ(keys.take(data_key_id(other), "plans"), std::nullopt);
  EXPECT_EQ(keys.take(data_key_id(other), "activations"), std::nullopt);

  const std::string in_time = keys.issue("plans");
  const std::string late = keys.issue("plans");
  now += std::chrono::seconds(59);
  EXPECT_EQ(keys.take(data_key_id(in_time), "plans"), in_time);
  now += std::chrono::seconds(1);
  EXPECT_EQ(keys.take(data_key_id(late), "plans"), std::nullopt);
}

/// What a Reception has welcomed.
class Guests {
 public:
  Reception::Welcome welcome() {
    return [this](std::unique_ptr<Link> link, PeerHello peer) {
      const std::lock_guard lock(mutex_);
      links_.push_back(std::move(link));
      peers_.push_back(std::move(peer));
      changed_.notify_all();
    };
  }
  PeerHello wait_for(size_t n) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_until(lock, soon(), [&] { return peers_.size() >= n; }));
    return peers_.at(n - 1);
  }
  size_t count() {
    const std::lock_guard lock(mutex_);
    return peers_.size();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<Link>> links_;
  std::vector<PeerHello> peers_;
};

TEST(Reception, WelcomesByKeyAndBySecret) {
  DataKeys keys;
  Guests guests;
  const Reception reception(listen_tcp("127.0.0.1:0", {}), head(), &keys, guests.welcome());
  const std::string address = cat("127.0.0.1:", reception.port());
  const auto network = make_tcp_network({});
  const std::string key = keys.issue("activations 1>2");
  const auto data = open_data_link(*network, address, key, "activations 1>2", soon());
  ASSERT_TRUE(data.ok()) << data.error().message();
  EXPECT_EQ(guests.wait_for(1).purpose, "activations 1>2");
  EXPECT_FALSE(open_data_link(*network, address, key, "activations 1>2", soon()).ok());
  EXPECT_FALSE(open_data_link(*network, address, keys.issue("plans"), "results", soon()).ok());

  const auto control = network->connect(address, soon());
  ASSERT_TRUE(open_handshake(*control.value(), worker(), "control", soon()).ok());
  EXPECT_EQ(guests.wait_for(2).purpose, "control");
  EXPECT_EQ(guests.count(), 2u);
}

/// A connection to 127.0.0.1 from another of this machine's addresses.
Descriptor connect_from_elsewhere(uint16_t port) {
  Descriptor fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in from{};
  from.sin_family = AF_INET;
  from.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);
  sockaddr_in to = from;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = htons(port);
  EXPECT_EQ(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&from), sizeof(from)), 0);
  EXPECT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(to)), 0);
  return fd;
}

/// Many more silent peers than are served at once: one that comes after them gets in, and one that came before them and
/// is slow keeps its place, long before the time of the silent ones is over.
TEST(Reception, SilentPeersKeepNobodyOut) {
  constexpr int kTries = 5;  // a machine under load may be too slow to tell
  bool was_quick = false;
  for (int tries = 0; tries < kTries && !was_quick; ++tries) {
    Guests guests;
    const Reception reception(listen_tcp("127.0.0.1:0", {}), head(), nullptr, guests.welcome());
    const std::string address = cat("127.0.0.1:", reception.port());
    const auto network = make_tcp_network({});
    const Deadline limit = after(kHandshakeSeconds / 2);
    const auto slow = network->connect(address, soon());
    std::vector<Descriptor> silent;
    for (int i = 0; i < 3 * kMaxUnknownPeers; ++i) silent.push_back(connect_from_elsewhere(reception.port()));
    const auto late = network->connect(address, soon());
    const bool in = open_handshake(*late.value(), worker(), "control", soon()).ok() &&
                    open_handshake(*slow.value(), worker(), "control", soon()).ok();
    was_quick = in && std::chrono::steady_clock::now() < limit;
    if (was_quick) {
      EXPECT_EQ(guests.wait_for(2).role, "worker");
    }
  }
  EXPECT_TRUE(was_quick);
}

TEST(Reception, ClosesWhileAPeerIsSilent) {
  Guests guests;
  auto reception = std::make_unique<Reception>(listen_tcp("127.0.0.1:0", {}), head(), nullptr, guests.welcome());
  const auto silent = make_tcp_network({})->connect(cat("127.0.0.1:", reception->port()), soon());
  reception.reset();
  std::vector<std::byte> payload;
  EXPECT_FALSE(silent.value()->receive(payload, soon()).ok());
  EXPECT_EQ(guests.count(), 0u);
}

class SecretFile : public testing::Test {
 protected:
  std::string write(const std::string& text, mode_t mode = 0600) {
    const std::string path = testing::TempDir() + "cluster_secret_test";
    std::ofstream(path) << text;
    ::chmod(path.c_str(), mode);
    return path;
  }
  static std::string refusal(const std::string& path) {
    try {
      return "taken: " + read_secret_file(path);
    } catch (const Error& error) {
      return error.message();
    }
  }
};

TEST_F(SecretFile, IsReadWithoutBlanksAround) {
  EXPECT_EQ(read_secret_file(write("  0123456789abcdef \r\n\n")), "0123456789abcdef");
  EXPECT_EQ(read_secret_file(write("0123456789 abcdef", 0640)), "0123456789 abcdef");
}

TEST_F(SecretFile, RefusesShortLongReadableAndMissingOnes) {
  EXPECT_NE(refusal(write("0123456789abcde\n")).find("15 bytes, expected at least 16"), std::string::npos);
  EXPECT_NE(refusal(write(std::string(5000, 'a'))).find("at most 4096"), std::string::npos);
  EXPECT_NE(refusal(write("0123456789abcdef", 0644)).find("chmod o-rwx"), std::string::npos);
  EXPECT_NE(refusal(write("0123456789abcdef", 0602)).find("chmod o-rwx"), std::string::npos);
  EXPECT_NE(refusal(testing::TempDir()).find("not a file"), std::string::npos);
  EXPECT_NE(refusal("no-such-folder/secret").find("No such file"), std::string::npos);
}

}  // namespace
}  // namespace headrace::cluster
