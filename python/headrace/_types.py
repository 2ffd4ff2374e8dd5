"""What is asked and what is answered."""
from __future__ import annotations

import dataclasses
from typing import Any, Mapping, Sequence, Union

#: A text to be continued, or the tokens of one.
Prompt = Union[str, Sequence[int]]
#: {"role": "user", "content": "..."}
Message = Mapping[str, str]


@dataclasses.dataclass
class SamplingParams:
    """How the next token is chosen and when an answer ends; names and meanings are those of the OpenAI and vLLM APIs.

    What is None is as the model's authors advise (generation_config.json), or greedy where they say nothing.
    """
    temperature: float | None = None  #: 0: greedy
    top_k: int | None = None  #: 0 or -1: all
    top_p: float | None = None
    min_p: float | None = None
    typical_p: float | None = None
    repetition_penalty: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    seed: int | None = None
    logit_bias: Mapping[int, float] | None = None
    allowed_token_ids: Sequence[int] | None = None
    bad_words: Sequence[Sequence[int]] | None = None  #: sequences of tokens that the answer may not hold
    structured_output: Mapping[str, Any] | None = None  #: {"json_schema": "..."}, {"regex": "..."}, {"choice": [...]}
    n: int | None = None  #: answers to one prompt
    best_of: int | None = None
    max_tokens: int | None = None  #: 0: as many as the context allows
    min_tokens: int | None = None
    ignore_eos: bool | None = None
    stop: str | Sequence[str] | None = None  #: texts that end the answer
    stop_token_ids: Sequence[int] | None = None
    include_stop_str_in_output: bool | None = None
    skip_special_tokens: bool | None = None
    logprobs: int | None = None  #: for each token its own and the N best
    prompt_logprobs: int | None = None

    def given(self) -> dict[str, Any]:
        """What is not None, for the C++ side."""
        values = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        values = {name: value for name, value in values.items() if value is not None}
        if isinstance(values.get("stop"), str):
            values["stop"] = [values["stop"]]
        if isinstance(values.get("seed"), int):
            values["seed"] %= 1 << 64
        for name in ("allowed_token_ids", "stop_token_ids", "stop"):
            if name in values:
                values[name] = list(values[name])
        return values


@dataclasses.dataclass(frozen=True)
class Usage:
    """What a request has cost."""
    prompt_tokens: int = 0
    cached_tokens: int = 0  #: of the prompt, found in the prefix cache
    completion_tokens: int = 0
    queued_seconds: float = 0
    first_token_seconds: float = 0
    total_seconds: float = 0


@dataclasses.dataclass(frozen=True)
class TokenLogprob:
    token: int
    logprob: float  #: natural logarithm of the probability
    rank: int  #: 1: the most probable


@dataclasses.dataclass(frozen=True)
class TokenLogprobs:
    chosen: TokenLogprob
    top: list[TokenLogprob]  #: the best first


@dataclasses.dataclass(frozen=True)
class Chunk:
    """A piece of a streamed answer. The texts of a choice's pieces, joined, are its answer."""
    text: str
    token_ids: list[int]
    index: int = 0  #: of the choice
    finish_reason: str | None = None  #: "stop", "length" or "cancelled", with the choice's last piece
    stop_reason: str | int | None = None  #: the text or token that ended it
    logprobs: list[TokenLogprobs] = dataclasses.field(default_factory=list)
    prompt_logprobs: list[TokenLogprobs] = dataclasses.field(default_factory=list)
    usage: Usage = Usage()  #: with the last piece

    def __str__(self) -> str:
        return self.text


@dataclasses.dataclass
class Completion:
    """One of the answers to a prompt."""
    index: int = 0
    text: str = ""
    token_ids: list[int] = dataclasses.field(default_factory=list)
    finish_reason: str | None = None
    stop_reason: str | int | None = None
    logprobs: list[TokenLogprobs] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Response:
    """The answers to one prompt; `text`, `token_ids` and `finish_reason` are those of the first."""
    prompt: Any
    outputs: list[Completion] = dataclasses.field(default_factory=list)
    prompt_logprobs: list[TokenLogprobs] = dataclasses.field(default_factory=list)
    usage: Usage = Usage()

    @property
    def text(self) -> str:
        return self.outputs[0].text

    @property
    def token_ids(self) -> list[int]:
        return self.outputs[0].token_ids

    @property
    def finish_reason(self) -> str | None:
        return self.outputs[0].finish_reason

    # The names that DeepSpeed-MII gives to the same.
    @property
    def generated_text(self) -> str:
        return self.text

    @property
    def prompt_length(self) -> int:
        return self.usage.prompt_tokens

    @property
    def generated_length(self) -> int:
        return len(self.token_ids)

    def __str__(self) -> str:
        return self.text

    def add(self, chunk: Chunk) -> None:
        """Adds a piece."""
        while len(self.outputs) <= chunk.index:
            self.outputs.append(Completion(len(self.outputs)))
        output = self.outputs[chunk.index]
        output.text += chunk.text
        output.token_ids += chunk.token_ids
        output.logprobs += chunk.logprobs
        self.prompt_logprobs += chunk.prompt_logprobs
        if chunk.finish_reason is not None:
            output.finish_reason, output.stop_reason = chunk.finish_reason, chunk.stop_reason
        self.usage = chunk.usage


def _places(places: list) -> list[TokenLogprobs]:
    return [TokenLogprobs(TokenLogprob(*chosen), [TokenLogprob(*one) for one in top]) for chosen, top in places]


def read_event(event: tuple) -> tuple[Chunk, bool]:
    """A piece of what the C++ side tells, and whether it is the last."""
    choice, text, tokens, logprobs, prompt_logprobs, finish_reason, stop_reason, usage, last = event
    return Chunk(text, tokens, choice, finish_reason, stop_reason, _places(logprobs), _places(prompt_logprobs),
                 Usage(*usage)), last
