"""headrace simulate: report, JSON, timeline, files of flags and of loads, and what it refuses."""
import json
import pathlib
import tempfile
import unittest

from program import ProgramTest, run


class SimulateTest(ProgramTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def file(self, name, text):
        (self.folder / name).write_text(text)
        return self.folder / name

    def simulate(self, *arguments):
        result = run("simulate", *map(str, arguments))
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def figures(self, stages, *arguments):
        """Of a pipeline of equal stages; a model's costs on machines that take 24 ms for its weights."""
        report = self.folder / "report.json"
        self.simulate("--stages", stages, "--weights-ms", 24 / stages, "--token-us", 1500 / stages, "--link-gbit", 1,
                      "--link-ms", 0.1, "--token-bytes", 8192, "--kv-tokens", 1 << 18, "--json", report, *arguments)
        return json.loads(report.read_text())

    def test_A1_steps_in_flight_keep_both_stages_busy(self):
        load = ("--prompt", 128, "--output", 64, "--requests")
        one = self.figures(2, "--clients", 16, "--steps-in-flight", 1, *load, 64)
        several = self.figures(2, "--clients", 32, *load, 128)
        self.assertGreater(several["output_throughput"], 1.7 * one["output_throughput"])
        self.assertLess(max(several["stage_idle_steady"]), 0.15)
        self.assertGreater(max(one["stage_idle_steady"]), 0.4)

    def test_A4_A20_more_stages_give_more(self):
        outputs = [self.figures(stages, "--clients", 16 * stages, "--requests", 64 * stages, "--prompt", 128, "--output", 64)
                   ["output_throughput"] for stages in (1, 2, 3, 4)]
        self.assertEqual(outputs, sorted(outputs))
        prompts = [self.figures(stages, "--clients", 8, "--requests", 32, "--prompt", 2048, "--output", 1)
                   ["total_token_throughput"] for stages in (1, 2, 3, 4)]
        self.assertEqual(prompts, sorted(prompts))

    def test_reports_as_text_json_and_timeline(self):
        costs = self.file("costs.yaml", "stages: 2\nfixed_ms: [2, 1]\ntoken_us: 100\nprompt: 50\noutput: 4\nrequests: 9\n")
        report, trace = self.folder / "report.json", self.folder / "trace.json"
        text = self.simulate(costs, "--requests", "10", "--clients", "3", "--json", report, "--trace", trace)
        self.assertIn("10 requests (0 refused), 500 tokens in, 40 out", text)
        self.assertIn("40 tokens checked against the reference, 0 wrong", text)
        figures = json.loads(report.read_text())
        self.assertEqual((figures["completed"], figures["total_output_tokens"], figures["stages"]), (10, 40, 2))
        events = json.loads(trace.read_text())
        names = [event["args"]["name"] for event in events if event["name"] == "thread_name"]
        self.assertEqual(names, ["stage 0", "link 0 to 1", "stage 1", "link 1 to head"])
        spans = [event for event in events if event["ph"] == "X" and event["tid"] in (1, 3)]
        self.assertEqual(len(spans), 2 * figures["steps"])

    def test_reads_recorded_loads(self):
        load = self.file("load.csv", "arrival,prompt,output\n0.5,20,3\n0,10,2\n")
        self.assertIn("2 requests (0 refused), 30 tokens in, 5 out", self.simulate("--load", load))

    def test_refuses_in_one_line(self):
        for arguments, message in (
                (["--fixed-ms", "1,2", "--stages", "3"], "--fixed-ms: 2 values for 3 stages"),
                (["--clients", "3", "--rate", "2"], "--clients and --rate"),
                (["--json", self.folder / "none" / "x"], "cannot be written"),
                (["--trace", self.folder / "none" / "x"], "cannot be written"),
                ([self.file("bad.yaml", "stagse: 2\n")], "unknown key 'stagse'; did you mean stages?")):
            self.assert_fails(run("simulate", *arguments), message)


if __name__ == "__main__":
    unittest.main()
