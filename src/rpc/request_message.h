#pragma once

#include <string_view>

#include "headrace/generation.h"
#include "openai/sampling_fields.h"

namespace headrace::v1 {
class GenerateRequest;
class SamplingParams;
}  // namespace headrace::v1

namespace headrace::rpc {

/// A message of a gRPC call. Throws Error(kInvalidArgument) for bytes that are none, or texts that are not UTF-8.
[[nodiscard]] v1::GenerateRequest parse_request(std::string_view bytes);

/// The sampling that a message asks for, on top of `defaults` (those of the model). Throws ParameterError for what is
/// beyond the limits; ranges are checked when it is submitted.
[[nodiscard]] SamplingParams read_sampling(const v1::SamplingParams& message, const SamplingParams& defaults,
                                           const openai::RequestLimits& limits);

/// What a message asks of a model, its prompt a text, tokens or messages. `max_length`, which takes a tokenizer, and
/// the model's name are left to the caller. Throws ParameterError.
[[nodiscard]] Request read_request(const v1::GenerateRequest& message, const SamplingParams& defaults,
                                   const openai::RequestLimits& limits);

}  // namespace headrace::rpc
