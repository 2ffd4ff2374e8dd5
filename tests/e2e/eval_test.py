"""headrace eval: verdicts, lines and exit codes."""
import json
import os
import shutil
import struct
import tempfile
import unittest

from program import ProgramTest, data, run


def copy_model(folder, name="llama"):
    target = os.path.join(folder, name)
    shutil.copytree(data("models/" + name), target)
    return target


def change(path, tensor, offset, fmt, value):
    """Overwrites one element of a tensor in a safetensors file."""
    with open(path, "rb") as file:
        content = bytearray(file.read())
    size = struct.unpack_from("<Q", content)[0]
    begin = json.loads(content[8:8 + size])[tensor]["data_offsets"][0]
    struct.pack_into(fmt, content, 8 + size + begin + offset, value)
    with open(path, "wb") as file:
        file.write(content)


def change_golden(folder, *where):
    change(os.path.join(folder, "golden.safetensors"), *where)


class EvalTest(ProgramTest):
    def check(self, code, *arguments):
        result = run("eval", *arguments)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        self.assertEqual(result.stderr, "")
        return result.stdout.splitlines()

    def test_setups_of_a_model(self):
        lines = self.check(0, "--golden", data("models/llama"), "--threads", "1,2", "--chunks", "0,7", "--stages", "1,2",
                           "--numerics", "exact")
        self.assertEqual(len(lines), 9)
        self.assertRegex(lines[0], r"^llama  exact \w+  diff/std \d\.\d\de-0\d  96/96 greedy  OK$")
        self.assertEqual(lines[-1], "8 OK, 0 FAILED, 0 NOT TRIED")

    def test_quantised_recipes(self):
        for name in ("llama-Q8_0", "llama-256-Q4_K_M", "qwen2-Q8_0"):
            lines = self.check(0, data(f"gguf/{name}.gguf"))
            self.assertEqual(lines[-1], "3 OK, 0 FAILED, 0 NOT TRIED")

    def test_folders_of_each_kind(self):
        lines = self.check(0, "--golden", data("quant"), data("templates"), data("models/_tokenizer"))
        self.assertTrue(any(line.startswith("quant/Q4_K  4096/4096 values bit-equal  OK") for line in lines), lines[:3])
        self.assertTrue(lines[-1].endswith(" 0 FAILED, 0 NOT TRIED"))

    def test_a_wrong_logit_fails(self):
        with tempfile.TemporaryDirectory() as folder:
            model = copy_model(folder)
            change_golden(model, "logits1", 4 * 100, "<f", 3.0)
            lines = self.check(1, "--golden", model, "--numerics", "exact")
            self.assertRegex(lines[0], r"FAILED: difference .* is above 0\.001")

    def test_a_wrong_greedy_token_fails(self):
        with tempfile.TemporaryDirectory() as folder:
            model = copy_model(folder)
            change_golden(model, "greedy2", 8 * 31, "<q", 7)
            lines = self.check(1, "--golden", model, "--numerics", "exact")
            self.assertRegex(lines[0], r"95/96 greedy  FAILED: prompt2, step 31: best token \d+, expected 7")

    def test_a_wrong_block_fails(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("quant.json", "Q4_0.safetensors"):
                shutil.copy(data("quant/" + name), folder)
            change(os.path.join(folder, "Q4_0.safetensors"), "dequantized", 4 * 5, "<f", 99.0)
            verdicts = {line.split()[0]: line for line in self.check(1, "--golden", folder)}
            self.assertIn("4095/4096 values bit-equal  FAILED: first at element 5", verdicts["quant/Q4_0"])
            self.assertIn("NOT TRIED", verdicts["quant/Q5_K"])

    def test_what_cannot_be_tried(self):
        lines = self.check(2, "--golden", data("models/mixtral"))
        self.assertIn("NOT TRIED", lines[0])
        self.assertIn("MixtralForCausalLM", lines[0])
        self.assertIn("name the model", self.check(2, "--golden", data("smollm2"))[0])
        self.assertIn("no such file or folder", self.check(2, "--golden", "/none")[0])
        with tempfile.TemporaryDirectory() as folder:
            self.assertIn("no golden in it", self.check(2, "--golden", folder)[0])
            shutil.copy(data("gguf/llama-F32.gguf"), folder)
            self.assertIn("no golden beside it", self.check(2, "--golden", folder)[0])
            # A failure counts more than what was not tried.
            model = copy_model(folder)
            change_golden(model, "logits0", 0, "<f", 1e9)
            self.check(1, "--golden", folder, "--numerics", "exact")

    def test_parent_folder(self):
        lines = self.check(2, "--golden", data("models"), "--numerics", "exact")
        names = [line.split()[0] for line in lines[:-1] if not line.startswith("_tokenizer/")]
        self.assertEqual(names, sorted(names))
        self.assertTrue({"llama", "mistral", "qwen2", "qwen3", "llama3-rope"} <= set(names))
        self.assertIn("0 FAILED", lines[-1])

    def test_golden_of_another_model(self):
        self.assertIn("not in the vocabulary of 544", self.check(1, data("models/llama"), "--golden", data("smollm2"))[0])


if __name__ == "__main__":
    unittest.main()
