"""headrace serve --trace: the timeline of stages and links while a model is served."""
import json
import pathlib
import signal
import tempfile
import unittest

from cluster_worker import spread_head, workers
from models import TINY_MODEL
from program import ProgramTest, run
from server import Server

REQUEST = {"prompt": [5, 9, 17] * 20, "max_tokens": 20, "temperature": 0, "ignore_eos": True}


class ServeTraceTest(ProgramTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.trace = pathlib.Path(folder.name) / "steps.json"

    def ask(self, server):
        reply = server.post("/v1/completions", REQUEST)
        self.assertEqual(reply.status, 200, reply.body)

    def tracks(self, text):
        """The slices of each track, by the track's name, in the order in which they begin."""
        events = json.loads(text)
        names = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
        slices = {name: [] for name in names.values()}
        for event in events:
            if event["ph"] == "X":
                slices[names[event["tid"]]].append(event)
        for track in slices.values():
            track.sort(key=lambda event: event["ts"])
            for one, other in zip(track, track[1:]):
                self.assertLessEqual(round(one["ts"] * 1000) + round(one["dur"] * 1000), round(other["ts"] * 1000), (one, other))
        return slices

    def steps(self, slices, suffix=""):
        return sorted(event["name"] for event in slices if event["name"].endswith("output") == bool(suffix))

    def check_cluster(self, text, steps, num_workers, output_on_head):
        tracks = self.tracks(text)
        names = [f"stage {i}" for i in range(num_workers + 1)]
        links = [f"link {i} to {i + 1}" for i in range(num_workers)] + [f"link {num_workers} to head"]
        self.assertEqual(sorted(tracks), sorted(names + links))
        first = self.steps(tracks["stage 0"])
        self.assertGreaterEqual(len(first), max(steps, REQUEST["max_tokens"]))
        for name in names[1:] + links:
            self.assertEqual(self.steps(tracks[name]), first, name)
        outputs = self.steps(tracks["stage 0"], "output")
        self.assertEqual(outputs, sorted(f"{name} output" for name in first) if output_on_head else [])
        for name in names:
            slices = [event["args"] for event in tracks[name] if not event["name"].endswith("output")]
            self.assertGreaterEqual(sum(args["tokens"] for args in slices), len(REQUEST["prompt"]) + REQUEST["max_tokens"] - 1)
            self.assertEqual(set(slices[0]), {"rows", "tokens", "wait_seconds", "serialise_seconds"})
        for i in range(num_workers):  # in the order of the steps
            self.assertEqual([event["name"] for event in tracks[links[i]]], [event["name"] for event in tracks[names[i + 1]]])

    def test_a_cluster(self):
        with workers(2) as machines:
            for used, output in ((1, "head"), (2, "last")):
                with self.subTest(workers=used, output=output):
                    with spread_head(TINY_MODEL, machines[:used], "--output-stage", output, "--trace", str(self.trace)) as server:
                        self.ask(server)
                        steps = server.get("/v1/cluster").json()["steps"]
                        self.assertEqual(server.end(), 0)
                    self.check_cluster(self.trace.read_text(), steps, used, output == "head")

    def test_what_a_killed_server_leaves(self):
        with workers(1) as machines:
            with spread_head(TINY_MODEL, machines, "--output-stage", "head", "--trace", str(self.trace)) as server:
                self.ask(server)
                steps = server.get("/v1/cluster").json()["steps"]
                server.end(signal.SIGKILL)
            text = self.trace.read_text()
            self.assertFalse(text.endswith("]\n"))
            # Only the closing bracket is missing.
            self.check_cluster(text + "]", steps, 1, output_on_head=True)

    def test_one_machine(self):
        with Server(TINY_MODEL, "-t", "1", "--trace", str(self.trace)) as server:
            self.ask(server)
            self.assertEqual(server.end(), 0)
        tracks = self.tracks(self.trace.read_text())
        self.assertEqual(list(tracks), ["stage 0"])
        self.assertGreaterEqual(len(tracks["stage 0"]), REQUEST["max_tokens"])

    def test_a_file_that_cannot_be_written(self):
        self.assert_fails(run("serve", TINY_MODEL, "--trace", str(self.trace / "x")), str(self.trace / "x"), "cannot be written")


if __name__ == "__main__":
    unittest.main()
