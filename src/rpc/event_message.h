#pragma once

#include "headrace/generation.h"

namespace headrace::v1 {
class GenerateEvent;
class GenerateResponse;
}  // namespace headrace::v1

namespace headrace::rpc {

/// An event without error; its usage goes along with the last one of each choice.
[[nodiscard]] v1::GenerateEvent event_message(const GenerationEvent& event);
[[nodiscard]] v1::GenerateResponse answer_message(const Answer& answer);

/// The same, read by a client. Throws Error(kCorrupt).
[[nodiscard]] GenerationEvent read_event(const v1::GenerateEvent& message);
[[nodiscard]] Answer read_answer(const v1::GenerateResponse& message);

}  // namespace headrace::rpc
