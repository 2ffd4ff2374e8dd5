#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "cluster/result_codec.h"

using namespace headrace;
using namespace headrace::cluster;

/// A result that decodes encodes to the same bytes; an error keeps its code.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const std::byte> payload(reinterpret_cast<const std::byte*>(data), size);
  const Result<StepOutcome> outcome = decode_outcome(payload);
  if (!outcome) return 0;
  const StepOutcome& found = outcome.value();
  std::vector<std::byte> again;
  if (found.result.ok()) {
    encode_result(found.result.value(), found.stages, again);
    const auto values = std::as_bytes(std::span(found.result.value().data));
    again.insert(again.end(), values.begin(), values.end());
    if (again.size() != size || !std::equal(again.begin(), again.end(), payload.begin())) std::abort();
    return 0;
  }
  encode_failure(found.result.error(), found.stages, again);
  const Result<StepOutcome> twice = decode_outcome(again);
  if (!twice || twice.value().result.ok()) std::abort();
  if (twice.value().result.error().code() != found.result.error().code()) std::abort();
  return 0;
}
