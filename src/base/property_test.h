#pragma once

#include <rapidcheck.h>

#include <cstdlib>
#include <iostream>
#include <string_view>

namespace headrace {

/// Checks a property of random histories: 200 of them, 10 000 in the long tier. Prints a failure; true where there was
/// none.
template <class Property>
[[nodiscard]] bool holds_for_histories(const Property& property) {
  const char* const tier = std::getenv("HEADRACE_LONG");
  rc::detail::TestParams params = rc::detail::configuration().testParams;
  params.maxSuccess = tier != nullptr && std::string_view(tier) == "1" ? 10'000 : 200;
  const rc::detail::TestResult result = rc::detail::checkTestable(property, rc::detail::TestMetadata{}, params);
  if (result.template is<rc::detail::SuccessResult>()) return true;
  rc::detail::printResultMessage(result, std::cerr);
  return false;
}

}  // namespace headrace
