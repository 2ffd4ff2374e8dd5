"""headrace tune."""
import json
import os
import tempfile
import unittest

from program import ProgramTest, data, run


class TuneTest(ProgramTest):
    def test_choices_are_remembered_and_shown_and_change_no_token(self):
        model = data("gguf/llama-256-Q4_K_M.gguf")
        with tempfile.TemporaryDirectory() as cache:
            env = {**os.environ, "HEADRACE_CACHE": cache}
            answer = ["run", model, "--raw", "-p", "The", "--max-tokens", "8", "-t", "2"]
            before = run(*answer, env=env)
            self.assertEqual(before.returncode, 0, before.stderr)
            result = run("tune", model, "-t", "2", env=env)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("| Q4_K interleaved16 | 65+ |", result.stdout)
            files = [os.path.join(cache, "tuning", name) for name in os.listdir(os.path.join(cache, "tuning"))]
            self.assertEqual(len(files), 1)
            with open(files[0]) as file:
                kept = json.load(file)
            # Whatever was measured, a choice put in by hand is used, and shown.
            kept["matmul"] = [{"type": "Q4_K", "layout": "interleaved16", "rows": rows, "isa": "ref", "grain": 2}
                              for rows in ("1", "2-4")]
            with open(files[0], "w") as file:
                json.dump(kept, file)
            report = json.loads(run("inspect", model, "--json", "-t", "2", env=env).stdout)
            tuned = [k for k in report["kernels"] if k["op"] == "matmul Q4_K interleaved16, 1 rows (tuned)"]
            self.assertEqual([k["variant"] for k in tuned], ["ref"])
            self.assertEqual(run(*answer, env=env).stdout, before.stdout)
            other = json.loads(run("inspect", model, "--json", "-t", "1", env=env).stdout)
            self.assertFalse(any("tuned" in k["op"] for k in other["kernels"]))


if __name__ == "__main__":
    unittest.main()
