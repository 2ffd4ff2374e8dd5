#include "cluster/heartbeat.h"

#include <gtest/gtest.h>

#include <array>
#include <condition_variable>
#include <optional>

#include "cluster/test_links.h"

namespace headrace::cluster {
namespace {

constexpr HeartbeatLimits kQuick{.interval_s = 0.01, .silence_s = 0.3};
constexpr HeartbeatLimits kPatient{.interval_s = 0.01, .silence_s = 60};

/// What a heartbeat says of its peer.
class Verdict {
 public:
  std::function<void(const Error&)> lost() {
    return [this](const Error& error) {
      const std::lock_guard lock(mutex_);
      ++count_;
      error_ = error;
      changed_.notify_all();
    };
  }
  std::optional<Error> wait() {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_until(lock, soon(), [&] { return error_.has_value(); }));
    return error_;
  }
  int count() {
    const std::lock_guard lock(mutex_);
    return count_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Error> error_;
  int count_ = 0;
};

void wait_for_answers(const Heartbeat& heartbeat, int64_t n) {
  const Deadline end = soon();
  while (heartbeat.figures().num_answered < n && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_GE(heartbeat.figures().num_answered, n);
}

TEST(Heartbeat, BothSidesHearEachOther) {
  LinkPair pair = connected_pair();
  Verdict near_verdict, far_verdict;
  {
    const Heartbeat near(std::move(pair.near), kPatient, near_verdict.lost());
    Heartbeat far(std::move(pair.far), kPatient, far_verdict.lost());
    wait_for_answers(near, 5);
    wait_for_answers(far, 5);
    const HeartbeatFigures figures = near.figures();
    EXPECT_GE(figures.num_sent, figures.num_answered);
    EXPECT_GT(figures.min_round_trip_s, 0);
    EXPECT_GE(figures.mean_round_trip_s, figures.min_round_trip_s);
    EXPECT_LT(near.seconds_since_heard(), 30);
    far.stop();
    EXPECT_EQ(near_verdict.wait()->code(), ErrorCode::kUnavailable);
  }
  EXPECT_EQ(near_verdict.count(), 1);
  EXPECT_EQ(far_verdict.count(), 0);
}

/// The peer is there, as a stopped process is: its system takes the beats, nobody answers.
TEST(Heartbeat, SilentPeerIsLostOnce) {
  LinkPair pair = connected_pair();
  const std::string peer = pair.near->peer();
  Verdict verdict;
  {
    const Heartbeat heartbeat(std::move(pair.near), kQuick, verdict.lost());
    const std::optional<Error> error = verdict.wait();
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), ErrorCode::kTimeout);
    EXPECT_NE(error->message().find(peer), std::string::npos);
    EXPECT_GE(heartbeat.seconds_since_heard(), kQuick.silence_s);
    // All intervals of the silence but the first; fewer only where this side overslept and began to count again.
    const HeartbeatFigures figures = heartbeat.figures();
    EXPECT_GE(figures.num_missed + 1000 * figures.num_overslept, 28);
  }
  EXPECT_EQ(verdict.count(), 1);
}

TEST(Heartbeat, OtherFramesAreRefused) {
  LinkPair pair = connected_pair();
  ASSERT_TRUE(pair.far->send({.kind = FrameKind::kMessage}, {}, soon()).ok());
  Verdict verdict;
  const Heartbeat heartbeat(std::move(pair.near), kPatient, verdict.lost());
  EXPECT_EQ(verdict.wait()->code(), ErrorCode::kCorrupt);
}

/// A link to a peer that says nothing; what its receiver waits for is up to `wait`.
class SilentLink final : public Link {
 public:
  using Wait = std::function<void(int call, Deadline)>;
  explicit SilentLink(Wait wait) : wait_(std::move(wait)) {}
  Result<std::monostate> send(FrameHeader, std::span<const std::span<const std::byte>>, Deadline) override {
    return std::monostate{};
  }
  Result<FrameHeader> receive(std::vector<std::byte>&, Deadline deadline) override {
    if (closed_) return Error(ErrorCode::kUnavailable, "closed");
    wait_(calls_++, deadline);
    return Error(ErrorCode::kTimeout, "nothing");
  }
  void limit_payload(int64_t) noexcept override {}
  void close() noexcept override { closed_ = true; }
  const std::string& peer() const noexcept override { return peer_; }
  LinkFigures figures() const noexcept override { return {}; }

 private:
  Wait wait_;
  int calls_ = 0;
  std::atomic<bool> closed_{false};
  std::string peer_ = "peer";
};

/// This side's thread does not run for longer than the peer may be silent: not the peer's fault. When it then runs in
/// time, the peer has the whole limit again.
TEST(Heartbeat, OwnOversleepBlamesNobody) {
  Deadline last_oversleep{};
  const auto wait = [&](int call, Deadline deadline) {
    const bool oversleeps = call < 3;
    std::this_thread::sleep_until(oversleeps ? deadline + std::chrono::milliseconds(350) : deadline);
    if (oversleeps) last_oversleep = std::chrono::steady_clock::now();
  };
  Verdict verdict;
  {
    const Heartbeat heartbeat(std::make_unique<SilentLink>(wait), kQuick, verdict.lost());
    ASSERT_TRUE(verdict.wait());
    EXPECT_GE(heartbeat.figures().num_overslept, 3);
  }
  const std::chrono::duration<double> judged = std::chrono::steady_clock::now() - last_oversleep;
  EXPECT_GE(judged.count(), kQuick.silence_s);
}

}  // namespace
}  // namespace headrace::cluster
