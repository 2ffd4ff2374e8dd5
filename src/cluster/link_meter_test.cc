#include "cluster/link_meter.h"

#include <gtest/gtest.h>

#include <thread>

#include "cluster/test_links.h"

namespace headrace::cluster {
namespace {

TEST(LinkMeter, MeasuresAndLeavesTheLinkUsable) {
  const LinkPair pair = connected_pair();
  std::thread far([&] { EXPECT_TRUE(answer_measuring(*pair.far, soon()).ok()); });
  const Result<LinkMeasure> measure = measure_link(*pair.near, "here", soon());
  far.join();
  ASSERT_TRUE(measure.ok()) << measure.error().message();
  EXPECT_GT(measure.value().round_trip_s, 0);
  EXPECT_GT(measure.value().bytes_per_s, 0);
  EXPECT_LE(pair.near->figures().bytes_sent, 250000);
  ASSERT_TRUE(pair.near->send({.id = 7}, {}, soon()).ok());
  std::vector<std::byte> payload;
  EXPECT_EQ(pair.far->receive(payload, soon()).value().id, 7u);
}

/// A link that delays: what is measured follows.
class SlowLink final : public Link {
 public:
  SlowLink(double echo_s, double bytes_per_s) : echo_s_(echo_s), bytes_per_s_(bytes_per_s) {}
  Result<std::monostate> send(FrameHeader header, std::span<const std::span<const std::byte>> parts,
                              Deadline) override {
    double bytes = 0;
    for (const auto part : parts) bytes += static_cast<double>(part.size());
    sent_ += bytes;
    last_ = header;
    std::this_thread::sleep_for(std::chrono::duration<double>(bytes / bytes_per_s_));
    return std::monostate{};
  }
  Result<FrameHeader> receive(std::vector<std::byte>&, Deadline) override {
    std::this_thread::sleep_for(std::chrono::duration<double>(echo_s_));
    return last_;
  }
  void limit_payload(int64_t) noexcept override {}
  void close() noexcept override {}
  const std::string& peer() const noexcept override { return peer_; }
  LinkFigures figures() const noexcept override { return {}; }
  double bytes_sent() const { return sent_; }

 private:
  double echo_s_, bytes_per_s_;
  double sent_ = 0;
  FrameHeader last_;
  std::string peer_ = "there";
};

/// Sleeps end late, never early, so the figures of the link are bounds on one side.
TEST(LinkMeter, FollowsTheLink) {
  SlowLink slow(0.002, 1e6);
  const Result<LinkMeasure> measure = measure_link(slow, "here", soon());
  ASSERT_TRUE(measure.ok());
  EXPECT_GE(measure.value().round_trip_s, 0.002);
  EXPECT_LE(measure.value().bytes_per_s, 1e6);
  EXPECT_GT(measure.value().bytes_per_s, 0);
  EXPECT_LE(slow.bytes_sent(), 300'000);  // 0.3 s of it
}

TEST(LinkMeter, ErrorsNameBothSides) {
  LinkPair pair = connected_pair();
  const std::string peer = pair.near->peer();
  pair.far.reset();
  const Result<LinkMeasure> measure = measure_link(*pair.near, "10.0.0.1:8100", soon());
  ASSERT_FALSE(measure.ok());
  EXPECT_EQ(measure.error().code(), ErrorCode::kUnavailable);
  EXPECT_NE(measure.error().message().find(cat("from 10.0.0.1:8100 to ", peer)), std::string::npos);
}

}  // namespace
}  // namespace headrace::cluster
