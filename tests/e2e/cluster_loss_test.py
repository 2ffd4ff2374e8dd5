"""Machines that go and come back while the cluster works. Each test is named by the scenario's id where there is one."""
import os
import signal
import tempfile
import threading
import time
import unittest
from concurrent.futures import ThreadPoolExecutor

from cluster_answers_test import answers
from cluster_join_test import copy_of_another_build
from cluster_worker import Worker, spread_head, workers
from models import CHAT_MODEL, IS_SMOLLM2, NUM_LAYERS, OTHER_MODEL, TINY_MODEL
from program import PROGRAM
from running_program import SANITIZED, SLACK
from server import Server

TOKENS = 150 if IS_SMOLLM2 else 300
MEMORY = {"prompt": "Once upon a time", "max_tokens": TOKENS, "ignore_eos": True, "temperature": 0}


class Stream:
    """A stream that is read on a thread of its own."""

    def __init__(self, server, **fields):
        self.server, self.fields = server, {**MEMORY, **fields}
        self.events = []
        self.arrived = threading.Condition()
        self.ended_at = self.fault = None
        self.thread = threading.Thread(target=self._read)
        self.thread.start()

    def _read(self):
        try:
            for event in self.server.stream("/v1/completions", self.fields):
                with self.arrived:
                    self.events.append(event)
                    self.arrived.notify_all()
        except Exception as error:
            self.fault = error
        finally:
            with self.arrived:
                self.ended_at = time.monotonic()
                self.arrived.notify_all()

    def wait_for_events(self, number):
        with self.arrived:
            self.arrived.wait_for(lambda: len(self.events) >= number or self.ended_at, 60 * SLACK)
            if len(self.events) < number:
                raise AssertionError(f"{len(self.events)} events came:\n" + self.server.log()) from self.fault

    def join(self):
        self.thread.join(60 * SLACK)
        if self.thread.is_alive() or self.fault:
            raise AssertionError("the stream did not end as it should:\n" + self.server.log()) from self.fault
        return self

    def text(self):
        return "".join(event["choices"][0]["text"] for event in self.events if event != "[DONE]" and event.get("choices"))


def wait_for_status(server, path, status, timeout=30 * SLACK):
    end = time.monotonic() + timeout
    while (found := server.get(path).status) != status:
        if time.monotonic() > end:
            raise AssertionError(f"{path} answers {found}, expected {status}:\n{server.log()}")
        time.sleep(0.02)


class LossTest(unittest.TestCase):
    def end(self, server):
        self.assertEqual(server.end(), 0, server.log())

    def expected(self, **fields):
        with Server(CHAT_MODEL, "-t", "1") as alone:
            return alone.post("/v1/completions", {**MEMORY, **fields}).json()["choices"][0]["text"]

    def test_A8_a_worker_that_does_not_come_back(self):
        with workers(2) as machines, spread_head(CHAT_MODEL, machines, "--rejoin-timeout", "2") as server:
            streams = [Stream(server, prompt=f"Number {i}", max_tokens=TOKENS) for i in range(8)]
            pool = ThreadPoolExecutor(1)
            self.addCleanup(pool.shutdown)
            whole = pool.submit(server.post, "/v1/completions", MEMORY)
            for stream in streams:
                stream.wait_for_events(3)
            server.wait_for_metric("vllm:num_requests_running", 9, timeout=30 * SLACK)
            machines[1].kill()
            killed = time.monotonic()
            wait_for_status(server, "/readyz", 503)
            for stream in streams:
                last = stream.join().events[-1]
                self.assertNotEqual(last, "[DONE]")
                self.assertIn("a machine of the cluster has been gone", last["error"]["message"])
                self.assertEqual((last["error"]["type"], last["error"]["code"]), ("server_error", "node_lost"))
                self.assertLess(stream.ended_at - killed, 2 + 3 * SLACK)
            reply = whole.result()
            self.assertEqual((reply.status, reply.error()["code"]), (503, "node_lost"), reply.body)
            self.assertGreaterEqual(int(reply.headers["retry-after"]), 1)
            self.assertIsNone(server.process.poll())
            self.assertEqual(server.get("/readyz").status, 503)
            self.assertEqual(server.get("/livez").status, 200)
            for name in ("vllm:num_requests_running", "vllm:kv_cache_usage_perc"):
                server.wait_for_metric(name, 0, timeout=10 * SLACK)
            machines[1].start()
            wait_for_status(server, "/readyz", 200)
            self.assertEqual(server.post("/v1/completions", {"prompt": "a", "max_tokens": 2}).status, 200)
            self.assertEqual(server.metric("headrace_node_losses_total"), 1)
            self.end(server)

    def test_A9_a_worker_that_is_started_again(self):
        expected, queued = self.expected(), self.expected(prompt="Two plus two", max_tokens=5)
        seeded = {"temperature": 1, "seed": 3, "prompt": "A poem:"}
        expected_seeded = self.expected(**seeded)
        with workers(2) as machines, spread_head(CHAT_MODEL, machines) as server:
            pid = server.process.pid
            for lost in machines:
                streams = [Stream(server), Stream(server, **seeded)]
                for stream in streams:
                    stream.wait_for_events(5)
                lost.kill()
                wait_for_status(server, "/readyz", 503)
                with ThreadPoolExecutor(1) as pool:
                    late = pool.submit(server.post, "/v1/completions",
                                       {**MEMORY, "prompt": "Two plus two", "max_tokens": 5})
                    lost.start()
                    for stream, text in zip(streams, (expected, expected_seeded)):
                        self.assertEqual(stream.join().events[-1], "[DONE]")
                        self.assertEqual(stream.text(), text)
                    reply = late.result()
                self.assertEqual(reply.status, 200, reply.body)
                self.assertEqual(reply.json()["choices"][0]["text"], queued)
                wait_for_status(server, "/readyz", 200)
            self.assertEqual(server.process.pid, pid)
            self.assertEqual(server.metric("headrace_node_losses_total"), 2)
            self.end(server)

    def test_A10_a_worker_that_is_stopped(self):
        expected = self.expected()
        with workers(2) as machines, spread_head(CHAT_MODEL, machines) as server:
            stream = Stream(server)
            stream.wait_for_events(5)
            os.kill(machines[0].running.process.pid, signal.SIGSTOP)
            stopped = time.monotonic()
            self.addCleanup(machines[0].kill)
            wait_for_status(server, "/readyz", 503)
            self.assertLess(time.monotonic() - stopped, 3 + 3 * SLACK)
            server.wait_for_metric("headrace_node_up", 0, 10 * SLACK, node=machines[0].address)
            server.wait_for_metric("headrace_node_up", 1, 10 * SLACK, node=machines[1].address)
            self.assertEqual(server.metric("headrace_node_up", node="head"), 1)
            self.assertIn(machines[0].address, server.wait_for_line("no heartbeat.*").string)
            os.kill(machines[0].running.process.pid, signal.SIGCONT)
            self.assertEqual(stream.join().events[-1], "[DONE]")
            self.assertEqual(stream.text(), expected)
            wait_for_status(server, "/readyz", 200)
            for machine in machines:
                self.assertEqual(server.metric("headrace_node_up", node=machine.address), 1)
            self.end(server)

    def test_A10_requests_do_not_wait_for_a_stopped_worker_for_ever(self):
        with workers(2) as machines, spread_head(TINY_MODEL, machines, "--rejoin-timeout", "1") as server:
            stream = Stream(server, max_tokens=300)
            stream.wait_for_events(5)
            process = machines[1].running.process
            self.addCleanup(machines[1].kill)
            process.send_signal(signal.SIGSTOP)
            stopped = time.monotonic()
            with ThreadPoolExecutor(1) as pool:
                whole = pool.submit(server.post, "/v1/completions", MEMORY)
                self.assertEqual(stream.join().events[-1]["error"]["code"], "node_lost")
                # 3 s of silence, then what it may stay away.
                self.assertLess(stream.ended_at - stopped, 3 + 1 + 3 * SLACK)
                process.send_signal(signal.SIGCONT)
                self.assertIn(whole.result().status, (200, 503))  # by whether it had begun
            wait_for_status(server, "/readyz", 200)
            self.assertEqual(server.metric("headrace_node_up", node=machines[1].address), 1)
            self.assertEqual(server.post("/v1/completions", {"prompt": "a", "max_tokens": 2}).status, 200)
            self.end(server)

    def test_A9_what_a_lost_worker_had_computed_is_computed_again(self):
        """Also when nothing runs while it is lost: what the head knows to be cached is gone with the worker."""
        begin = time.monotonic()
        with workers(2) as machines, spread_head(CHAT_MODEL, machines) as server:
            load_seconds = time.monotonic() - begin
            found = answers(server)
            self.assertEqual(answers(server), found)
            for lost in machines:
                lost.kill()
                wait_for_status(server, "/readyz", 503)
                begin = time.monotonic()
                lost.start()
                wait_for_status(server, "/readyz", 200)
                self.assertLess(time.monotonic() - begin, load_seconds + 5 * SLACK)
                self.assertEqual(answers(server), found)
            self.assertEqual(server.metric("headrace_node_losses_total"), 2)
            self.end(server)

    def test_A10_the_head_ends_while_a_worker_is_stopped(self):
        with Worker() as machine, spread_head(TINY_MODEL, [machine]) as server:
            os.kill(machine.running.process.pid, signal.SIGSTOP)
            wait_for_status(server, "/readyz", 503)
            begin = time.monotonic()
            self.end(server)
            self.assertLess(time.monotonic() - begin, 10 * SLACK)

    def test_A14_a_worker_that_comes_back_as_another(self):
        with tempfile.TemporaryDirectory() as folder, workers(2) as machines, spread_head(TINY_MODEL, machines) as server:
            found = answers(server)
            machines[0].kill()
            machines[0].program = copy_of_another_build(folder)
            machines[0].start()
            server.wait_for_line(f"not joined again yet: worker {machines[0].address}: build {'5a' * 20}")
            machines[0].kill()
            machines[0].program = PROGRAM
            machines[0].start()
            wait_for_status(server, "/readyz", 200)
            self.assertEqual(answers(server), found)
            self.end(server)

    def test_a_head_that_is_killed_makes_room_for_the_next(self):
        with workers(2) as machines:
            for model in (CHAT_MODEL, TINY_MODEL, OTHER_MODEL):
                with spread_head(model, machines) as server:
                    found = answers(server)
                    stream = Stream(server, prompt="a", max_tokens=100)
                    stream.wait_for_events(1)
                    server.process.kill()
                    stream.thread.join()  # with a fault or not, by the moment
                with Server(model, "-t", "1") as alone:
                    self.assertEqual(found, answers(alone))
            for machine in machines:
                self.assertIsNone(machine.running.process.poll(), machine.log())

    def test_a_drain_finishes_what_runs(self):
        expected = self.expected()
        with workers(2) as machines, spread_head(CHAT_MODEL, machines) as server:
            streams = [Stream(server) for _ in range(4)]
            for stream in streams:
                stream.wait_for_events(2)
            server.process.send_signal(signal.SIGTERM)
            for stream in streams:
                self.assertEqual(stream.join().events[-1], "[DONE]")
                self.assertEqual(stream.text(), expected)
            self.end(server)
            self.assertIn("all requests were answered", server.log())
            for machine in machines:
                self.assertEqual(machine.running.end(), 0, machine.log())

    def test_C1_a_client_that_goes_frees_its_blocks(self):
        with workers(2) as machines, spread_head(CHAT_MODEL, machines) as server:
            events = server.stream("/v1/completions", {**MEMORY, "max_tokens": 2000 if IS_SMOLLM2 else 480})
            for _ in range(3):
                next(events)
            events.close()
            for name in ("vllm:num_requests_running", "vllm:kv_cache_usage_perc"):
                self.assertLess(server.wait_for_metric(name, 0, timeout=10 * SLACK), 0.5 * SLACK, name)
            self.end(server)

    def test_A16_idle_costs_nothing(self):
        if SANITIZED:
            self.skipTest("bound by time")
        with workers(2) as machines, spread_head(CHAT_MODEL, machines) as server:
            answers(server)
            time.sleep(0.5)  # threads that spin for a while go to sleep
            programs = [server, *(machine.running for machine in machines)]
            before = [program.cpu_seconds() for program in programs]
            idle = 60 if os.environ.get("HEADRACE_LONG") else 10
            time.sleep(idle)
            for program, was in zip(programs, before):
                self.assertLess(program.cpu_seconds() - was, 0.02 * SLACK * idle, program.log())
            self.end(server)

    def test_figures_of_the_cluster(self):
        with workers(2) as machines, spread_head(CHAT_MODEL, machines, "--output-stage", "head") as server:
            with ThreadPoolExecutor(4) as pool:
                list(pool.map(lambda i: server.post("/v1/completions", {**MEMORY, "prompt": f"{i}", "max_tokens": 40}),
                              range(4)))
            shown = server.get("/v1/cluster").json()
            self.assertTrue(shown["up"])
            self.assertEqual(shown["losses"], 0)
            self.assertGreaterEqual(shown["tokens"], 4 * 40)
            self.assertGreaterEqual(shown["tokens"], shown["steps"])
            self.assertGreaterEqual(shown["imbalance"], 1)
            self.assertIn("slowest", shown["placement"])
            names = [node["name"] for node in shown["nodes"]]
            self.assertEqual(names, ["head"] + [machine.address for machine in machines])
            at = 0
            for node in shown["nodes"]:
                self.assertTrue(node["up"])
                self.assertEqual(node["units"]["first_layer"], at)
                at += node["units"]["num_layers"]
                self.assertEqual(node["memory"]["kv_cache_bytes"] > 0, node["units"]["num_layers"] > 0)
                self.assertGreater(node["seconds"]["compute"], 0)
                self.assertLess(sum(node["seconds"].values()), 2 * shown["seconds"] + 1)
                self.assertTrue(0 < node["busy_share"] <= 1.05, node)
                labels = {"node": node["name"]}
                self.assertEqual(server.metric("headrace_node_layers", **labels), node["units"]["num_layers"])
                self.assertEqual(server.metric("headrace_node_up", **labels), 1)
            self.assertEqual(at, NUM_LAYERS[CHAT_MODEL])
            for machine in machines:
                server_side = [node for node in shown["nodes"] if node["name"] == machine.address][0]["link"]
                self.assertGreater(server_side["round_trip_seconds"], 0)
                self.assertLess(server_side["round_trip_seconds"], 1)
                self.assertGreater(server_side["sent_bytes"], 0)
                self.assertGreater(server_side["received_bytes"], 0)
            self.end(server)


if __name__ == "__main__":
    unittest.main()
