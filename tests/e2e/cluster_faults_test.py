"""What is wrong with a machine of a cluster is said in one line, at once, with what to do."""
import contextlib
import os
import pathlib
import socket
import tempfile
import unittest

from cluster_join_test import secret_file
from models import TINY_MODEL
from program import ProgramTest, run
from running_program import SLACK


class FaultsTest(ProgramTest):
    def setUp(self):
        self.stack = contextlib.ExitStack()
        self.addCleanup(self.stack.close)
        self.folder = pathlib.Path(self.stack.enter_context(tempfile.TemporaryDirectory()))

    def taken_port(self):
        return self.stack.enter_context(socket.create_server(("127.0.0.1", 0))).getsockname()[1]

    def worker_fails(self, flags, *parts):
        with self.subTest(flags=flags):
            self.assert_fails(run("worker", "-t", "1", *flags, timeout=10 * SLACK), *parts)

    def head_fails(self, flags, *parts):
        with self.subTest(flags=flags):
            self.assert_fails(run("serve", TINY_MODEL, "--port", "0", *flags, timeout=10 * SLACK), *parts)

    def test_addresses(self):
        taken = f"127.0.0.1:{self.taken_port()}"
        for address in ("127.0.0.1", ":1", "h:", "h:x", "h:70000", "h:-1", "::1:80", "[::1]", "[::1:80"):
            self.worker_fails(["--listen", address], f"--listen: {address}: expected HOST:PORT or [IPV6]:PORT")
            self.worker_fails(["--join", address], f"--join: {address}: expected HOST:PORT")
            self.worker_fails(["--join", "h:1", "--advertise", address], f"--advertise: {address}: expected HOST:PORT")
            self.head_fails(["--join-listen", address], f"--join-listen: {address}: expected HOST:PORT")
            if ":" in address:
                self.head_fails(["--workers", address], f"--workers: {address}: expected HOST:PORT")
        for address, why in (("h:0", "port 0"), ("0.0.0.0:1", "all addresses"), ("[::]:1", "all addresses"), ("*:1", "all addresses"),
                             ("0:1", "all addresses")):
            self.worker_fails(["--join", address], f"--join: {address}: ", why)
            self.worker_fails(["--join", "h:1", "--advertise", address], f"--advertise: {address}: ", why)
            self.head_fails(["--workers", address], f"--workers: {address}: ", why)
        self.worker_fails(["--listen", taken], f"--listen: {taken}: ", "in use; end what listens there, or take another port")
        self.worker_fails(["--listen", "192.0.2.1:1"], "--listen: 192.0.2.1:1: ", "take an address of this machine")
        self.worker_fails(["--listen", "no.such.invalid:1"], "--listen: no.such.invalid:1: ", "take an address of this machine")
        self.head_fails(["--port", taken.rpartition(":")[2]], taken, "in use; end what listens there, or take another --port")

    def test_texts_that_are_empty(self):
        """A variable of a script that is not set must not make another cluster."""
        for flag in ("listen", "join", "advertise", "name", "secret-file", "cluster-certfile", "model", "cpu-list", "config"):
            self.worker_fails([f"--{flag}", ""], f"--{flag}: found an empty text")
        for flag in ("workers", "join-listen", "secret-file", "cluster-cafile", "cpu-list", "config"):
            self.head_fails([f"--{flag}", ""], f"--{flag}: found an empty text")

    def test_names(self):
        for name in ("head", "a b", "x" * 65, "a/b"):
            self.worker_fails(["--join", "h:1", "--name", name], "--name", "1 to 64 letters")
            self.head_fails(["--workers", name, "--join-listen", "127.0.0.1:0"], f"--workers: '{name}'", "1 to 64 letters")
        self.worker_fails(["--node", "a"], "--node names a worker of a file; give that by --config")

    def test_files(self):
        empty = secret_file(self.folder, "empty", "")
        os.mkfifo(self.folder / "pipe")
        self.worker_fails(["--secret-file", empty], empty, "0 bytes, expected at least 16")
        for path, why in (("/nowhere", "No such file"), (str(self.folder), ""), (str(self.folder / "pipe"), "")):
            self.worker_fails(["--secret-file", path], path, "secret", why)
            self.worker_fails(["--config", path], path)
            self.worker_fails(["--cluster-certfile", path, "--cluster-keyfile", empty, "--cluster-cafile", empty],
                              f"{path}: --cluster-certfile ", why)
        for flag in ("--cluster-certfile", "--cluster-keyfile", "--cluster-cafile"):
            self.worker_fails([flag, empty], "three files", "--cluster-certfile", "--cluster-keyfile", "--cluster-cafile")

    def test_what_would_be_ignored(self):
        secret = secret_file(self.folder, "secret", "the secret that head and workers share")
        for flags in (["--secret-file", secret], ["--cluster-certfile", secret], ["--output-stage", "last"], ["--placement", "kv"],
                      ["--wire-dtype", "bf16"], ["--steps-in-flight", "2"], ["--cluster-memory-bytes", "9"],
                      ["--rejoin-timeout", "1"], ["--allow-other-builds"]):
            self.head_fails(flags, f"{flags[0]} is for a model that is spread over machines; say by --workers or --join-listen")
        self.head_fails(["--rejoin-timeout", "1e300"], "--rejoin-timeout: '1e300' is not a number from 0 to 1000000000")
        self.assert_fails(run("run", TINY_MODEL, "-p", "x", "--tensor-parallel-transport", "tcp"), "tensor-parallel size of 2 or more")


if __name__ == "__main__":
    unittest.main()
