#include "engine/golden_outcome.h"

#include "base/cat.h"
#include "base/error.h"

namespace headrace {

std::string setup_text(const GoldenSetup& setup) {
  std::string text = cat(numerics_name(setup.numerics), " ", isa_name(setup.isa));
  if (setup.threads != 1) text += cat(" threads=", setup.threads);
  if (setup.chunk_tokens > 0) text += cat(" chunk=", setup.chunk_tokens);
  if (setup.stages > 1) text += cat(" stages=", setup.stages);
  if (setup.together) text += " together";
  if (setup.kv_dtype) text += cat(" kv=", kv_dtype_name(*setup.kv_dtype));
  if (setup.backend == BackendKind::kFakedev) text += " fakedev";
  return text;
}

std::string_view verdict_name(Verdict verdict) noexcept {
  switch (verdict) {
    case Verdict::kOk:
      return "OK";
    case Verdict::kFailed:
      return "FAILED";
    case Verdict::kNotTried:
      return "NOT TRIED";
  }
  return "unknown";
}

GoldenOutcome outcome_of_error(std::string name, std::string setup, const std::exception& error) {
  GoldenOutcome outcome{.name = std::move(name), .setup = std::move(setup), .verdict = Verdict::kFailed};
  outcome.reason = printable(error.what(), 400);
  if (const auto* known = dynamic_cast<const Error*>(&error)) {
    const bool out_of_reach = known->code() == ErrorCode::kUnsupported || known->code() == ErrorCode::kNotFound ||
                              known->code() == ErrorCode::kOutOfMemory || known->code() == ErrorCode::kUnavailable;
    if (out_of_reach) outcome.verdict = Verdict::kNotTried;
  }
  return outcome;
}

}  // namespace headrace
