#include "apps/cpu_list.h"

#include <sched.h>

#include <charconv>
#include <string_view>

#include "base/error.h"

namespace headrace {
namespace {

/// The number at the front of `text`, which is then taken off; -1: there is none that a mask has room for.
int take_number(std::string_view& text) {
  int number = -1;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (fault != std::errc() || number < 0 || number >= CPU_SETSIZE) return -1;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return number;
}

/// False: `list` is none.
bool parse(std::string_view list, cpu_set_t& cpus) {
  CPU_ZERO(&cpus);
  while (true) {
    const int first = take_number(list);
    int last = first;
    if (first >= 0 && list.starts_with('-')) {
      list.remove_prefix(1);
      last = take_number(list);
    }
    if (first < 0 || last < first) return false;
    for (int cpu = first; cpu <= last; ++cpu) CPU_SET(static_cast<size_t>(cpu), &cpus);
    if (list.empty()) return true;
    if (!list.starts_with(',')) return false;
    list.remove_prefix(1);
  }
}

}  // namespace

void bind_to_cpus(const std::string& list) {
  if (list.empty()) return;
  cpu_set_t cpus;
  if (!parse(list, cpus)) {
    throw Error(ErrorCode::kInvalidArgument,
                cat("--cpu-list: '", printable(list), "' is not a list of CPUs, such as 0-3,8"));
  }
  if (sched_setaffinity(0, sizeof(cpus), &cpus) != 0) {
    throw Error(ErrorCode::kInvalidArgument, cat("--cpu-list: this process may use none of ", printable(list)));
  }
}

}  // namespace headrace
