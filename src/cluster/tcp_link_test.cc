#include "cluster/tcp_link.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <cstdlib>
#include <random>
#include <thread>

#include "cluster/test_links.h"

namespace headrace::cluster {
namespace {

using Parts = std::vector<std::span<const std::byte>>;

std::vector<std::byte> numbered(size_t size) {
  std::vector<std::byte> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 251);
  return bytes;
}

/// A peer that speaks bytes, not frames.
Descriptor raw_peer(const Listener& listener) {
  return connect_tcp(cat("127.0.0.1:", listener.port()), soon()).value();
}
void write_raw(const Descriptor& peer, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(peer.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n > 0) bytes = bytes.subspan(static_cast<size_t>(n));
    if (n < 0 && errno != EAGAIN) return;
    if (n < 0) (void)wait_for(peer.get(), Wait::kWritable, soon());
  }
}

TEST(TcpLink, CarriesFramesOfAnySizeAndSplit) {
  const LinkPair pair = connected_pair();
  const std::vector<std::byte> bytes = numbered(3 << 20);
  const std::span<const std::byte> all(bytes);
  std::vector<Parts> frames{{}, {all.first(0)}, {all.first(1)}, {all.first(100), {}, all.subspan(100, 7)}, {all}};
  frames.push_back({all.first(500'000)});
  frames.push_back({all});
  Parts many;
  for (size_t i = 0; i < 200; ++i) many.push_back(all.subspan(i * 1000, 1000));
  frames.push_back(many);

  std::thread sender([&] {
    for (size_t i = 0; i < frames.size(); ++i) {
      const FrameHeader header{.kind = FrameKind::kActivations, .epoch = EpochId{3}, .id = i};
      EXPECT_TRUE(pair.near->send(header, frames[i], soon()).ok());
    }
  });
  std::vector<std::byte> payload;
  for (size_t i = 0; i < frames.size(); ++i) {
    std::vector<std::byte> expected;
    for (const auto part : frames[i]) expected.insert(expected.end(), part.begin(), part.end());
    const Result<FrameHeader> header = pair.far->receive(payload, soon());
    ASSERT_TRUE(header.ok()) << header.error().message();
    EXPECT_EQ(header.value().id, i);
    EXPECT_EQ(header.value().epoch, EpochId{3});
    EXPECT_EQ(header.value().payload_bytes, static_cast<int64_t>(expected.size()));
    EXPECT_TRUE(payload == expected) << i;
  }
  sender.join();
  EXPECT_EQ(pair.near->figures().bytes_sent, pair.far->figures().bytes_received);
  EXPECT_EQ(pair.near->figures().frames_sent, static_cast<int64_t>(frames.size()));
  EXPECT_EQ(pair.far->figures().frames_received, static_cast<int64_t>(frames.size()));
}

TEST(TcpLink, BothDirectionsAtOnce) {
  const LinkPair pair = connected_pair();
  const std::vector<std::byte> bytes = numbered(1 << 20);
  const Parts parts{bytes};
  const auto send = [&](Link& link) {
    for (int i = 0; i < 20; ++i) EXPECT_TRUE(link.send({.kind = FrameKind::kBytes}, parts, soon()).ok());
  };
  const auto receive = [&](Link& link) {
    std::vector<std::byte> payload;
    for (int i = 0; i < 20; ++i) {
      EXPECT_TRUE(link.receive(payload, soon()).ok());
      EXPECT_TRUE(payload == bytes);
    }
  };
  std::thread a([&] { send(*pair.near); }), b([&] { send(*pair.far); });
  std::thread c([&] { receive(*pair.near); }), d([&] { receive(*pair.far); });
  for (std::thread* thread : {&a, &b, &c, &d}) thread->join();
}

TEST(TcpLink, PayloadKeepsItsMemory) {
  const LinkPair pair = connected_pair();
  const std::vector<std::byte> bytes = numbered(64 << 10);
  std::vector<std::byte> payload;
  const std::byte* memory = nullptr;
  for (const size_t size : {size_t{64} << 10, size_t{10}, size_t{64} << 10}) {
    const Parts parts{std::span(bytes).first(size)};
    ASSERT_TRUE(pair.near->send({.kind = FrameKind::kBytes}, parts, soon()).ok());
    ASSERT_TRUE(pair.far->receive(payload, soon()).ok());
    EXPECT_TRUE(memory == nullptr || memory == payload.data());
    memory = payload.data();
  }
}

TEST(TcpLink, TimeoutBeforeAFrameLeavesTheLinkUsable) {
  const LinkPair pair = connected_pair();
  std::vector<std::byte> payload;
  for (const Deadline deadline : {after(-1), after(0.01)}) {
    const Result<FrameHeader> none = pair.far->receive(payload, deadline);
    ASSERT_FALSE(none.ok());
    EXPECT_EQ(none.error().code(), ErrorCode::kTimeout);
  }
  ASSERT_TRUE(pair.near->send({.id = 5}, {}, soon()).ok());
  EXPECT_EQ(pair.far->receive(payload, soon()).value().id, 5u);
}

TEST(TcpLink, TimeoutInsideAFrameBreaksIt) {
  const auto listener = listen_tcp("127.0.0.1:0", {});
  const Descriptor peer = raw_peer(*listener);
  const auto link = listener->accept(soon()).value();
  const auto head = encode_header({.kind = FrameKind::kBytes, .payload_bytes = 100});
  write_raw(peer, head);
  std::vector<std::byte> payload;
  EXPECT_EQ(link->receive(payload, after(0.05)).error().code(), ErrorCode::kTimeout);
  write_raw(peer, numbered(100));
  EXPECT_EQ(link->receive(payload, soon()).error().code(), ErrorCode::kUnavailable);
}

TEST(TcpLink, BytesOneByOneMakeFrames) {
  const auto listener = listen_tcp("127.0.0.1:0", {});
  const Descriptor peer = raw_peer(*listener);
  const auto link = listener->accept(soon()).value();
  std::thread slow([&] {
    for (int frame = 0; frame < 3; ++frame) {
      const auto head = encode_header({.kind = FrameKind::kBytes, .id = 9, .payload_bytes = 40});
      for (const std::byte byte : head) write_raw(peer, {&byte, 1});
      for (const std::byte byte : numbered(40)) write_raw(peer, {&byte, 1});
    }
  });
  std::vector<std::byte> payload;
  for (int frame = 0; frame < 3; ++frame) {
    ASSERT_TRUE(link->receive(payload, soon()).ok());
    EXPECT_EQ(payload, numbered(40));
  }
  slow.join();
}

TEST(TcpLink, PeerThatEndsInsideAFrameIsUnavailable) {
  const auto listener = listen_tcp("127.0.0.1:0", {});
  for (const size_t bytes : {size_t{0}, size_t{5}, kFrameHeaderBytes, kFrameHeaderBytes + 7}) {
    std::unique_ptr<Link> link;
    {
      const Descriptor peer = raw_peer(*listener);
      link = listener->accept(soon()).value();
      const auto head = encode_header({.kind = FrameKind::kBytes, .payload_bytes = 40});
      std::vector<std::byte> all(head.begin(), head.end());
      all.resize(bytes);
      write_raw(peer, all);
    }
    std::vector<std::byte> payload;
    EXPECT_EQ(link->receive(payload, soon()).error().code(), ErrorCode::kUnavailable) << bytes;
  }
}

/// A peer that ended its sending only can still be sent to.
TEST(TcpLink, HalfClosedPeerStillReceives) {
  const auto listener = listen_tcp("127.0.0.1:0", {});
  const Descriptor peer = raw_peer(*listener);
  const auto link = listener->accept(soon()).value();
  ::shutdown(peer.get(), SHUT_WR);
  std::vector<std::byte> payload;
  EXPECT_EQ(link->receive(payload, soon()).error().code(), ErrorCode::kUnavailable);
  ASSERT_TRUE(link->send({.id = 1}, {}, soon()).ok());
  ASSERT_TRUE(wait_for(peer.get(), Wait::kReadable, soon()));
  std::array<std::byte, kFrameHeaderBytes> head;
  EXPECT_EQ(::recv(peer.get(), head.data(), head.size(), 0), static_cast<ssize_t>(head.size()));
}

TEST(TcpLink, PeerThatReadsNothingTimesOut) {
  const auto listener = listen_tcp("127.0.0.1:0", {});
  const Descriptor peer = raw_peer(*listener);
  const auto link = listener->accept(soon()).value();
  const std::vector<std::byte> bytes = numbered(64 << 20);  // more than any socket's buffers
  const Parts parts{bytes};
  EXPECT_EQ(link->send({.kind = FrameKind::kBytes}, parts, after(0.2)).error().code(), ErrorCode::kTimeout);
  EXPECT_EQ(link->send({}, {}, soon()).error().code(), ErrorCode::kUnavailable);
}

TEST(TcpLink, CloseFromAnotherThreadWakesBothDirections) {
  const auto listener = listen_tcp("127.0.0.1:0", {});
  const Descriptor peer = raw_peer(*listener);
  const auto link = listener->accept(soon()).value();
  const std::vector<std::byte> bytes = numbered(64 << 20);
  const Parts parts{bytes};
  ErrorCode sent{}, received{};
  std::thread sender([&] { sent = link->send({.kind = FrameKind::kBytes}, parts, after(600)).error().code(); });
  std::thread receiver([&] {
    std::vector<std::byte> payload;
    received = link->receive(payload, after(600)).error().code();
  });
  while (link->figures().bytes_sent == 0) std::this_thread::yield();
  link->close();
  sender.join();
  receiver.join();
  EXPECT_EQ(sent, ErrorCode::kUnavailable);
  EXPECT_EQ(received, ErrorCode::kUnavailable);
  std::vector<std::byte> payload;
  EXPECT_EQ(link->receive(payload, soon()).error().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(link->send({}, {}, soon()).error().code(), ErrorCode::kUnavailable);
}

TEST(TcpLink, NothingIsReceivedAfterClose) {
  const LinkPair pair = connected_pair();
  ASSERT_TRUE(pair.near->send({.id = 1}, {}, soon()).ok());
  std::vector<std::byte> payload;
  ASSERT_TRUE(pair.far->receive(payload, soon()).ok());
  ASSERT_TRUE(pair.near->send({.id = 2}, {}, soon()).ok());
  pair.far->close();
  EXPECT_EQ(pair.far->receive(payload, soon()).error().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(pair.near->receive(payload, soon()).error().code(), ErrorCode::kUnavailable);
}

/// The last frame arrives although its sender left with unread bytes in its socket.
TEST(TcpLink, LastFrameSurvivesUnreadBytes) {
  LinkPair pair = connected_pair();
  const std::vector<std::byte> bytes = numbered(10'000);
  const Parts parts{bytes};
  ASSERT_TRUE(pair.near->send({.kind = FrameKind::kBytes}, parts, soon()).ok());
  std::vector<std::byte> payload;
  ASSERT_TRUE(pair.far->send({.id = 8}, {}, soon()).ok());
  pair.far.reset();
  const Result<FrameHeader> last = pair.near->receive(payload, soon());
  ASSERT_TRUE(last.ok()) << last.error().message();
  EXPECT_EQ(last.value().id, 8u);
}

TEST(TcpLink, RefusesFramesThatAreTooLong) {
  const LinkPair pair = connected_pair();
  const std::vector<std::byte> bytes = numbered(10'000);
  const Parts parts{bytes};
  EXPECT_EQ(pair.near->send({.kind = FrameKind::kHeartbeat}, parts, soon()).error().code(),
            ErrorCode::kInvalidArgument);
  pair.far->limit_payload(9'999);
  ASSERT_TRUE(pair.near->send({.kind = FrameKind::kBytes}, parts, soon()).ok());
  std::vector<std::byte> payload;
  EXPECT_EQ(pair.far->receive(payload, soon()).error().code(), ErrorCode::kCorrupt);
  EXPECT_EQ(payload.capacity(), 0u);
}

/// Random bytes, and frames with random damage: an error or a frame, never more. HEADRACE_GARBAGE_SECONDS sets the
/// time.
TEST(TcpLink, GarbageIsRefused) {
  const char* setting = std::getenv("HEADRACE_GARBAGE_SECONDS");
  const Deadline end = after(setting != nullptr ? std::atof(setting) : 2);
  const auto listener = listen_tcp("127.0.0.1:0", {});
  std::mt19937 random(1);
  std::vector<std::byte> payload;
  int64_t num_refused = 0;
  while (std::chrono::steady_clock::now() < end) {
    std::unique_ptr<Link> link;
    {
      const Descriptor peer = raw_peer(*listener);
      link = listener->accept(soon()).value();
      const auto head = encode_header({.kind = FrameKind{static_cast<uint8_t>(1 + random() % 6)},
                                       .payload_bytes = static_cast<int64_t>(random() % 300)});
      std::vector<std::byte> bytes(head.begin(), head.end());
      bytes.resize(random() % 400);
      for (uint32_t n = random() % 4; n > 0 && !bytes.empty(); --n)
        bytes[random() % bytes.size()] = static_cast<std::byte>(random());
      write_raw(peer, bytes);
    }
    while (true) {
      const Result<FrameHeader> header = link->receive(payload, soon());
      if (!header) {
        EXPECT_NE(header.error().code(), ErrorCode::kTimeout);
        break;
      }
      EXPECT_EQ(static_cast<int64_t>(payload.size()), header.value().payload_bytes);
    }
    ++num_refused;
  }
  EXPECT_GT(num_refused, 10);
}

TEST(TcpNetwork, ConnectsByNameAndByIpv6) {
  for (const std::string host : {"localhost", "127.0.0.1", "[::1]"}) {
    std::unique_ptr<Listener> listener;
    try {
      listener = listen_tcp(host + ":0", {});
    } catch (const Error& error) {
      if (host == "[::1]") GTEST_SKIP() << "no IPv6 here: " << error.message();
      throw;
    }
    const std::string address = cat(host, ':', listener->port());
    const auto near = make_tcp_network({})->connect(address, soon());
    ASSERT_TRUE(near.ok()) << near.error().message();
    EXPECT_EQ(near.value()->peer(), address);
    const auto far = listener->accept(soon());
    ASSERT_TRUE(far.ok());
    EXPECT_NE(far.value()->peer().find(':'), std::string::npos);
  }
}

TEST(TcpNetwork, NamesTheAddressThatDoesNotAnswer) {
  uint16_t port = 0;
  {
    const auto listener = listen_tcp("127.0.0.1:0", {});
    port = listener->port();
  }
  const std::string address = cat("127.0.0.1:", port);
  const auto link = make_tcp_network({})->connect(address, soon());
  ASSERT_FALSE(link.ok());
  EXPECT_EQ(link.error().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(link.error().message(), address + ": Connection refused");
}

TEST(TcpNetwork, RefusesWhatIsNoAddress) {
  for (const char* text : {"", "host", ":80", "host:", "host:x", "host:70000", "::1:80", "[::1]", "[::1", "a]:1"}) {
    const auto link = make_tcp_network({})->connect(text, soon());
    ASSERT_FALSE(link.ok()) << text;
    EXPECT_EQ(link.error().code(), ErrorCode::kInvalidArgument) << text;
  }
}

TEST(TcpListener, PortTakenIsUnavailable) {
  const auto first = listen_tcp("127.0.0.1:0", {});
  try {
    (void)listen_tcp(cat("127.0.0.1:", first->port()), {}, "--listen");
    FAIL() << "two listeners on one port";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    EXPECT_EQ(error.message(), cat("--listen: 127.0.0.1:", first->port(),
                                   ": cannot listen: Address already in use; end what listens there, or take another "
                                   "port"));
  }
}

TEST(TcpListener, TimeoutThenCloseFromAnotherThread) {
  const auto listener = listen_tcp("127.0.0.1:0", {});
  EXPECT_EQ(listener->accept(after(0.01)).error().code(), ErrorCode::kTimeout);
  std::thread closer([&] { listener->close(); });
  EXPECT_EQ(listener->accept(after(600)).error().code(), ErrorCode::kUnavailable);
  closer.join();
  EXPECT_EQ(listener->accept(after(600)).error().code(), ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace headrace::cluster
