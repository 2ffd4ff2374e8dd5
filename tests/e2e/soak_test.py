"""The server under load for long, and under requests that are not as they should be.

HEADRACE_SOAK_SECONDS says for how long each; without it 10 s, in the long tier 30 minutes and 10 minutes."""
import json
import os
import socket
import statistics
import threading
import time
import unittest
from random import Random

from malformed import PATHS, odd_request
from models import TINY_MODEL
from server import SANITIZED, SLACK, ServerTest

LONG = bool(os.environ.get("HEADRACE_LONG"))
SEED = int(os.environ.get("HEADRACE_TEST_SEED", time.time_ns() % 10**6 if LONG else 1))
# So that what a sanitizer keeps of freed memory does not look like a leak; and so that a fault ends the program at once.
SANITIZERS = {"ASAN_OPTIONS": "quarantine_size_mb=16:malloc_context_size=4", "TSAN_OPTIONS": "halt_on_error=1:history_size=2",
              "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1"}
SCHEMA = {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "boolean"}, "maxItems": 3}}, "required": ["a"],
          "additionalProperties": False}
TOOL = {"type": "function", "function": {"name": "f", "parameters": SCHEMA}}


def seconds_of(long_seconds):
    return float(os.environ.get("HEADRACE_SOAK_SECONDS", long_seconds if LONG else 10))


class Threads:
    """Clients that go on until the time is over; the first fault of any ends all."""

    def __init__(self, seconds, number, client):
        self.end = time.monotonic() + seconds
        self.fault = None
        self.rounds = [0] * number
        self.threads = [threading.Thread(target=self._run, args=(client, i)) for i in range(number)]
        for thread in self.threads:
            thread.start()

    def _run(self, client, index):
        random = Random(SEED * 1000 + index)
        try:
            while self.is_on():
                client(random)
                self.rounds[index] += 1
        except BaseException as error:
            self.fault = self.fault or error

    def is_on(self):
        return self.fault is None and time.monotonic() < self.end

    def join(self):
        for thread in self.threads:
            thread.join()
        if self.fault:
            raise AssertionError(f"with HEADRACE_TEST_SEED={SEED}") from self.fault
        return sum(self.rounds)


class SoakTest(ServerTest):
    model = TINY_MODEL
    flags = ("--kv-cache-memory-bytes", "2000000", "--max-queued-requests", "16", "--max-connections", "128", "--request-timeout", "60",
             "--no-log-requests")
    env = SANITIZERS

    def memory_and_files(self):
        """MiB in memory, and open files."""
        with open(f"/proc/{self.server.process.pid}/statm", encoding="ascii") as file:
            pages = int(file.read().split()[1])
        return pages * os.sysconf("SC_PAGESIZE") / 2**20, len(os.listdir(f"/proc/{self.server.process.pid}/fd"))

    def expect_idle(self, files):
        for name in ("vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:kv_cache_usage_perc"):
            self.server.wait_for_metric(name, 0, timeout=30 * SLACK)
        end = time.monotonic() + 10 * SLACK
        while self.memory_and_files()[1] > files and time.monotonic() < end:
            time.sleep(0.1)
        self.assertLessEqual(self.memory_and_files()[1], files)

    def test_mixed_load_with_cancels(self):
        self.mixed_round(Random(0))
        _, files = self.memory_and_files()
        seconds = seconds_of(1800)
        threads = Threads(seconds, 8, self.mixed_round)
        memory = []
        while threads.is_on():
            time.sleep(min(1, seconds / 50))
            memory.append(self.memory_and_files()[0])
        rounds = threads.join()
        self.expect_idle(files)
        quarter = len(memory) // 4
        early, late = statistics.median(memory[quarter:2 * quarter]), statistics.median(memory[-quarter:])
        print(f"{rounds} requests in {seconds:.0f} s; MiB in the second quarter {early:.0f}, in the last {late:.0f}")
        self.assertGreater(rounds, 10)
        # What grows by a KiB a request would show in the long tier, where there are tens of thousands.
        self.assertLess(late - early, 24 * (4 if SANITIZED else 1))

    def mixed_round(self, random):
        path, body = self.mixed_body(random)
        data = json.dumps(body).encode()
        head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n".encode()
        kind = random.random()
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=120 * SLACK) as client:
            if kind < 0.05:
                client.sendall((head + data)[:random.randrange(1, len(head + data))])
                return
            client.sendall(head + data)
            if kind < 0.1:
                return  # gone before anything has come
            if kind < 0.15:
                client.shutdown(socket.SHUT_WR)  # half closed: nobody may hang
            received = b""
            leave_after = random.choice((1, 3, 10)) if kind > 0.7 else None
            while not received.endswith(b"\r\n0\r\n\r\n") and not self.is_whole(received):
                part = client.recv(65536)
                if not part:
                    break
                received += part
                if leave_after and received.count(b"data: ") >= leave_after:
                    return
        if kind < 0.15 and not received:
            return
        status = int(received.split(b" ", 2)[1])
        if status not in (200, 400, 429):
            raise AssertionError(f"{status} for {path} {body}: {received[-2000:]}")
        if status == 200 and b"text/event-stream" in received and b"data: [DONE]" not in received and kind >= 0.15:
            raise AssertionError(f"no end for {path} {body}: {received[-2000:]}")

    @staticmethod
    def is_whole(received):
        head, mark, rest = received.partition(b"\r\n\r\n")
        if not mark or b"\r\nContent-Length: " not in head:
            return False
        return len(rest) >= int(head.split(b"\r\nContent-Length: ")[1].split(b"\r\n")[0])

    @staticmethod
    def mixed_body(random):
        prompt = " ".join(random.choice(("a", "mill", "river", "b c")) for _ in range(random.choice((2, 20, 100))))
        body = {"max_tokens": random.choice((1, 8, 60, 200)), "stream": random.random() < 0.6, "temperature": random.choice((0, 1)),
                **random.choice(({}, {}, {"n": 3}, {"ignore_eos": True}, {"stop": ["a", "the"]}, {"top_p": 0.5, "top_k": 5}, {"seed": 4}))}
        if random.random() < 0.4:
            return "/v1/completions", {**body, "prompt": random.choice((prompt, [prompt, "x"])),
                                       **random.choice(({}, {"echo": True}, {"logprobs": 2}, {"max_tokens": 0, "echo": True}))}
        return "/v1/chat/completions", {**body, "messages": [{"role": "user", "content": prompt}], **random.choice((
            {}, {"logprobs": True, "top_logprobs": 3}, {"tools": [TOOL], "tool_choice": "required"}, {"temperature": -1},
            {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}}}, {"stream_options": {"include_usage": True}},
            {"structured_outputs": {"regex": "[a-f]{3,9}"}}))}

    def test_malformed_requests(self):
        _, files = self.memory_and_files()
        rounds = Threads(seconds_of(600), 4, self.malformed_round).join()
        self.expect_idle(files)
        print(f"{rounds} malformed requests")
        self.assertGreater(rounds, 10)
        for path, body in ((PATHS[0], {"messages": [{"role": "user", "content": "a"}], "max_tokens": 2}),
                           (PATHS[1], {"prompt": "a", "max_tokens": 2}), (PATHS[2], {"prompt": "a"}), (PATHS[3], {"tokens": [1]})):
            self.assertEqual(self.server.post(path, body).status, 200, path)

    def malformed_round(self, random):
        data = odd_request(random)
        received = b""
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=120 * SLACK) as client:
            try:
                client.sendall(data)
                client.shutdown(socket.SHUT_WR)
                while part := client.recv(65536):
                    received += part
            except (BrokenPipeError, ConnectionResetError):
                pass  # refused before it had all come
        for line in received.split(b"\r\n"):
            if line.startswith(b"HTTP/1.1 500"):
                raise AssertionError(f"{data[:3000]} -> {received[:2000]}")
        if self.server.process.poll() is not None:
            raise AssertionError(f"{data[:3000]} ended the server: {self.server.log()[-3000:]}")


if __name__ == "__main__":
    unittest.main()
