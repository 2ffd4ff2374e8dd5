#include "base/cgroup.h"

#include <algorithm>
#include <fstream>
#include <string_view>

namespace headrace {
namespace {

/// A mounted hierarchy: the group `root` of it is seen at `mount_point`.
struct Mount {
  std::string root;
  std::string mount_point;
  bool is_v2 = false;
};

std::vector<std::string> lines_of(const std::string& path) {
  std::vector<std::string> lines;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const size_t end = text.find(separator);
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

bool names(std::string_view comma_list, std::string_view controller) {
  const std::vector<std::string> all = split(comma_list, ',');
  return std::find(all.begin(), all.end(), controller) != all.end();
}

/// mountinfo writes space, tab, newline and backslash as \ooo.
std::string unescape_octal(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size()) {
      int code = 0;
      for (size_t j = 1; j <= 3; ++j) code = code * 8 + (text[i + j] - '0');
      out += static_cast<char>(code);
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

/// id parent major:minor root mount-point options [tag...] - type source super-options
std::vector<Mount> mounts_of(std::string_view controller, const std::string& root) {
  std::vector<Mount> mounts;
  for (const std::string& line : lines_of(root + "/proc/self/mountinfo")) {
    const std::vector<std::string> fields = split(line, ' ');
    const auto dash = std::find(fields.begin(), fields.end(), "-");
    if (fields.size() < 5 || fields.end() - dash < 4) continue;
    const bool is_v2 = dash[1] == "cgroup2";
    if (!is_v2 && !(dash[1] == "cgroup" && names(dash[3], controller))) continue;
    mounts.push_back({unescape_octal(fields[3]), unescape_octal(fields[4]), is_v2});
  }
  return mounts;
}

/// "hierarchy:controllers:path" of the hierarchy that a mount shows; v2 is hierarchy 0 and names no controllers.
std::optional<std::string> group_path(std::string_view controller, const std::string& root, bool is_v2) {
  for (const std::string& line : lines_of(root + "/proc/self/cgroup")) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (is_v2 ? line.starts_with("0::") : names(controllers, controller)) return line.substr(second + 1);
  }
  return std::nullopt;
}

std::optional<double> ratio(double quota, double period) {
  if (!(quota > 0) || !(period > 0)) return std::nullopt;  // v1 writes quota -1 for "no limit"
  return quota / period;
}

std::optional<double> cpu_limit_of(const CgroupFolder& folder) {
  double quota = 0;
  double period = 0;
  if (folder.is_v2) {
    std::ifstream in(folder.path + "/cpu.max");
    if (!(in >> quota >> period)) return std::nullopt;  // "max 100000" is no number: no limit
    return ratio(quota, period);
  }
  if (!(std::ifstream(folder.path + "/cpu.cfs_quota_us") >> quota)) return std::nullopt;
  if (!(std::ifstream(folder.path + "/cpu.cfs_period_us") >> period)) return std::nullopt;
  return ratio(quota, period);
}

std::optional<int64_t> number_in(const std::string& path) {
  int64_t value = 0;
  if (!(std::ifstream(path) >> value)) return std::nullopt;  // "max" is no number: no limit
  return value;
}

/// File pages that the kernel would drop first; they count as used but are as good as free.
int64_t droppable_bytes(const CgroupFolder& folder) {
  std::ifstream in(folder.path + "/memory.stat");
  const std::string_view wanted = folder.is_v2 ? "inactive_file" : "total_inactive_file";
  int64_t value = 0;
  for (std::string key; in >> key >> value;) {
    if (key == wanted) return value;
  }
  return 0;
}

std::optional<int64_t> memory_left_of(const CgroupFolder& folder) {
  const auto limit = number_in(folder.path + (folder.is_v2 ? "/memory.max" : "/memory.limit_in_bytes"));
  const auto used = number_in(folder.path + (folder.is_v2 ? "/memory.current" : "/memory.usage_in_bytes"));
  if (!limit || !used) return std::nullopt;
  return std::max<int64_t>(*limit - *used + droppable_bytes(folder), 0);
}

}  // namespace

std::vector<CgroupFolder> cgroup_folders(std::string_view controller, const std::string& root) {
  std::vector<CgroupFolder> folders;
  for (const Mount& mount : mounts_of(controller, root)) {
    const std::optional<std::string> group = group_path(controller, root, mount.is_v2);
    if (!group) continue;
    // Inside a container the mount shows a part of the hierarchy: its root is cut off the path. A path outside that
    // part (another cgroup namespace) leaves the mount point itself as the nearest group that can be seen.
    std::string below;
    if (mount.root == "/") {
      below = *group;
    } else if (group->starts_with(mount.root + "/")) {
      below = group->substr(mount.root.size());
    }
    if (below.starts_with("/..")) below.clear();
    while (below.ends_with('/')) below.pop_back();
    while (true) {
      folders.push_back({root + mount.mount_point + below, mount.is_v2});
      if (below.empty()) break;
      below.resize(below.rfind('/'));
    }
  }
  return folders;
}

std::optional<double> cgroup_cpu_limit(const std::string& root) {
  std::optional<double> least;
  for (const CgroupFolder& folder : cgroup_folders("cpu", root)) {
    const std::optional<double> limit = cpu_limit_of(folder);
    if (limit) least = least ? std::min(*least, *limit) : limit;
  }
  return least;
}

std::optional<int64_t> cgroup_memory_left(const std::string& root) {
  std::optional<int64_t> least;
  for (const CgroupFolder& folder : cgroup_folders("memory", root)) {
    const std::optional<int64_t> left = memory_left_of(folder);
    if (left) least = least ? std::min(*least, *left) : left;
  }
  return least;
}

}  // namespace headrace
