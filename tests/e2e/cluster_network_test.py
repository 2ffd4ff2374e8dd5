"""A cluster on machines with addresses of their own, over links of limited rate."""
import contextlib
import json
import os
import unittest
from concurrent.futures import ThreadPoolExecutor

import virtual_network
from cluster_worker import Worker, spread_head
from models import CHAT_MODEL, IS_SMOLLM2
from program import run
from server import Server

WHY_NOT = virtual_network.can_run()
LONG = bool(os.environ.get("HEADRACE_LONG"))
WIRE_BYTES = 4  # of an activation: f32
# Token ids that both models have; all different, so that no prompt is found in the cache.
PROMPTS = [[3 + (i * 131 + j * 7) % 200 for j in range(160)] for i in range(4)]


@contextlib.contextmanager
def cluster(machines, *flags):
    """A head on the first machine and a worker on each other; yields the head."""
    with contextlib.ExitStack() as stack:
        used = [stack.enter_context(Worker("--model", CHAT_MODEL, machine=machine)) for machine in machines[1:]]
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


if __name__ == "__main__":
    unittest.main()
