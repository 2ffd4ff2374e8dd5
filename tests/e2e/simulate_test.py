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
        result = run("simulate", *arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

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
