"""A model spread over machines answers as one machine does. Each test is named by the scenario's id where there is one."""
import unittest
from concurrent.futures import ThreadPoolExecutor

from cluster_worker import Worker, even_cut, head, workers
from models import CHAT_MODEL, IS_SMOLLM2, NUM_LAYERS, TINY_MODEL
from program import data, run
from running_program import SANITIZED
from server import Server

ARCHITECTURES = {data("gguf/llama-F32.gguf"): 4, data("models/mistral"): 2, data("models/qwen2"): 3, data("models/qwen3"): 2,
                 data("models/llama-tied-bf16"): 2}
if SANITIZED:  # what they look for is the same in all
    ARCHITECTURES = {data("gguf/qwen2-Q8_0.gguf"): 3}
# Beside each other, so that steps hold rows of several; logprobs are as long as the numbers behind them are the same.
REQUESTS = [{"prompt": [5, 9, 17] * 20, "temperature": 0, "logprobs": 3}, {"prompt": [3, 4], "temperature": 0, "logprobs": 3},
            {"prompt": [11, 7] * 9, "temperature": 1, "seed": 5, "n": 2, "logprobs": 3}]


def answers(server, tokens=12):
    def ask(request):
        reply = server.post("/v1/completions", {**request, "max_tokens": tokens, "ignore_eos": True, "return_token_ids": True})
        if reply.status != 200:
            raise AssertionError(reply.body)
        return reply.json()["choices"]
    with ThreadPoolExecutor(len(REQUESTS)) as pool:
        return list(pool.map(ask, REQUESTS))


def cuts(layers):
    """Layers of each machine: every number of machines that have any, the head one of them or not; and inside layers."""
    whole = [even_cut(layers, n) for n in range(2, layers + 1)] + [[0] + even_cut(layers, n) for n in range(1, layers + 1)]
    return [*whole, [0.5, layers - 0.5], [layers - 1.5, 1, 0.5]]


class SameAnswersTest(unittest.TestCase):
    maxDiff = None

    def check(self, model, machines, cut, output, expected, *flags):
        with self.subTest(model=model, cut=cut, output=output):
            used = machines[:len(cut) - 1]
            with head(model, used, "--pipeline-layers", ",".join(map(str, cut)), "--output-stage", output, *flags) as server:
                self.assertEqual(answers(server), expected)
                shown = server.get("/v1/cluster").json()["nodes"]
                self.assertEqual([node["units"]["num_layers"] for node in shown], cut)
                self.assertEqual([node["units"]["output"] for node in shown].index(True),
                                 0 if output == "head" else len(cut) - 1)
                self.assertEqual(server.end(), 0)

    def test_A5_every_cut_of_every_architecture(self):
        # Prompts are cut into chunks that follow each other through the stages.
        flags = ("--max-num-batched-tokens", "32")
        with workers(max(ARCHITECTURES.values()) + 1) as machines:
            for model, layers in ARCHITECTURES.items():
                with Server(model, "-t", "1", *flags) as alone:
                    expected = answers(alone)
                # A last machine that computes the output alone.
                for cut in ([layers, 0], [layers - 1, 1, 0], [0] + [1] * layers + [0]):  # the last: a unit each
                    self.check(model, machines, cut, "last", expected, *flags)
                for cut in cuts(layers):
                    for output in ("head", "last"):
                        self.check(model, machines, cut, output, expected, *flags)

    @unittest.skipUnless(IS_SMOLLM2, "of real weights")
    def test_A5_A19_real_weights_on_2_to_5_machines(self):
        with Server(CHAT_MODEL, "-t", "1") as alone:
            expected = answers(alone)
        with workers(4, "--model", CHAT_MODEL) as machines:
            self.check(CHAT_MODEL, machines, [15, 15], "last", expected)
            self.check(CHAT_MODEL, machines, [10, 10, 10], "head", expected)
            self.check(CHAT_MODEL, machines, [6, 8, 8, 8], "head", expected)
            self.check(CHAT_MODEL, machines, [3, 7, 7, 7, 6], "last", expected)

    def test_machines_of_other_instruction_sets(self):
        model = CHAT_MODEL if IS_SMOLLM2 else TINY_MODEL
        for isa, model, cut in (("avx2", model, even_cut(NUM_LAYERS[model], 2)), ("ref", TINY_MODEL, [2, 2])):
            if run("inspect", TINY_MODEL, "--isa", isa).returncode != 0:
                continue
            with Server(model, "-t", "1") as alone:
                expected = answers(alone)
            with Worker("--isa", isa) as machine:
                self.check(model, [machine], cut, "last", expected)


if __name__ == "__main__":
    unittest.main()
