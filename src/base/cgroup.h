#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headrace {

// Limits that control groups set for this process. `root` is put before every path, so that a test can stand in its own
// /proc and /sys. Source: cgroups(7), proc(5) "mountinfo", the kernel's cgroup-v1 and cgroup-v2 documents.

/// A folder of the cgroup file system.
struct CgroupFolder {
  std::string path;
  bool is_v2 = false;
};
/// The folders of the group of this process and of those above it, for a controller ("cpu", "memory"), of v1 and v2.
[[nodiscard]] std::vector<CgroupFolder> cgroup_folders(std::string_view controller, const std::string& root = "");

/// CPUs that the process may use on average (quota / period; 1.5, say): the least over its groups. nullopt where
/// nothing limits it or nothing can be read.
[[nodiscard]] std::optional<double> cgroup_cpu_limit(const std::string& root = "");

/// Memory that the process may still use: limit less use, the least over its groups. nullopt as above.
[[nodiscard]] std::optional<int64_t> cgroup_memory_left(const std::string& root = "");

}  // namespace headrace
