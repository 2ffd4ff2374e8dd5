"""What more machines give and cost, by the clock: a core for each, else shares of one. Each test is named by the scenario's id.
Nothing else runs meanwhile."""
import contextlib
import os
import tempfile
import time
import unittest

import virtual_network
from cluster_network_test import ask
from cluster_worker import Worker, even_cut, head
from random_model import MOSTLY_LAYERS, write_random_model
from server import SANITIZED

WHY_NOT = virtual_network.can_run() or (SANITIZED and "bound by time") or ((os.cpu_count() or 1) < 2 and "needs two cores")
LAYERS = MOSTLY_LAYERS.layers


def prompts(first, number, length=32):
    """All different up to the 200th, so that no prompt is found in the cache."""
    return [[3 + (i * 131 + j * 7) % 200 for j in range(length)] for i in range(first, first + number)]


def busy_shares(before, after):
    """Share of the time that each machine computed."""
    return [(now["seconds"]["compute"] - was["seconds"]["compute"]) / (after["seconds"] - before["seconds"])
            for was, now in zip(before["nodes"], after["nodes"])]


@unittest.skipIf(WHY_NOT, f"left out: tests of the speed of clusters: {WHY_NOT}")
class SpeedTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.model = os.path.join(cls.folder.name, "model.gguf")
        write_random_model(cls.model, MOSTLY_LAYERS)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def served(self, machines, streams, *flags, cut=None, rate_mbit=1000, tokens=128):
        """Output tokens a second and busy_shares of the best of three rounds: what else happens on a machine only slows."""
        with contextlib.ExitStack() as stack:
            network = stack.enter_context(virtual_network.VirtualNetwork(machines, rate_mbit))
            used = [stack.enter_context(Worker("--model", self.model, machine=machine)) for machine in network.machines[1:]]
            layers = ("--pipeline-layers", ",".join(map(str, cut or even_cut(LAYERS, len(machines))))) if used else ()
            server = stack.enter_context(head(self.model, used, *layers, *flags, machine=network.machines[0]))
            ask(server, prompts(199, 1))

            def figures():
                return server.get("/v1/cluster").json() if used else {"seconds": 0, "nodes": []}
            rounds = []
            for i in range(3):
                before, begin = figures(), time.monotonic()
                ask(server, prompts(i * streams, streams), tokens)
                rounds.append((streams * tokens / (time.monotonic() - begin), busy_shares(before, figures())))
            for rate, busy in rounds:
                print(f"{len(machines)} machines, {streams} streams {' '.join(flags)}: {rate:.1f} tokens/s, busy",
                      *(f"{share:.0%}" for share in busy))
            return max(rounds)

    def test_A1_steps_in_flight_keep_both_machines_busy(self):
        two = [(0, None), (1, None)]
        one_step, _ = self.served(two, 16, "--steps-in-flight", "1")
        several, busy = self.served(two, 32)
        self.assertGreaterEqual(several, 1.7 * one_step)
        self.assertGreaterEqual(min(busy), 0.85)

    def test_A3_a_stage_elsewhere_costs_a_tenth_at_most(self):
        here, _ = self.served([(0, None)], 1)
        there, _ = self.served([(0, None), (1, None)], 1, cut=[0, LAYERS], rate_mbit=None)
        self.assertGreaterEqual(there, 0.9 * here)

    def test_A4_more_machines_give_more(self):
        shares = [(0, 0.3), (1, 0.3), (1, 0.3)]
        rates = [self.served(shares[:n], 16 * n, tokens=64)[0] for n in (1, 2, 3)]
        self.assertEqual(rates, sorted(rates))


if __name__ == "__main__":
    unittest.main()
