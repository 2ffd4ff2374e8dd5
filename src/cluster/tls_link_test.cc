#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <fstream>
#include <random>
#include <thread>

#include "cluster/tcp_socket.h"
#include "cluster/test_certificates.h"
#include "cluster/test_links.h"
#include "cluster/tls_entrance.h"

namespace headrace::cluster {
namespace {

using Parts = std::vector<std::span<const std::byte>>;

const TlsFiles& ours() {
  static const TlsFiles files = make_tls_files("ours");
  return files;
}
const TlsFiles& others() {
  static const TlsFiles files = make_tls_files("others");
  return files;
}

std::vector<std::byte> numbered(size_t size) {
  std::vector<std::byte> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 13 + i / 239);
  return bytes;
}

TEST(TlsLink, CarriesFramesBothWaysAtOnce) {
  const LinkPair pair = connected_pair(ours());
  const std::vector<std::byte> bytes = numbered(1 << 20);
  const std::span<const std::byte> all(bytes);
  const std::vector<Parts> frames{
      {}, {all.first(1)}, {all.first(16), all.first(65536)}, {all}, {all.first(3), {}, all.subspan(3)}};
  const auto send = [&](Link& link) {
    for (int round = 0; round < 5; ++round) {
      for (const Parts& parts : frames) EXPECT_TRUE(link.send({.kind = FrameKind::kActivations}, parts, soon()).ok());
    }
  };
  const auto receive = [&](Link& link) {
    std::vector<std::byte> payload;
    for (int round = 0; round < 5; ++round) {
      for (const Parts& parts : frames) {
        std::vector<std::byte> expected;
        for (const auto part : parts) expected.insert(expected.end(), part.begin(), part.end());
        const auto header = link.receive(payload, soon());
        ASSERT_TRUE(header.ok()) << header.error().message();
        EXPECT_TRUE(payload == expected);
      }
    }
  };
  std::thread a([&] { send(*pair.near); }), b([&] { send(*pair.far); });
  std::thread c([&] { receive(*pair.near); }), d([&] { receive(*pair.far); });
  for (std::thread* thread : {&a, &b, &c, &d}) thread->join();
  EXPECT_EQ(pair.near->figures().bytes_sent, pair.far->figures().bytes_received);
}

/// Another process that sees the bytes does not see the text.
TEST(TlsLink, TextDoesNotCrossInTheClear) {
  const std::string text = "a text that nobody may read on its way";
  const auto listener = listen_tcp("127.0.0.1:0", ours());
  const Descriptor inner = connect_tcp(cat("127.0.0.1:", listener->port()), soon()).value();
  std::string seen;
  const Descriptor tap_fd = bind_tcp("127.0.0.1:0");
  std::thread relay([&] {
    ASSERT_TRUE(wait_for(tap_fd.get(), Wait::kReadable, soon()));
    const Descriptor outer(::accept4(tap_fd.get(), nullptr, nullptr, SOCK_NONBLOCK));
    std::array<char, 4096> bytes;
    const auto pass_on = [&](const Descriptor& from, const Descriptor& to) {
      const ssize_t n = ::recv(from.get(), bytes.data(), bytes.size(), 0);
      if (n > 0) {
        seen.append(bytes.data(), static_cast<size_t>(n));
        EXPECT_EQ(::send(to.get(), bytes.data(), static_cast<size_t>(n), MSG_NOSIGNAL), n);
      }
      return n != 0;
    };
    while (true) {
      if (wait_for(outer.get(), Wait::kReadable, after(0.005)) && !pass_on(outer, inner)) break;
      if (wait_for(inner.get(), Wait::kReadable, after(0.005)) && !pass_on(inner, outer)) break;
    }
    ::shutdown(inner.get(), SHUT_RDWR);
  });
  auto near = std::async(std::launch::async, [&] {
    return make_tcp_network(ours())->connect(cat("127.0.0.1:", local_port(tap_fd.get())), soon()).value();
  });
  const auto far = listener->accept(soon()).value();
  auto link = near.get();
  const Parts parts{bytes_of(text)};
  ASSERT_TRUE(link->send({.kind = FrameKind::kBytes}, parts, soon()).ok());
  std::vector<std::byte> payload;
  ASSERT_TRUE(far->receive(payload, soon()).ok());
  EXPECT_EQ(text_of(payload), text);
  link.reset();
  relay.join();
  EXPECT_GT(seen.size(), text.size());
  EXPECT_EQ(seen.find(text), std::string::npos);
}

TEST(TlsLink, CloseFromAnotherThreadWakesBothDirections) {
  const LinkPair pair = connected_pair(ours());
  const std::vector<std::byte> bytes = numbered(64 << 20);
  const Parts parts{bytes};
  ErrorCode sent{}, received{};
  std::thread sender([&] { sent = pair.near->send({.kind = FrameKind::kBytes}, parts, after(600)).error().code(); });
  std::thread receiver([&] {
    std::vector<std::byte> payload;
    received = pair.near->receive(payload, after(600)).error().code();
  });
  while (pair.near->figures().bytes_sent == 0) std::this_thread::yield();
  pair.near->close();
  sender.join();
  receiver.join();
  EXPECT_EQ(sent, ErrorCode::kUnavailable);
  EXPECT_EQ(received, ErrorCode::kUnavailable);
  std::vector<std::byte> payload;
  EXPECT_EQ(pair.far->receive(payload, soon()).error().code(), ErrorCode::kUnavailable);
}

TEST(TlsLink, TimeoutBeforeAFrameLeavesTheLinkUsable) {
  const LinkPair pair = connected_pair(ours());
  std::vector<std::byte> payload;
  EXPECT_EQ(pair.far->receive(payload, after(0.01)).error().code(), ErrorCode::kTimeout);
  ASSERT_TRUE(pair.near->send({.id = 5}, {}, soon()).ok());
  EXPECT_EQ(pair.far->receive(payload, soon()).value().id, 5u);
}

/// How a connection with these files ends on the side that connects: at once, or, since TLS 1.3 shows the accepter's
/// verdict late, with the first frame.
std::string fate(const TlsFiles& connects, const TlsFiles& accepts) {
  const auto listener = listen_tcp("127.0.0.1:0", accepts);
  std::thread accepter([&] { EXPECT_EQ(listener->accept(after(600)).error().code(), ErrorCode::kUnavailable); });
  const auto link = make_tcp_network(connects)->connect(cat("127.0.0.1:", listener->port()), soon());
  std::string end;
  if (link) {
    std::vector<std::byte> payload;
    const auto frame = link.value()->receive(payload, soon());
    end = frame ? "a frame" : frame.error().message();
  } else {
    end = link.error().message();
  }
  listener->close();
  accepter.join();
  return end;
}

TEST(TlsLink, WrongAuthorityIsRefusedOnBothSides) {
  TlsFiles strangers = others();
  EXPECT_NE(fate(strangers, ours()).find("certificate verify failed"), std::string::npos);
  strangers.authority = ours().authority;  // trusts the accepter, which does not trust it
  EXPECT_NE(fate(strangers, ours()).find("alert"), std::string::npos);
}

TEST(TlsLink, PeerWithoutTlsIsRefused) {
  const auto listener = listen_tcp("127.0.0.1:0", ours());
  std::thread accepter([&] { EXPECT_EQ(listener->accept(after(600)).error().code(), ErrorCode::kUnavailable); });
  const auto link = make_tcp_network({})->connect(cat("127.0.0.1:", listener->port()), soon()).value();
  ASSERT_TRUE(link->send({.id = 1}, {}, soon()).ok());
  std::vector<std::byte> payload;
  EXPECT_FALSE(link->receive(payload, soon()).ok());  // an alert, which is no frame
  listener->close();
  accepter.join();
}

TEST(TlsLink, ListenerWithoutTlsIsRefused) {
  const auto listener = listen_tcp("127.0.0.1:0", {});
  std::thread accepter([&] {
    const auto link = listener->accept(soon()).value();
    std::vector<std::byte> payload;
    EXPECT_EQ(link->receive(payload, soon()).error().code(), ErrorCode::kCorrupt);
  });
  const auto link = make_tcp_network(ours())->connect(cat("127.0.0.1:", listener->port()), soon());
  EXPECT_EQ(link.error().code(), ErrorCode::kUnavailable);
  accepter.join();
}

/// Peers that connect and say nothing, or begin and stop, keep nobody from being accepted, also where they are more
/// than there are places for, and long before their time is over.
TEST(TlsLink, StalledHandshakesDoNotHoldOthers) {
  constexpr int kTries = 5;  // a machine under load may be too slow to tell
  bool was_quick = false;
  for (int tries = 0; tries < kTries && !was_quick; ++tries) {
    const auto listener = listen_tcp("127.0.0.1:0", ours());
    const std::string address = cat("127.0.0.1:", listener->port());
    const Deadline limit = after(TlsEntrance::kSeconds / 2);
    std::vector<Descriptor> stalled;
    for (size_t i = 0; i < TlsEntrance::kMaxPending + 20; ++i) {
      stalled.push_back(connect_tcp(address, soon()).value());
      const std::array<unsigned char, 3> begun{22, 3, 1};  // of a TLS record
      const size_t size = i % 2 == 0 ? begun.size() : 0;
      EXPECT_GE(::send(stalled.back().get(), begun.data(), size, MSG_NOSIGNAL), 0);
    }
    auto near =
        std::async(std::launch::async, [&] { return make_tcp_network(ours())->connect(address, soon()).value(); });
    const auto far = listener->accept(soon());
    ASSERT_TRUE(far.ok()) << far.error().message();
    ASSERT_TRUE(near.get()->send({.id = 1}, {}, soon()).ok());
    was_quick = std::chrono::steady_clock::now() < limit;
  }
  EXPECT_TRUE(was_quick);
}

TEST(TlsLink, GarbageIsRefused) {
  const auto listener = listen_tcp("127.0.0.1:0", ours());
  const std::string address = cat("127.0.0.1:", listener->port());
  std::thread accepter([&] { EXPECT_EQ(listener->accept(after(600)).error().code(), ErrorCode::kUnavailable); });
  std::mt19937 random(3);
  for (int i = 0; i < 100; ++i) {
    const Descriptor peer = connect_tcp(address, soon()).value();
    std::vector<unsigned char> bytes(random() % 300);
    for (unsigned char& byte : bytes) byte = static_cast<unsigned char>(random());
    if (!bytes.empty()) bytes[0] = 22;  // a handshake record, to be looked into
    (void)::send(peer.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    ::shutdown(peer.get(), SHUT_WR);
    std::array<std::byte, 256> answer;  // an alert, perhaps; then the end
    ssize_t n = 1;
    while (n > 0 && wait_for(peer.get(), Wait::kReadable, soon()))
      n = ::recv(peer.get(), answer.data(), answer.size(), 0);
    EXPECT_LE(n, 0);
  }
  listener->close();
  accepter.join();
}

TEST(TlsLink, NamesTheFileThatIsWrong) {
  const auto refusal = [](const TlsFiles& files) -> std::string {
    try {
      (void)make_tcp_network(files);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      return error.message();
    }
    return "taken";
  };
  TlsFiles files = ours();
  files.authority.clear();
  EXPECT_NE(refusal(files).find("three files"), std::string::npos);
  files = ours();
  files.certificate = "no-such.pem";
  EXPECT_EQ(refusal(files).find("no-such.pem: --cluster-certfile cannot be read: No such file"), 0u) << refusal(files);
  files = ours();
  files.key = others().key;  // of another certificate
  EXPECT_EQ(refusal(files).find(files.key), 0u) << refusal(files);
  files = ours();
  files.authority = files.key;
  EXPECT_EQ(refusal(files).find(files.authority), 0u) << refusal(files);
}

}  // namespace
}  // namespace headrace::cluster
