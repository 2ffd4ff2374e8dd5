#pragma once

#include <rapidcheck.h>

#include <iostream>

#include "base/test_walk.h"

namespace headrace {

/// Checks a property of random histories: 200 of them, 10 000 in the long tier. Prints a failure; true where there was
/// none.
template <class Property>
[[nodiscard]] bool holds_for_histories(const Property& property) {
  rc::detail::TestParams params = rc::detail::configuration().testParams;
  params.maxSuccess = is_long_tier() ? 10'000 : 200;
  const rc::detail::TestResult result = rc::detail::checkTestable(property, rc::detail::TestMetadata{}, params);
  if (result.template is<rc::detail::SuccessResult>()) return true;
  rc::detail::printResultMessage(result, std::cerr);
  return false;
}

}  // namespace headrace
