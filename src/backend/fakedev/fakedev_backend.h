#pragma once

#include <memory>

#include "backend/backend.h"

namespace headrace {

/// A device for tests, to prove that nothing on the host touches device memory: its addresses lie in a range that is
/// always PROT_NONE, a queue thread of its own reaches the same memory by a second, private mapping and runs the
/// reference kernels there, asynchronously. Reserves `capacity_bytes` of address space.
[[nodiscard]] std::unique_ptr<Backend> make_fakedev_backend(int64_t capacity_bytes);

}  // namespace headrace
