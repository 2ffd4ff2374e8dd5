"""headrace run with pipes for standard streams."""
import json
import os
import subprocess
import tempfile
import unittest

from eval_test import change, copy_model
from program import PROGRAM, ProgramTest, data, run

MODEL = data("models/llama")
TEMPLATE_MODEL = data("gguf/llama-F32.gguf")
RAW = ["--raw", "--temperature", "0", "--max-tokens", "16", "--numerics", "exact"]


def golden_prompt():
    with open(data("models/llama/golden.json"), encoding="utf-8") as file:
        return json.load(file)["prompt0_text"]


class RunTest(ProgramTest):
    def answer(self, *arguments, **keywords):
        result = run("run", *arguments, **keywords)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def test_streams_the_answer_and_tells_timings(self):
        result = run("run", MODEL, "-p", golden_prompt(), *RAW)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertTrue(result.stdout.endswith("\n"))
        self.assertRegex(result.stderr,
                         r"^\[prompt 31 tokens, [\d.]+ tok/s; answer 16 tokens, [\d.]+ tok/s; first token after "
                         r"[\d.]+ s; ended by length\]\n$")
        self.assertEqual(run("run", MODEL, "-p", golden_prompt(), *RAW, "--quiet").stderr, "")

    def test_prompt_from_standard_input(self):
        given = self.answer(MODEL, "-p", golden_prompt(), *RAW)
        self.assertEqual(self.answer(MODEL, *RAW, stdin=golden_prompt() + "\n"), given)
        self.assertEqual(self.answer(MODEL, "-p", "-", *RAW, stdin=golden_prompt()), given)
        self.assert_fails(run("run", MODEL, *RAW, stdin=""), "the prompt is empty")

    def test_broken_weights_are_an_error(self):
        with tempfile.TemporaryDirectory() as folder:
            model = copy_model(folder)
            change(os.path.join(model, "model.safetensors"), "lm_head.weight", 0, "<f", float("nan"))
            self.assert_fails(run("run", model, "-p", "a", *RAW), "the logits are not numbers")

    def test_setups_agree(self):
        given = self.answer(MODEL, "-p", golden_prompt(), *RAW)
        for setup in (["--isa", "ref"], ["--threads", "1"], ["--threads", "2"], ["--max-model-len", "64"]):
            self.assertEqual(self.answer(MODEL, "-p", golden_prompt(), *RAW, *setup), given, setup)

    def test_chat_template(self):
        chat = ["--temperature", "0", "--max-tokens", "16", "--quiet"]
        own = self.answer(MODEL, "-p", "hi", *chat)
        self.assertEqual(self.answer(MODEL, "-p", "hi", *chat), own)
        rendered = "<|begin|><|im_start|>system\nYou keep the mill.<|im_end|>\n<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"
        self.assertEqual(self.answer(MODEL, "-p", rendered, "--raw", *chat), own)
        self.assertNotEqual(self.answer(MODEL, "-p", "hi", "--system", "Be brief.", *chat), own)
        # A template from a file, and what it refuses.
        self.assertEqual(self.answer(MODEL, "-p", "hi", "--chat-template", data("e2e/plain.jinja"), *chat),
                         self.answer(MODEL, "-p", "[hi]", "--raw", *chat))
        self.assert_fails(run("run", MODEL, "-p", "no", "--chat-template", data("e2e/plain.jinja"), *chat),
                          "this template takes no for no answer")

    def test_what_a_template_says_stays_on_one_line(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "t.jinja")
            for source, said in (("{{ raise_exception('a\\nb\\x1b[31m') }}", "headrace: a\\x0ab\\x1b[31m\n"),
                                 ("", f"headrace: {path}: is empty, expected a Jinja template\n")):
                with open(path, "w", encoding="utf-8") as file:
                    file.write(source)
                result = run("run", MODEL, "-p", "hi", "--chat-template", path)
                self.assert_fails(result)
                self.assertEqual(result.stderr, said)

    def test_standard_input_that_cannot_be_read(self):
        folder = os.open(data("models"), os.O_RDONLY)
        result = subprocess.run([PROGRAM, "run", MODEL, *RAW], stdin=folder, capture_output=True, text=True, timeout=60)
        os.close(folder)
        self.assert_fails(result, "standard input cannot be read")

    def test_sampling_flags(self):
        base = ["-p", golden_prompt(), "--raw", "--max-tokens", "24", "--quiet"]
        greedy = self.answer(MODEL, *base)
        self.assertEqual(self.answer(MODEL, *base, "--temperature", "1.5", "--top-k", "1"), greedy)
        seeded = self.answer(MODEL, *base, "--temperature", "1.5", "--seed", "1")
        self.assertEqual(self.answer(MODEL, *base, "--temperature", "1.5", "--seed", "1"), seeded)
        self.assertNotEqual(self.answer(MODEL, *base, "--temperature", "1.5", "--seed", "2"), seeded)
        # Asking for a filter asks for sampling, though the model's own choice is greedy.
        filtered = {self.answer(MODEL, *base, "--top-p", "0.99", "--seed", str(seed)) for seed in range(4)}
        self.assertGreater(len(filtered), 1)
        self.assertNotEqual(self.answer(MODEL, *base, "--frequency-penalty", "2", "--presence-penalty", "2",
                                        "--repetition-penalty", "50"), greedy)

    def test_stop_text(self):
        base = ["-p", golden_prompt(), *RAW, "--quiet"]
        whole = self.answer(MODEL, *base).rstrip("\n")
        stop = whole[len(whole) // 2:][:3]
        cut = self.answer(MODEL, *base, "--stop", "never there", "--stop", stop)
        self.assertEqual(cut.rstrip("\n"), whole[:whole.index(stop)].rstrip("\n"))

    def test_forms_of_answers(self):
        base = ["-p", "a", "--raw", "--temperature", "1", "--seed", "1", "--quiet"]
        self.assertIn(self.answer(MODEL, *base, "--choice", "a river", "--choice", "the mill"),
                      ["a river\n", "the mill\n"])
        self.assertRegex(self.answer(MODEL, *base, "--regex", "[ab]{3}"), r"^[ab]{3}\n$")
        self.assertEqual(self.answer(MODEL, *base, "--grammar", 'start: "x" "y"'), "xy\n")
        schema = '{"type": "array", "items": {"const": 7}, "minItems": 2, "maxItems": 2}'
        self.assertEqual(json.loads(self.answer(MODEL, *base, "--json-schema", schema)), [7, 7])
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "schema")
            with open(path, "w", encoding="utf-8") as file:
                file.write(schema)
            self.assertEqual(json.loads(self.answer(MODEL, *base, "--json-schema", path)), [7, 7])
            self.assert_fails(run("run", MODEL, *base, "--json-schema", os.path.join(folder, "none")), "none")
        self.assert_fails(run("run", MODEL, *base, "--regex", "a", "--choice", "a"), "--choice and --regex")
        self.assert_fails(run("run", MODEL, *base, "--regex", "("), "regex")

    def test_endless_input_is_refused(self):
        with open("/dev/zero", "rb") as endless:
            result = subprocess.run([PROGRAM, "run", MODEL, *RAW], stdin=endless, capture_output=True, text=True,
                                    timeout=60)
        self.assert_fails(result, "more than 256 MiB")

    def test_gguf(self):
        self.assertTrue(self.answer(TEMPLATE_MODEL, "-p", "hi", "--raw", "--max-tokens", "4", "--quiet"))


if __name__ == "__main__":
    unittest.main()
