"""The lines that users of DeepSpeed-MII know."""
from __future__ import annotations

from typing import Any, Callable, Sequence

from ._generator import Generator
from ._llm import LLM
from ._types import Prompt, Response, SamplingParams


def generate(generator: Any, prompts: Prompt | Sequence[Prompt], sampling_params: SamplingParams | None = None, *,
             streaming_fn: Callable[[list[Response]], None] | None = None, max_new_tokens: int | None = None,
             min_new_tokens: int | None = None, max_length: int | None = None, do_sample: bool | None = None,
             return_full_text: bool = False, **sampling: Any) -> list[Response]:
    """Answers with MII's keywords, and those of SamplingParams.

    streaming_fn: called with each piece of the answer to the one prompt, as a list with one Response.
    do_sample: False: greedy. max_length: of prompt and answer together, in tokens.
    """
    params = sampling_params or SamplingParams()
    if max_new_tokens is not None:
        sampling["max_tokens"] = max_new_tokens
    if min_new_tokens is not None:
        sampling["min_tokens"] = min_new_tokens
    if do_sample is False:
        sampling["temperature"] = 0.0
    params = SamplingParams(**{**params.given(), **sampling})
    options = {} if max_length is None else {"max_length": max_length}
    if streaming_fn is not None:
        if not isinstance(prompts, str):
            if len(prompts) != 1:
                raise ValueError("streaming_fn: expected one prompt")
            prompts = prompts[0]  # type: ignore[assignment]
        whole = Response(prompts)
        for chunk in generator.stream(prompts, params, **options):
            whole.add(chunk)
            piece = Response(prompts)
            piece.add(chunk)
            streaming_fn([piece])
        return [whole]
    responses = Generator.generate(generator, prompts, params, **options)
    if return_full_text:
        for response in responses:
            if isinstance(response.prompt, str):
                for output in response.outputs:
                    output.text = response.prompt + output.text
    return responses


def pipeline(model: str, **options: Any) -> LLM:
    """A model in this process: `pipe = pipeline(model); pipe(["DeepSpeed is"], max_new_tokens=64)`."""
    return LLM(model, **options)
