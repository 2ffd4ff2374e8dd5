#pragma once

#include <immintrin.h>

/// In an unnamed namespace, unlike other headers: each variant file needs a copy of its own, compiled for its own
/// instruction set, that the linker cannot exchange for another's.
namespace headrace {
namespace {

/// While it lives, subnormals are zero in operands and results of this thread's vector arithmetic, as they always are
/// in AMX tiles. What computes must be called, not inlined, from where this stands: the compiler knows nothing of what
/// the register does.
class FlushSubnormals {
 public:
  FlushSubnormals() : before_(_mm_getcsr()) { _mm_setcsr(0x9fc0); }  // round to nearest, nothing traps
  ~FlushSubnormals() { _mm_setcsr(before_); }
  FlushSubnormals(const FlushSubnormals&) = delete;
  FlushSubnormals& operator=(const FlushSubnormals&) = delete;

 private:
  unsigned before_;
};

}  // namespace
}  // namespace headrace
