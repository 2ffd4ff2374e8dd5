#include "base/system_memory.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

#include "base/cgroup.h"

namespace headrace {

int64_t available_memory_bytes() {
  int64_t available = std::numeric_limits<int64_t>::max();
  std::ifstream info("/proc/meminfo");
  for (std::string key; info >> key;) {
    if (key == "MemAvailable:") {
      int64_t kib = 0;
      info >> kib;
      available = kib * 1024;
      break;
    }
    info.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  if (const auto left = cgroup_memory_left()) available = std::min(available, *left);
  return available;
}

int64_t resident_memory_bytes() {
  std::ifstream statm("/proc/self/statm");
  int64_t total = 0, resident = 0;
  statm >> total >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

}  // namespace headrace
