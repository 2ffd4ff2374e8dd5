#include "cluster/start_phase.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace headrace::cluster {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;
using testing::Not;

class PhaseReportTest : public testing::Test {
 protected:
  PhaseReport report(const StartPhase& phase, double pause) {
    return {"worker b", phase, [this](const std::string& line) { lines_.push_back(line); },
            std::chrono::duration<double>(pause)};
  }
  std::vector<std::string> lines_;
};

TEST_F(PhaseReportTest, LinesNameNodeAndPhase) {
  PhaseReport sending = report(kSendPhase, 0);
  sending.progress_bytes(30'000'000, 120'000'000);
  sending.done("120 MB");
  PhaseReport packing = report(kPackPhase, 0);
  packing.progress(0.5);
  EXPECT_THAT(lines_,
              ElementsAre(MatchesRegex("worker b: send weights: 30.0 MB of 120.0 MB \\(25 %\\), .* MB/s"),
                          MatchesRegex("worker b: send weights: done in .* s, 120 MB"), "worker b: pack: 50 %"));
}

TEST_F(PhaseReportTest, ManySignsOfProgressAreFewLines) {
  PhaseReport packing = report(kPackPhase, 3600);
  for (int i = 0; i < 100; ++i) packing.progress(i / 100.0);
  packing.progress_bytes(1, 0);
  EXPECT_THAT(lines_, IsEmpty());
}

TEST_F(PhaseReportTest, FailuresNameLimitAndRemedy) {
  const PhaseReport packing = report(kPackPhase, 0);
  const Error late = packing.failure(Error(ErrorCode::kTimeout, "worker b: load: sent nothing before the deadline"));
  EXPECT_EQ(late.code(), ErrorCode::kTimeout);
  EXPECT_EQ(late.message(),
            cat("worker b: pack: load: sent nothing before the deadline (limit 120 s); ", kPackPhase.remedy));
  const Error gone = packing.failure(Error(ErrorCode::kUnavailable, "worker b2: gone"));
  EXPECT_EQ(gone.message(), cat("worker b: pack: worker b2: gone; ", kPackPhase.remedy));
  // What was refused has a remedy of its own.
  const Error refused = packing.failure(Error(ErrorCode::kInvalidArgument, "give all the same secret"));
  EXPECT_EQ(refused.message(), "worker b: pack: give all the same secret");
}

}  // namespace
}  // namespace headrace::cluster
