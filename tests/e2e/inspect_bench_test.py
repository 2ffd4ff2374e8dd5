"""headrace inspect and headrace bench."""
import json
import unittest

from program import ProgramTest, data, run



class InspectTest(ProgramTest):
    def test_json(self):
        result = run("inspect", data("gguf/llama-256-Q4_K_M.gguf"), "--json", "--isa", "ref")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stderr, "")
        report = json.loads(result.stdout)
        self.assertEqual(report["architecture"], "llama")
        self.assertEqual(report["format"], "GGUF")
        self.assertEqual(report["shapes"]["hidden"], 256)
        types = {row["type"]: row for row in report["types"]}
        self.assertEqual(types["Q4_K"]["recipe"], "q8x256 v1")
        self.assertLessEqual(report["packed_bytes"], 1.10 * report["file_bytes"])
        shapes = report["shapes"]
        elements = 2 * shapes["layers"] * shapes["kv_heads"] * shapes["head_dim"]
        self.assertEqual(report["kv_cache"]["type"], "F16")
        self.assertEqual(report["kv_cache"]["bytes_per_token"], 2 * elements)
        self.assertEqual(sum(g["bytes_per_token"] for g in report["kv_cache"]["groups"]), 2 * elements)
        self.assertTrue(all(k["variant"] == "ref" for k in report["kernels"]))
        self.assertEqual(report["tokenizer"]["vocab_size"], 544)
        self.assertEqual(report["tokenizer"]["ends"][0]["id"], 2)

    def test_exact_numerics_change_recipes_and_cache(self):
        report = json.loads(run("inspect", data("gguf/llama-Q8_0.gguf"), "--json", "--numerics", "exact").stdout)
        types = {row["type"]: row for row in report["types"]}
        self.assertEqual(types["Q8_0"]["recipe"], "f32-lanes16 v1")
        self.assertEqual(report["kv_cache"]["type"], "F32")

    def test_window_groups(self):
        report = json.loads(run("inspect", data("models/mistral"), "--json").stdout)
        self.assertEqual([g["window"] for g in report["kv_cache"]["groups"]], [16])

    def test_text_holds_what_people_look_for(self):
        text = run("inspect", data("models/qwen3")).stdout
        for part in ("architecture   qwen3", "parameters", "KV cache", "tokenizer      BPE", "ends answers 2 <|im_end|>",
                     "chat template  default", "sampling       temperature 0", "packed"):
            self.assertIn(part, text)


class BenchMachineTest(ProgramTest):
    def test_json(self):
        result = run("bench", "machine", "-t", "1,2", "--memory", "16", "--isa", "avx2", "-o", "json")
        self.assertEqual(result.returncode, 0, result.stderr)
        report = json.loads(result.stdout)
        limits = {(row["limit"], row["threads"]): row for row in report["limits"]}
        self.assertTrue(all(row["value"] > 0 for row in limits.values()), limits)
        self.assertIn(("memory read, huge pages", 1), limits)
        self.assertIn(("all threads start, meet and join", 2), limits)
        self.assertNotIn(("int8, AMX tiles", 1), limits)
        # Two units of eight lanes at no more than 8 GHz: a loop that the compiler has removed would be far above.
        self.assertLess(limits["f32 fused multiply-add, AVX2", 1]["value"], 0.26)


class BenchTest(ProgramTest):
    ARGUMENTS = ["bench", data("models/llama"), "-p", "8,16", "-n", "4", "--rows", "1,2", "-t", "1,2", "-r", "2"]

    def test_json(self):
        result = run(*self.ARGUMENTS, "-o", "json")
        self.assertEqual(result.returncode, 0, result.stderr)
        report = json.loads(result.stdout)
        self.assertIn("cpu", report)
        self.assertIn("headrace", report["build"])
        seen = {(r["test"], r["rows"], r["threads"]) for r in report["results"]}
        self.assertEqual(seen, {(t, r, n) for t in ("pp8", "pp16", "tg4") for r in (1, 2) for n in (1, 2)})
        for row in report["results"]:
            self.assertEqual(len(row["runs"]), 2)
            self.assertGreater(row["min"], 0)
            self.assertTrue(row["min"] <= row["tokens_per_second"] <= row["max"])

    def test_markdown(self):
        lines = run(*self.ARGUMENTS).stdout.splitlines()
        rows = [line for line in lines if line.startswith("| ") and "tok/s" not in line]
        self.assertEqual(len(rows), 12)
        self.assertRegex(rows[0], r"^\| 1 \| 1 \| pp8 \| [\d.]+ \| [\d.]+ % \|$")


if __name__ == "__main__":
    unittest.main()
