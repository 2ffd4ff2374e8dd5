#pragma once

#include "base/cat.h"

namespace headrace {

/// Prints the failed invariant and aborts: a bug of ours, never reached by user or network input.
[[noreturn]] void check_failed(const char* file, int line, const char* condition, const std::string& detail) noexcept;

}  // namespace headrace

/// HR_CHECK(cond, parts...): an invariant, checked in every build. An expression of type void.
#define HR_CHECK(cond, ...) \
  ((cond) ? (void)0 : ::headrace::check_failed(__FILE__, __LINE__, #cond, ::headrace::cat(__VA_ARGS__)))

/// HR_DCHECK: the same in debug builds only, for inner loops.
#ifdef NDEBUG
#define HR_DCHECK(cond, ...) ((void)0)
#else
#define HR_DCHECK(cond, ...) HR_CHECK(cond, __VA_ARGS__)
#endif
