"""Layers divided over processes of this machine: the answers of one process, and what happens when a process goes."""
import contextlib
import glob
import os
import signal
import time
import unittest

from cluster_answers_test import ARCHITECTURES, answers
from cluster_worker import workers, refused
from models import TINY_MODEL
from program import ProgramTest, run
from running_program import SLACK, stat_fields
from server import Server

TWO = ("-t", "2", "--tensor-parallel-size", "2")


def ranks_of(parent):
    """Process ids of the ranks that a process has started."""
    found = []
    for path in glob.glob("/proc/[0-9]*"):
        process = int(path.split("/")[2])
        with contextlib.suppress(OSError):
            fields = stat_fields(process)
            if int(fields[1]) == parent and fields[0] != "Z":
                found.append(process)
    return found


def is_running(process):
    try:
        return stat_fields(process)[0] != "Z"
    except OSError:
        return False


class TensorParallelTest(ProgramTest):
    maxDiff = None

    def test_answers_of_one_process(self):
        # Prompts are cut into chunks; greedy, seeded, and two choices of one request.
        flags = ("--max-num-batched-tokens", "32")
        for number, model in enumerate(ARCHITECTURES):
            with self.subTest(model=model):
                with Server(model, "-t", "1", *flags) as alone:
                    expected = answers(alone)
                transport = ("shm", "tcp")[number % 2]
                with Server(model, *TWO, "--tensor-parallel-transport", transport, *flags) as server:
                    self.assertEqual(answers(server), expected)
                    self.assertEqual(server.end(), 0)

    def test_run(self):
        base = ["run", TINY_MODEL, "--raw", "-p", "water and wheels", "--max-tokens", "24", "--ignore-eos", "--quiet"]
        for sampling in (["--temperature", "0"], ["--temperature", "1", "--seed", "5"]):
            alone = run(*base, *sampling)
            self.assertEqual(alone.returncode, 0, alone.stderr)
            for transport in ("shm", "tcp"):
                two = run(*base, *sampling, *TWO, "--tensor-parallel-transport", transport)
                self.assertEqual((two.returncode, two.stdout, two.stderr), (0, alone.stdout, ""))

    def test_refusals(self):
        self.assert_fails(run("run", TINY_MODEL, "-p", "x", "--tensor-parallel-size", "3"),
                          "2 KV heads (4 heads) cannot be divided evenly over 3 ranks")
        self.assert_fails(run("run", TINY_MODEL, "-p", "x", "--tensor-parallel-size", "0"), "--tensor-parallel-size", "'0'")
        self.assert_fails(run("rank", "--rank", "1", "--ranks", "2"), "is started by headrace run")
        with workers(1) as machines:
            line = refused(TINY_MODEL, machines, "--tensor-parallel-size", "2")
            self.assertIn("a tensor-parallel size of 2 together with workers", line)
        joined = refused(TINY_MODEL, [], "--tensor-parallel-size", "2", "--join-listen", "127.0.0.1:0")
        self.assertIn("a tensor-parallel size of 2 together with workers", joined)

    def test_a_rank_that_is_lost(self):
        with Server(TINY_MODEL, *TWO) as server:
            ranks = ranks_of(server.process.pid)
            self.assertEqual(len(ranks), 1)
            request = {"prompt": [5, 9, 17], "max_tokens": 4, "ignore_eos": True}
            # Ctrl-C and SIGTERM are for the first one alone, which may have answers to finish.
            for number in (signal.SIGINT, signal.SIGTERM):
                os.kill(ranks[0], number)
            self.assertEqual(server.post("/v1/completions", request).status, 200)
            os.kill(ranks[0], signal.SIGKILL)
            end = time.monotonic() + 60 * SLACK
            while server.get("/readyz").status == 200:  # before anybody needs the rank
                self.assertLess(time.monotonic(), end)
                time.sleep(0.01)
            for _ in range(2):
                reply = server.post("/v1/completions", request)
                self.assertEqual(reply.status, 503, reply.body)
                self.assertRegex(reply.error()["message"], r"rank 1 of 2 is gone.*process \d+ was ended by signal 9")
            self.assertEqual(server.end(), 0)

    def test_a_second_signal_ends_it_while_a_rank_hangs(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            with Server(TINY_MODEL, *TWO) as server:
                rank = ranks_of(server.process.pid)[0]
                os.kill(rank, signal.SIGSTOP)
                with contextlib.closing(server.connect()) as connection:
                    connection.request("POST", "/v1/completions", '{"prompt": [5, 9, 17], "max_tokens": 4}',
                                       {"Content-Type": "application/json"})
                    server.wait_for_metric("headrace_open_requests", 2, timeout=10 * SLACK)  # and that for the metric
                    begin = time.monotonic()
                    server.process.send_signal(number)
                    server.wait_for_line("draining")
                    self.assertEqual(server.end(number, timeout=40), 0, server.log())
                    self.assertLess(time.monotonic() - begin, 40, "as long as the rank is waited for")

    def test_ranks_end_with_the_first(self):
        """Also one that hangs."""
        for number, hangs in ((signal.SIGTERM, False), (signal.SIGKILL, False), (signal.SIGTERM, True), (signal.SIGKILL, True)):
            with Server(TINY_MODEL, "-t", "2", "--tensor-parallel-size", "2") as server:
                ranks = ranks_of(server.process.pid)
                self.assertEqual(len(ranks), 1)
                if hangs:
                    os.kill(ranks[0], signal.SIGSTOP)
                server.end(number)
                end = time.monotonic() + 60 * SLACK
                while is_running(ranks[0]):
                    self.assertLess(time.monotonic(), end, "the rank still runs")
                    time.sleep(0.01)


if __name__ == "__main__":
    unittest.main()
