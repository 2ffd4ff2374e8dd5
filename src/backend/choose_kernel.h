#pragma once

#include <array>

#include "base/log.h"
#include "ops/op_table.h"

namespace headrace {

/// The best candidate of class `isa` or below for which `reproduces(fn)` holds; among equals the last listed. One that
/// does not reproduce the known answer is logged, and the next lower is taken. The reference is taken unasked: it
/// defines the answer.
template <class Fn, class Reproduces>
[[nodiscard]] const OpVariant<Fn>& choose_kernel(const OpTable<Fn>& table, Isa isa, const Reproduces& reproduces) {
  std::array<bool, OpTable<Fn>::kMaxVariants> refused{};
  while (true) {
    const OpVariant<Fn>* found = &table.reference();
    for (const OpVariant<Fn>& v : table) {
      if (v.isa <= isa && v.isa >= found->isa && !refused[static_cast<size_t>(&v - table.begin())]) found = &v;
    }
    if (found == &table.reference() || reproduces(found->fn)) return *found;
    refused[static_cast<size_t>(found - table.begin())] = true;
    log_warn("{}: the {} kernel does not reproduce the known answer on this machine and is not used", table.name(),
             isa_name(found->isa));
  }
}

}  // namespace headrace
