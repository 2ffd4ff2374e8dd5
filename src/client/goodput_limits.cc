#include "client/goodput_limits.h"

#include <charconv>
#include <cmath>

#include "base/cat.h"
#include "base/error.h"

namespace headrace::client {

GoodputLimits read_goodput(const std::vector<std::string>& texts) {
  GoodputLimits limits;
  for (const std::string& text : texts) {
    const size_t colon = text.find(':');
    const std::string name = text.substr(0, colon);
    std::optional<double>* limit = name == "ttft"   ? &limits.ttft
                                   : name == "tpot" ? &limits.tpot
                                   : name == "e2el" ? &limits.e2el
                                                    : nullptr;
    double value = -1;
    if (colon != std::string::npos) {
      const char* end = text.data() + text.size();
      if (std::from_chars(text.data() + colon + 1, end, value).ptr != end) value = -1;
    }
    if (limit == nullptr || !(value >= 0) || std::isinf(value)) {
      throw Error(ErrorCode::kInvalidArgument,
                  cat("--goodput: '", printable(text), "' is not ttft:MS, tpot:MS or e2el:MS"));
    }
    *limit = value;
  }
  return limits;
}

}  // namespace headrace::client
