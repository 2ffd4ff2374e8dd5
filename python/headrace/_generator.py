"""What a model in this process and a server have in common."""
from __future__ import annotations

import abc
import asyncio
import os
from typing import Any, AsyncIterator, Iterator, Sequence

from ._errors import HeadraceError
from ._types import Chunk, Message, Prompt, Response, SamplingParams, read_event


def _is_message(value: Any) -> bool:
    return isinstance(value, dict) or (hasattr(value, "keys") and hasattr(value, "__getitem__"))


def check_prompt(prompt: Any) -> Any:
    """A text, a list of tokens or a list of (role, content), as the C++ side takes them."""
    if isinstance(prompt, str):
        return prompt
    items = list(prompt)
    if items and _is_message(items[0]):
        return [(str(m["role"]), m["content"]) for m in items]
    if not all(isinstance(token, int) and not isinstance(token, bool) for token in items):
        raise TypeError("prompt: expected a text, a list of tokens, or a list of messages with role and content")
    return items


class Generator(abc.ABC):
    """Answers prompts. All functions may be called from any thread."""

    def __init__(self) -> None:
        self._pid = os.getpid()

    @abc.abstractmethod
    def _submit(self, prompt: Any, params: SamplingParams, waker: Any, streams: bool, **options: Any) -> Any:
        """Begins a request; returns an object with take(wait) and cancel()."""

    @abc.abstractmethod
    def _new_waker(self) -> Any:
        """An object that tells an event loop of news."""

    def _begin(self, prompt: Any, params: SamplingParams | None, waker: Any, streams: bool, options: dict) -> Any:
        if os.getpid() != self._pid:
            raise HeadraceError("this object was made before os.fork(): make one in each process")
        return self._submit(check_prompt(prompt), params or SamplingParams(), waker, streams, **options)

    def generate(self, prompts: Prompt | Sequence[Prompt], sampling_params: SamplingParams | None = None,
                 **options: Any) -> list[Response]:
        """Continues each prompt as it is; all are computed together. Ctrl-C, as any exception, cancels them."""
        if isinstance(prompts, str) or (len(prompts) > 0 and isinstance(prompts[0], int)):
            prompts = [prompts]  # type: ignore[list-item]
        return self._answer_all(list(prompts), sampling_params, options)

    def chat(self, messages: Sequence[Message] | Sequence[Sequence[Message]],
             sampling_params: SamplingParams | None = None, **options: Any) -> list[Response]:
        """Answers a conversation, or each of several, by the model's chat template."""
        conversations = list(messages)
        if conversations and _is_message(conversations[0]):
            conversations = [conversations]
        return self._answer_all(conversations, sampling_params, options)

    def _answer_all(self, prompts: list, params: SamplingParams | None, options: dict) -> list[Response]:
        requests: list = []
        try:
            for prompt in prompts:
                requests.append(self._begin(prompt, params, None, False, options))
            responses = []
            while len(responses) < len(prompts):
                response, ended = Response(prompts[len(responses)]), False
                while not ended:
                    for event in requests[len(responses)].take(True):
                        chunk, ended = read_event(event)
                        response.add(chunk)
                responses.append(response)
            return responses
        except BaseException:
            for request in requests:
                request.cancel()
            raise

    def stream(self, prompt: Prompt | Sequence[Message], sampling_params: SamplingParams | None = None,
               **options: Any) -> Iterator[Chunk]:
        """The answer to a prompt or a conversation as it comes. Leaving the loop, or close(), cancels the rest."""
        return self._chunks(self._begin(prompt, sampling_params, None, True, options))

    @staticmethod
    def _chunks(request: Any) -> Iterator[Chunk]:
        ended = False
        try:
            while not ended:
                for event in request.take(True):
                    chunk, ended = read_event(event)
                    yield chunk
        finally:
            if not ended:
                request.cancel()

    async def astream(self, prompt: Prompt | Sequence[Message], sampling_params: SamplingParams | None = None,
                      **options: Any) -> AsyncIterator[Chunk]:
        """stream() for `async for`: other tasks run meanwhile. aclose(), or the task's cancellation, cancels the rest."""
        loop, news, ended = asyncio.get_running_loop(), asyncio.Event(), False
        waker = self._new_waker()
        loop.add_reader(waker.fileno(), lambda: (waker.clear(), news.set()))
        try:
            request = self._begin(prompt, sampling_params, waker, True, options)
            try:
                while not ended:
                    await news.wait()
                    news.clear()
                    while events := request.take(False):
                        for event in events:
                            chunk, ended = read_event(event)
                            yield chunk
            finally:
                if not ended:
                    request.cancel()
        finally:
            loop.remove_reader(waker.fileno())

    async def agenerate(self, prompt: Prompt | Sequence[Message], sampling_params: SamplingParams | None = None,
                        **options: Any) -> Response:
        """The whole answer to a prompt or a conversation; other tasks run meanwhile."""
        response = Response(prompt)
        async for chunk in self.astream(prompt, sampling_params, **options):
            response.add(chunk)
        return response

    def __call__(self, prompts: Prompt | Sequence[Prompt], **keywords: Any) -> list[Response]:
        """generate() with the keywords of DeepSpeed-MII."""
        from ._mii import generate
        return generate(self, prompts, **keywords)

    def close(self) -> None:
        """Gives up what it holds."""

    def __enter__(self) -> "Generator":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()
