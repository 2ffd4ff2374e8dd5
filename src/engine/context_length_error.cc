#include "base/cat.h"
#include "headrace/generation.h"

namespace headrace {

ContextLengthError::ContextLengthError(int64_t prompt_tokens, int64_t max_model_len)
    : Error(ErrorCode::kInvalidArgument,
            cat("the prompt has ", prompt_tokens, " tokens, which leaves no room for an answer in ", max_model_len,
                " (--max-model-len)")),
      prompt_tokens_(prompt_tokens),
      max_model_len_(max_model_len) {}

}  // namespace headrace
