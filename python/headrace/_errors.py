"""The exceptions that the package raises. All are HeadraceError, and each is also the built-in one that fits."""


class HeadraceError(Exception):
    """Something that Headrace could not do; the text says what was found and what was expected."""


class InvalidArgumentError(HeadraceError, ValueError):
    """What was asked for cannot be."""


class ParameterError(InvalidArgumentError):
    """A parameter out of its range; `parameter` is its name."""
    parameter: str = ""


class ContextLengthError(InvalidArgumentError):
    """A prompt of `prompt_tokens` tokens leaves no room for an answer in `max_model_len`."""
    prompt_tokens: int = 0
    max_model_len: int = 0


class NotFoundError(HeadraceError, LookupError):
    """A file, model, name or server that does not exist."""


class CorruptError(HeadraceError, ValueError):
    """A file or answer that contradicts its format."""


class UnsupportedError(HeadraceError, NotImplementedError):
    """Something that this build or model cannot do."""


class OutOfMemoryError(HeadraceError, MemoryError):
    """Memory that was asked for is not to be had."""


class UnavailableError(HeadraceError, ConnectionError):
    """Nobody answers, or too many requests wait: later it may work."""


class DeadlineError(HeadraceError, TimeoutError):
    """A limit of time that was set has passed."""


class AuthenticationError(HeadraceError, PermissionError):
    """The server does not know the key, or the key may not do this."""


class InternalError(HeadraceError, RuntimeError):
    """A fault of Headrace's own."""


_KINDS = {
    "invalid_argument": InvalidArgumentError,
    "context_length": ContextLengthError,
    "not_found": NotFoundError,
    "corrupt": CorruptError,
    "unsupported": UnsupportedError,
    "out_of_memory": OutOfMemoryError,
    "unavailable": UnavailableError,
    "timeout": DeadlineError,
    "permission": AuthenticationError,
}


def make_error(kind: str, message: str, parameter: str, prompt_tokens: int, max_model_len: int) -> HeadraceError:
    """What the C++ modules raise."""
    error = (ParameterError if parameter else _KINDS.get(kind, InternalError))(message)
    if isinstance(error, ParameterError):
        error.parameter = parameter
    if isinstance(error, ContextLengthError):
        error.prompt_tokens, error.max_model_len = prompt_tokens, max_model_len
    return error
