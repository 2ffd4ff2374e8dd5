#pragma once

#include <functional>
#include <string>

#include "headrace/headrace.h"

namespace headrace {

/// Calls `generate` with a sink that streams to standard output; Ctrl-C stops the answer (kCancelled). Ends the answer
/// with a line end, and writes a line of timings to standard error unless `quiet`.
Generation stream_answer(const std::function<Generation(const TextSink&)>& generate, bool quiet);

/// "prompt 37 tokens, 120.3 tok/s; answer 8 tokens, 34.2 tok/s; first token after 0.31 s"
[[nodiscard]] std::string timing_text(const Generation& answer);

}  // namespace headrace
