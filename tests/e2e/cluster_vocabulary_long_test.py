"""A model that is mostly vocabulary over three machines: one of them computes the output and next to nothing else."""
import pathlib
import re
import tempfile
import unittest

from cluster_answers_test import answers
from cluster_worker import head, workers
from random_model import MOSTLY_VOCABULARY, write_random_model
from server import Server

LAYERS = MOSTLY_VOCABULARY.layers


class VocabularyTest(unittest.TestCase):
    maxDiff = None

    def test_the_output_has_a_machine_of_its_own(self):
        with tempfile.TemporaryDirectory() as folder:
            model = str(pathlib.Path(folder) / "vocabulary.gguf")
            write_random_model(model, MOSTLY_VOCABULARY)
            with Server(model, "-t", "1") as alone:
                expected = answers(alone)
            found = ()
            last = ("--pipeline-layers", f"{LAYERS // 2},{LAYERS // 2},0", "--output-stage", "last")
            first = ("--pipeline-layers", f"0,{LAYERS // 2},{LAYERS // 2}", "--output-stage", "head")
            with workers(2) as machines:
                for flags in (found, first, last):
                    with self.subTest(flags=flags), head(model, machines, *flags) as server:
                        shown = server.get("/v1/cluster").json()
                        units = [node["units"] for node in shown["nodes"]]
                        self.assertEqual(sum(unit["num_layers"] for unit in units), LAYERS)
                        beside_output = [unit["num_layers"] for unit in units if unit["output"]]
                        if flags is found:
                            # Where layers take next to nothing, some may be there for the sake of the cache.
                            self.assertLessEqual(beside_output[0], LAYERS // 6, shown["placement"])
                            times = re.search(r"slowest \S+ with (\S+) ms .*\(equal layers: (\S+) ms\)", shown["placement"])
                            self.assertLess(float(times[1]), float(times[2]))
                        else:
                            self.assertEqual(beside_output, [0])
                            self.assertTrue(units[-1 if flags is last else 0]["output"])
                        self.assertEqual(answers(server), expected)
                        self.assertEqual(server.end(), 0)


if __name__ == "__main__":
    unittest.main()
