"""Servers: their clients, and how one is started and found again by its name."""
from __future__ import annotations

import json
import os
import pathlib
import re
import secrets
import shutil
import subprocess
import sysconfig
import tempfile
import time
from typing import Any, Sequence

from . import _client
from ._errors import HeadraceError, NotFoundError, UnavailableError
from ._generator import Generator
from ._types import Prompt, Response, SamplingParams

_CALL_SECONDS = 10.0


class Client(Generator):
    """A client of a server's gRPC service (`headrace serve --grpc-port N`).

    address: "HOST:PORT". api_key: one of the server's keys. tls: the server speaks TLS; ca_certificates: PEM text of
    whom to trust with it, in place of whom this machine trusts.
    """

    def __init__(self, address: str, api_key: str = "", tls: bool = False, ca_certificates: str = "") -> None:
        super().__init__()
        self.address = address
        self._entry: pathlib.Path | None = None
        self._process: subprocess.Popen | None = None
        self._native = _client.Client(address, api_key, tls, ca_certificates)

    def _submit(self, prompt: Any, params: SamplingParams, waker: Any, streams: bool, priority: int = 0,
                timeout: float = 0, max_length: int | None = None) -> Any:
        given = params.given()
        if "choice" in (structure := dict(given.get("structured_output", {}))):
            given["structured_output"] = {"choice": {"texts": list(structure["choice"])}}
        if "bad_words" in given:
            given["bad_words"] = [{"ids": list(words)} for words in given["bad_words"]]
        request: dict[str, Any] = {"sampling": given, "priority": priority}
        if max_length is not None:
            request["max_length"] = max_length
        if isinstance(prompt, str):
            request["text"] = prompt
        elif prompt and isinstance(prompt[0], tuple):
            request["conversation"] = {"messages": [{"role": role, "content": text} for role, text in prompt]}
        else:
            request["tokens"] = {"ids": prompt}
        return self._native.submit(request, timeout, waker, streams)

    def _new_waker(self) -> Any:
        return _client.Waker()

    def generate(self, prompts: Prompt | Sequence[Prompt], sampling_params: SamplingParams | None = None,
                 **keywords: Any) -> list[Response]:
        """Continues each prompt; takes the keywords of DeepSpeed-MII too (max_new_tokens, streaming_fn, ...)."""
        from ._mii import generate
        priority = {name: keywords.pop(name) for name in ("priority", "timeout") if name in keywords}
        if priority:
            return super().generate(prompts, sampling_params, **priority, **keywords)
        return generate(self, prompts, sampling_params, **keywords)

    def info(self) -> dict[str, Any]:
        """What is served: model, version, max_model_len, has_chat_template, can_terminate."""
        return self._native.info(_CALL_SECONDS)

    def terminate_server(self) -> None:
        """Ends the server once what runs is answered; it must have been started by serve(), or with
        `--allow-terminate`."""
        self._native.terminate(_CALL_SECONDS)
        if self._process is not None:
            self._process.wait()
        if self._entry is not None:
            self._entry.unlink(missing_ok=True)

    def close(self) -> None:
        """Ends the connection; the server goes on."""
        self._native.close()

    def _wait_until_ready(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while True:
            try:
                self._native.info(1.0)
                return
            except (UnavailableError, TimeoutError):
                if self._process is not None and self._process.poll() is not None:
                    raise
                if time.monotonic() > end:
                    raise
            time.sleep(0.05)


def _runtime_folder() -> pathlib.Path:
    """Where the names of running servers are kept, with their keys: nobody else may look inside."""
    base = os.environ.get("XDG_RUNTIME_DIR")
    folder = pathlib.Path(base) / "headrace" if base else pathlib.Path(tempfile.gettempdir()) / f"headrace-{os.getuid()}"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.lstat()
    if not folder.is_dir() or folder.is_symlink() or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise HeadraceError(f"{folder}: expected a folder of this user's that nobody else can open")
    return folder


def _entry_path(name: str) -> pathlib.Path:
    return _runtime_folder() / (re.sub(r"[^A-Za-z0-9._-]", "_", name) + ".json")


def _program() -> str:
    here = os.environ.get("HEADRACE_PROGRAM") or shutil.which("headrace", path=sysconfig.get_path("scripts"))
    found = here or shutil.which("headrace")
    if not found:
        raise NotFoundError("the program headrace is not there: HEADRACE_PROGRAM says where it is")
    return found


def _write_private(path: pathlib.Path, text: str) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)


def _wait_for_port(process: subprocess.Popen, log: pathlib.Path, seconds: float) -> int:
    end = time.monotonic() + seconds
    while True:
        text = log.read_text(errors="replace")
        match = re.search(r"gRPC on \S+:(\d+)", text)
        if match:
            return int(match.group(1))
        if process.poll() is not None or time.monotonic() > end:
            raise UnavailableError(f"the server did not start:\n{text.strip()}")
        time.sleep(0.02)


def serve(model: str, name: str | None = None, flags: Sequence[str] = (), timeout: float = 600) -> Client:
    """Starts a server of its own for the model, on this machine alone, and waits until it is ready.

    It goes on when this program ends; terminate_server() ends it, and client(name) finds it again. Only this user can
    reach it: its key is kept in a folder that nobody else can open. name: the model's, unless given. flags: further
    ones of `headrace serve`. timeout: seconds until it must be ready.
    """
    name = name or model
    entry = _entry_path(name)
    if entry.exists():
        try:
            client(name).close()
        except HeadraceError:
            pass
        else:
            raise HeadraceError(f"a server called {name!r} runs already: client({name!r}), or give another name")
    key = secrets.token_urlsafe(24)
    keys, log = entry.with_suffix(".keys"), entry.with_suffix(".log")
    _write_private(keys, f"{key} name=owner admin\n")
    with open(log, "wb") as output:
        os.chmod(log, 0o600)
        process = subprocess.Popen(
            [_program(), "serve", model, "--port", "0", "--grpc-port", "0", "--api-key-file", str(keys),
             "--allow-terminate", *flags],
            stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True)
    try:
        port = _wait_for_port(process, log, timeout)
        started = Client(f"127.0.0.1:{port}", key)
        started._process = process
        try:
            started._wait_until_ready(timeout)
        except UnavailableError as error:
            raise UnavailableError(f"the server did not start:\n{log.read_text(errors='replace').strip()}") from error
    except BaseException:
        process.kill()
        process.wait()
        raise
    finally:
        keys.unlink(missing_ok=True)  # it has been read
    _write_private(entry, json.dumps({"address": started.address, "key": key, "pid": process.pid}))
    started._entry = entry
    return started


def client(name: str) -> Client:
    """A client of the running server of this name, which serve() has started."""
    entry = _entry_path(name)
    try:
        found = json.loads(entry.read_text())
    except FileNotFoundError:
        raise NotFoundError(f"no server called {name!r} was started by this user on this machine") from None
    connected = Client(found["address"], found["key"])
    try:
        connected.info()
    except HeadraceError as error:
        if isinstance(error, ConnectionError) and not pathlib.Path(f"/proc/{found['pid']}").exists():
            entry.unlink(missing_ok=True)
            raise NotFoundError(f"the server called {name!r} has ended") from error
        raise
    connected._entry = entry
    return connected
