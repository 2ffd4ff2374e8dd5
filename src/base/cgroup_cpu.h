#pragma once

#include <optional>
#include <string>

namespace headrace {

/// CPUs that the cgroup of this process may use on average (quota / period; 1.5, say): the least over the group and
/// those above it, of cgroup v1 and v2. nullopt where nothing limits it or nothing can be read.
/// `root` is put before every path, so that a test can stand in its own /proc and /sys.
/// Source: cgroups(7), proc(5) "mountinfo", the kernel's cgroup-v2 "cpu.max" and sched-bwc documents.
[[nodiscard]] std::optional<double> cgroup_cpu_limit(const std::string& root = "");

}  // namespace headrace
