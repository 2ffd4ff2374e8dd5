"""headrace bench serve and diff against a mock server: reports, files, sweeps, broken answers, Ctrl-C, refusals."""
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

from mock_server import MockServer
from program import PROGRAM, ProgramTest, run


class BenchServeTest(ProgramTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def serve(self, server, *arguments, code=0, env=None):
        result = run("bench", "serve", "--base-url", server.url, "--random-input-len", "12", "--random-output-len", "4",
                     *arguments, env=env)
        self.assertEqual(result.returncode, code, result.stderr)
        return result.stdout

    def test_reports_a_closed_loop(self):
        page, requests = self.folder / "page.html", self.folder / "requests.jsonl"
        with MockServer(token_seconds=0.002) as server:
            text = self.serve(server, "--num-prompts", "20", "--max-concurrency", "4", "--ignore-eos", "--goodput",
                              "ttft:60000", "tpot:60000", "--save-result", "--result-dir", self.folder,
                              "--result-filename", "r.json", "--html", page, "--save-requests", requests,
                              "--metadata", "link=loopback", "--api-key-file", self.key("secret\n"))
            self.assertEqual(len(server.bodies), 1 + 4 + 20, "a first request, one for each client, the run")
            self.assertTrue(all(body["ignore_eos"] for body in server.bodies))
            self.assertEqual({h["Authorization"] for h in server.headers_seen}, {"Bearer secret"})
        self.assertIn("20 completed, 0 failed", text)
        self.assertIn("| time per output token (TPOT) |", text)
        self.assertIn("prefix cache cold (cache_salt), prompt tokens counted by the server's /tokenize", text)
        report = json.loads((self.folder / "r.json").read_text())
        self.assertEqual((report["completed"], report["total_input_tokens"], report["total_output_tokens"]),
                         (20, 240, 80))
        self.assertGreaterEqual(report["mean_itl_ms"], 2)
        self.assertGreater(report["request_goodput"], 0)
        self.assertEqual(report["metadata"], {"link": "loopback"})
        self.assertEqual(report["model_id"], "mock")
        lines = [json.loads(line) for line in requests.read_text().splitlines()]
        self.assertEqual([len(line["token_times"]) for line in lines], [4] * 20)
        mean = sum(line["first_chunk"] - line["sent"] for line in lines) / 20
        self.assertAlmostEqual(report["mean_ttft_ms"], mean * 1e3, places=6)
        self.assertIn("<svg", page.read_text())

    def key(self, text):
        path = self.folder / "key"
        path.write_text(text)
        return path

    def test_sweeps_and_searches(self):
        with MockServer() as server:
            text = self.serve(server, "--num-prompts", "6", "--max-concurrency", "1,2", "--request-rate", "inf,500",
                              "--burstiness", "inf", "--backend", "openai-chat")
            self.assertEqual(text.count("\n## "), 4)
            self.assertIn("| 500 requests/s, at most 2 at once | 6 |", text)
            report = json.loads(self.serve(server, "--num-prompts", "3", "--request-rate", "2000",
                                           "--find-request-rate", "--max-mean-ttft-ms", "60000", "-o", "json"))
            self.assertEqual(report["best_request_rate"], 8000)
            self.assertEqual([run["request_rate"] for run in report["runs"]], [2000, 4000, 8000])

    def test_compares_answers(self):
        first, second = self.folder / "a.jsonl", self.folder / "b.jsonl"
        with MockServer() as server:
            self.serve(server, "--num-prompts", "5", "--save-requests", first)
            text = self.serve(server, "--num-prompts", "5", "--save-requests", second, "--compare", first)
            self.assertIn("5 answers compared, 5 the same, 0 differ", text)
            self.assertEqual(run("bench", "diff", first, second).returncode, 0)
            self.serve(server, "--num-prompts", "5", "--seed", "1", "--save-requests", second)
        result = run("bench", "diff", first, second)
        self.assertEqual(result.returncode, 2)
        self.assertIn("| request | first mismatch, byte |", result.stdout)

    def test_counts_what_goes_wrong(self):
        data = self.folder / "lines.jsonl"
        data.write_text("".join(json.dumps({"prompt": p, "output_tokens": 4}) + "\n"
                                for p in ("fine", "REFUSE", "BREAK", "fine too")))
        with MockServer(salt=False) as server:
            text = self.serve(server, "--dataset-name", "custom", "--dataset-path", data, "--num-warmups", "0")
            self.assertNotIn("cache_salt", server.bodies[-1])
        self.assertIn("prefix cache cold (unique text)", text)
        self.assertIn("2 completed, 1 failed, 1 incomplete", text)
        self.assertIn("warning: 1 of 4 requests failed: status 503: overloaded", text)

    def test_ctrl_c_reports_what_finished(self):
        with MockServer(token_seconds=0.05) as server:
            process = subprocess.Popen(
                [PROGRAM, "bench", "serve", "--base-url", server.url, "--random-input-len", "5", "--random-output-len",
                 "4", "--num-prompts", "500", "--max-concurrency", "4"],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ)
            while len(server.bodies) < 20:
                self.assertIsNone(process.poll())
                time.sleep(0.02)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 130, err)
        self.assertIn("interrupted: figures are of what had finished", out)
        self.assertRegex(out, r"\n[1-9]\d* completed, 0 failed, 0 incomplete, [1-4] cancelled, \d{3} not sent")

    def test_refuses_in_one_line(self):
        for arguments, message in (
                (["--request-rate", "2,x"], "--request-rate: 'x' is not a number above 0, nor inf"),
                (["--burstiness", "0"], "--burstiness: '0' is not"),
                (["--goodput", "itl:3"], "--goodput: 'itl:3' is not ttft:MS"),
                (["--find-request-rate"], "needs --max-mean-ttft-ms"),
                (["--dataset-name", "nil"], "--dataset-name: 'nil' is not one of"),
                (["--base-url", "localhost:1"], "begins with neither http:// nor https://"),
                (["--html", self.folder / "none" / "x"], "cannot be written"),
                (["--compare", self.folder / "none"], "none"),
                (["--base-url", "http://127.0.0.1:1"], "is a server running there?")):
            self.assert_fails(run("bench", "serve", *map(str, arguments)), message)


if __name__ == "__main__":
    unittest.main()
