#pragma once

#include <vector>

#include "base/options.h"
#include "headrace/sampling_params.h"

namespace headrace {

/// One row for each sampling parameter, with its range; they write into `params`, which must outlive them.
[[nodiscard]] std::vector<Option> sampling_options(SamplingParams& params);

}  // namespace headrace
