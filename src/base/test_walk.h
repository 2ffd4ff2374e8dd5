#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

/// How much of its cases a test takes.
namespace headrace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

/// Whether this is the long tier (scripts/test --long), which leaves nothing out.
[[nodiscard]] inline bool is_long_tier() {
  const char* const tier = std::getenv("HEADRACE_LONG");
  return tier != nullptr && std::string_view(tier) == "1";
}

/// Whether all cases are taken. Sanitizers look for bad accesses, which a few shapes of each kernel show; that the
/// numbers are right for every shape is shown by the same test without them, ten times as fast.
[[nodiscard]] inline bool takes_all_cases() { return !kSanitized || is_long_tier(); }

/// A walk over cases of which every `stride`-th is taken where not all are:
///
///   TestWalk walk("shapes of attention", 5);
///   for (const Shape& shape : shapes) if (walk.takes_next()) expect_right(shape);
///
/// When it ends it says what was left out, in a line that scripts/test repeats. A stride that shares no divisor with
/// the periods of nested loops takes some of each.
class TestWalk {
 public:
  TestWalk(std::string what, int stride, int first = 0)
      : what_(std::move(what)), stride_(takes_all_cases() ? 1 : stride), place_(first) {}
  TestWalk(const TestWalk&) = delete;
  TestWalk& operator=(const TestWalk&) = delete;
  ~TestWalk() {
    if (stride_ > 1) std::printf("left out: all but every %d. of the %s\n", stride_, what_.c_str());
  }
  [[nodiscard]] bool takes_next() { return place_++ % stride_ == 0; }

 private:
  std::string what_;
  int stride_, place_;
};

}  // namespace headrace
