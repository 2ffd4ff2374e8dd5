"""A cluster on machines with addresses of their own, over links of limited rate."""
import contextlib
import json
import os
import tempfile
import threading
import time
import unittest
from concurrent.futures import ThreadPoolExecutor

import virtual_network
from cluster_worker import Worker, head, spread_head
from models import CHAT_MODEL, IS_SMOLLM2, file_of
from program import run
from random_model import MOSTLY_VOCABULARY, write_random_model
from server import SANITIZED, SLACK, Server

WHY_NOT = virtual_network.can_run()
LONG = bool(os.environ.get("HEADRACE_LONG"))
WIRE_BYTES = 4  # of an activation: f32
# Token ids that both models have; all different, so that no prompt is found in the cache.
PROMPTS = [[3 + (i * 131 + j * 7) % 200 for j in range(160)] for i in range(4)]


@contextlib.contextmanager
def cluster(machines, *flags):
    """A head on the first machine and a worker on each other; yields the head."""
    with contextlib.ExitStack() as stack:
        copy = file_of(CHAT_MODEL)  # what has to be fetched first cannot be from there
        used = [stack.enter_context(Worker("--model", copy, machine=machine)) for machine in machines[1:]]
        yield stack.enter_context(spread_head(CHAT_MODEL, used, *flags, machine=machines[0]))


def ask(server, prompts, tokens=8):
    """Texts, and how many tokens went through the layers."""
    def one(prompt):
        reply = server.post("/v1/completions", {"prompt": prompt, "max_tokens": tokens, "temperature": 0, "ignore_eos": True})
        if reply.status != 200:
            raise AssertionError(reply.body)
        return reply.json()
    with ThreadPoolExecutor(len(prompts)) as pool:
        answers = list(pool.map(one, prompts))
    # The last token of an answer is not computed further.
    return [a["choices"][0]["text"] for a in answers], sum(a["usage"]["total_tokens"] - 1 for a in answers)


def nodes(server):
    return server.get("/v1/cluster").json()["nodes"]


class Meter:
    """What a machine receives within the block: `total`, and when it came."""

    def __init__(self, machine):
        self.machine = machine
        self.samples = []  # (seconds, bytes so far)
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._run)

    def _run(self):
        before = self.machine.received_bytes()
        while not self.ended.wait(0.02):
            self.samples.append((time.monotonic(), self.machine.received_bytes() - before))

    @property
    def total(self):
        return self.samples[-1][1]

    def seconds_at(self, received):
        """When this many had come."""
        return next(seconds for seconds, so_far in self.samples if so_far >= received)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()


@unittest.skipIf(WHY_NOT, f"left out: tests in network namespaces: {WHY_NOT}")
class NetworkTest(unittest.TestCase):
    @unittest.skipUnless(IS_SMOLLM2, "rows of the tiny model are hardly longer than what is around them")
    def test_A4_a_token_crosses_a_link_once(self):
        with Server(CHAT_MODEL, "-t", "1") as alone:
            expected, _ = ask(alone, PROMPTS)
        hidden = json.loads(run("inspect", CHAT_MODEL, "--json").stdout)["shapes"]["hidden"]
        with virtual_network.VirtualNetwork([(None, None)] * 3, rate_mbit=100) as network:
            with cluster(network.machines) as server:
                before = nodes(server)[0]["link"]["sent_bytes"]
                texts, tokens = ask(server, PROMPTS)
                bytes_per_token = (nodes(server)[0]["link"]["sent_bytes"] - before) / tokens
        self.assertEqual(texts, expected)
        print(f"{bytes_per_token:.0f} bytes a token, activations are {hidden * WIRE_BYTES}")
        self.assertAlmostEqual(bytes_per_token / (hidden * WIRE_BYTES), 1, delta=0.1)

    def test_A17_activations_do_not_hold_up_heartbeats(self):
        prompts = [[3 + (i * 131 + j * 7) % 200 for j in range(4000 if LONG else 400)] for i in range(8)]
        flags = ("--max-model-len", "4096") if IS_SMOLLM2 else ()
        # The tiny model's rows are short: so is what its link can carry in a second.
        with virtual_network.VirtualNetwork([(None, None)] * 2, rate_mbit=100 if LONG else 20) as network:
            with cluster(network.machines, *flags) as server:
                ask(server, prompts, tokens=2)
                self.assertEqual([node["link"]["missed_heartbeats"] for node in nodes(server)], [0, 0])
                self.assertTrue(server.get("/v1/cluster").json()["up"])

    @unittest.skipIf(SANITIZED, "bound by time")
    def test_A13_a_part_of_the_model_comes_at_the_rate_of_the_link(self):
        rate_mbit = 200
        layers = ("--pipeline-layers", f"0,{MOSTLY_VOCABULARY.layers}", "--output-stage", "last")
        with contextlib.ExitStack() as stack:
            model = os.path.join(stack.enter_context(tempfile.TemporaryDirectory()), "model.gguf")
            write_random_model(model, MOSTLY_VOCABULARY)
            machines = stack.enter_context(virtual_network.VirtualNetwork([(None, None)] * 2, rate_mbit)).machines
            worker = stack.enter_context(Worker(machine=machines[1]))

            def start():
                with Meter(machines[1]) as meter, head(model, [worker], *layers, machine=machines[0]) as server:
                    sent = server.wait_for_line(r"send weights: done in ([0-9.]+) s(?:, ([0-9.]+) MB sent)?")
                    ask(server, [PROMPTS[0][:8]])
                    self.assertEqual(server.end(), 0)
                return meter, sent
            first, sent = start()
            size = float(sent[2]) * 1e6
            self.assertGreater(size, 0.9 * os.path.getsize(model))
            # Without its first and last fiftieth: what came before and after is less than that.
            seconds = first.seconds_at(first.total - 0.02 * size) - first.seconds_at(first.total - 0.98 * size)
            share = 0.96 * size * 8 / (rate_mbit * 1e6) / seconds
            print(f"{sent[0]}: {share:.0%} of {rate_mbit} Mbit/s; {first.total / 1e6:.1f} MB came in all")
            self.assertGreater(share, 0.7 / SLACK)
            self.assertGreater(size * 8 / (rate_mbit * 1e6) / float(sent[1]), 0.7 / SLACK)
            worker.kill()
            worker.start()
            again, _ = start()
            print(f"{again.total / 1e6:.2f} MB came at the second start")
            self.assertLess(again.total, 1e6)


if __name__ == "__main__":
    unittest.main()
