#include "base/cgroup.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace headrace {
namespace {

/// A /proc and /sys of its own in a temporary folder.
class Cgroup : public testing::Test {
 protected:
  void SetUp() override {
    root_ = testing::TempDir() + "cgroup_" + testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(root_);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  std::string root_;
};

constexpr const char* kMountV2 = "29 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";

TEST_F(Cgroup, NothingThereMeansNoLimit) { EXPECT_EQ(cgroup_cpu_limit(root_), std::nullopt); }

TEST_F(Cgroup, Version2TakesTheLeastUpTheHierarchy) {
  write("/proc/self/cgroup", "0::/user.slice/job\n");
  write("/proc/self/mountinfo", kMountV2);
  write("/sys/fs/cgroup/user.slice/job/cpu.max", "max 100000\n");
  EXPECT_EQ(cgroup_cpu_limit(root_), std::nullopt);
  write("/sys/fs/cgroup/user.slice/cpu.max", "150000 100000\n");
  EXPECT_EQ(cgroup_cpu_limit(root_), 1.5);
  write("/sys/fs/cgroup/user.slice/job/cpu.max", "400000 100000\n");
  EXPECT_EQ(cgroup_cpu_limit(root_), 1.5);
  write("/sys/fs/cgroup/user.slice/job/cpu.max", "50000 100000\n");
  EXPECT_EQ(cgroup_cpu_limit(root_), 0.5);
}

TEST_F(Cgroup, Version1FindsTheCpuHierarchyAmongOthers) {
  write("/proc/self/cgroup", "3:cpuset:/other\n2:cpu,cpuacct:/docker/abc\n0::/\n");
  write("/proc/self/mountinfo",
        "40 31 0:30 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
        "41 31 0:31 /docker/abc /sys/fs/cgroup/cpu\\040quota ro - cgroup cgroup rw,cpu,cpuacct\n");
  write("/sys/fs/cgroup/cpu quota/cpu.cfs_quota_us", "-1\n");
  write("/sys/fs/cgroup/cpu quota/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cgroup_cpu_limit(root_), std::nullopt);
  write("/sys/fs/cgroup/cpu quota/cpu.cfs_quota_us", "250000\n");
  EXPECT_EQ(cgroup_cpu_limit(root_), 2.5);
}

TEST_F(Cgroup, AGroupOutsideTheMountLeavesTheMountPoint) {
  write("/proc/self/cgroup", "0::/../sibling\n");
  write("/proc/self/mountinfo", kMountV2);
  write("/sys/fs/cgroup/cpu.max", "300000 100000\n");
  EXPECT_EQ(cgroup_cpu_limit(root_), 3.0);
}

TEST_F(Cgroup, BrokenFilesAreNoLimit) {
  write("/proc/self/cgroup", "no colons here\n0:\n0::/a\n");
  write("/proc/self/mountinfo", std::string("short\n - \n") + kMountV2);
  write("/sys/fs/cgroup/a/cpu.max", "garbage");
  write("/sys/fs/cgroup/cpu.max", "100000 0\n");
  EXPECT_EQ(cgroup_cpu_limit(root_), std::nullopt);
}

TEST_F(Cgroup, MemoryLeftCountsDroppableFilePages) {
  write("/proc/self/cgroup", "0::/job\n");
  write("/proc/self/mountinfo", kMountV2);
  write("/sys/fs/cgroup/job/memory.max", "max\n");
  write("/sys/fs/cgroup/job/memory.current", "1000\n");
  EXPECT_EQ(cgroup_memory_left(root_), std::nullopt);
  write("/sys/fs/cgroup/job/memory.max", "5000\n");
  write("/sys/fs/cgroup/job/memory.stat", "anon 700\ninactive_file 200\n");
  EXPECT_EQ(cgroup_memory_left(root_), 4200);
  write("/sys/fs/cgroup/job/memory.current", "9000\n");
  EXPECT_EQ(cgroup_memory_left(root_), 0);
}

}  // namespace
}  // namespace headrace
