"""Help, wrong use and unreadable models: what every command has in common."""
import os
import re
import tempfile
import unittest

from program import ProgramTest, data, run

COMMANDS = ["run", "serve", "inspect", "bench", "eval"]
OPTIONS = {
    "run": "prompt system raw chat-template parallel quiet temperature top-k top-p min-p typical-p repetition-penalty "
           "presence-penalty frequency-penalty seed max-tokens min-tokens ignore-eos stop stop-token-ids "
           "include-stop-str-in-output allowed-token-ids json-schema json-object regex choice grammar structural-tag "
           "isa numerics kv-cache-dtype threads max-model-len "
           "kv-cache-memory-bytes enable-prefix-caching max-num-seqs max-num-batched-tokens "
           "tensor-parallel-size tensor-parallel-transport help",
    "serve": "host port grpc-port ssl-certfile ssl-keyfile io-threads served-model-name dry-run api-key-file "
             "allowed-origins allow-terminate trust-request-chat-template max-queued-requests max-queued-tokens "
             "queue-timeout request-timeout drain-timeout max-body-bytes max-connections max-choices chat-template "
             "merge-system-messages tool-call-parser reasoning-parser metrics-compat log-format log-requests "
             "otlp-traces-endpoint trace workers secret-file cluster-certfile cluster-keyfile cluster-cafile "
             "join-listen wait-for-workers join-timeout pipeline-layers output-stage placement wire-dtype "
             "steps-in-flight cluster-memory-bytes rejoin-timeout allow-other-builds config cpu-list isa numerics "
             "kv-cache-dtype threads max-model-len kv-cache-memory-bytes enable-prefix-caching max-num-seqs "
             "max-num-batched-tokens tensor-parallel-size tensor-parallel-transport help",
    "rank": "rank ranks help",
    "worker": "listen join name advertise secret-file cluster-certfile cluster-keyfile cluster-cafile model "
              "memory-bytes disk-bytes isa threads cpu-list config node help",
    "batch": "model isa numerics kv-cache-dtype threads max-model-len kv-cache-memory-bytes enable-prefix-caching "
             "max-num-seqs max-num-batched-tokens help",
    "inspect": "json isa numerics kv-cache-dtype threads max-model-len help",
    "bench": "prompt generate depth rows threads repetitions output isa numerics kv-cache-dtype help",
    "plan": "nodes placement pipeline-layers output-stage wire-dtype max-model-len max-num-batched-tokens max-num-seqs "
            "kv-cache-memory-bytes kv-cache-dtype clients prompt output json svg help",
    "eval": "golden numerics isa kv-cache-dtype threads chunks stages together backend help",
}


class CommandLineTest(ProgramTest):
    def test_top_level(self):
        result = run("--help")
        self.assertEqual(result.returncode, 0)
        for command in COMMANDS:
            self.assertIn(command, result.stdout)
        self.assertRegex(run("--version").stdout, r"^headrace \d+\.\d+\.\d+ ")
        self.assert_fails(run(), "no command")
        self.assert_fails(run("rnu"), "unknown command 'rnu'", "did you mean run?")

    def test_help_lists_exactly_the_options(self):
        for command, options in OPTIONS.items():
            result = run(command, "--help")
            self.assertEqual(result.returncode, 0)
            self.assertEqual(result.stderr, "")
            listed = re.findall(r"^  (?:-\w, |    )--([a-z-]+)", result.stdout, re.MULTILINE)
            self.assertEqual(sorted(listed), sorted(options.split()), command)
            self.assertTrue(all(len(line) <= 100 for line in result.stdout.splitlines()), command)

    def test_wrong_use(self):
        model = data("models/llama")
        for command in COMMANDS:
            self.assert_fails(run(command, model, "--thread", "1"), "unknown flag --thread;", "did you mean --threads?")
            self.assert_fails(run(command, model, "--isa", "mmx"), "--isa: 'mmx' is not", "avx2")
        self.assert_fails(run("run"), "MODEL is missing")
        self.assert_fails(run("batch"), "INPUT is missing")
        self.assert_fails(run("eval"), "nothing to compare")
        self.assert_fails(run("run", model, "-p", "x", "--temperature", "hot"), "--temperature: 'hot'", "from 0 to 100")
        self.assert_fails(run("run", model, "-p", "x", "--stop", ""), "stop: an empty text")
        self.assert_fails(run("run", model, "-p", "x", "--raw", "--system", "s"), "--system", "--raw")
        self.assert_fails(run("run", model, "-p", "x", "--max-model-len", "9999"), "9999", "512")
        self.assert_fails(run("bench", model, "-p", "0", "-n", "0"), "nothing to measure")

    def test_models_that_cannot_be_read(self):
        with tempfile.TemporaryDirectory() as folder:
            broken = os.path.join(folder, "broken.gguf")
            with open(data("gguf/llama-Q8_0.gguf"), "rb") as whole, open(broken, "wb") as part:
                part.write(whole.read(5000))
            for command in ["run", "inspect", "bench"]:
                arguments = ["-p", "x"] if command == "run" else []
                self.assert_fails(run(command, os.path.join(folder, "none.gguf"), *arguments), "none.gguf")
                self.assert_fails(run(command, folder, *arguments), folder)
                self.assert_fails(run(command, broken, *arguments), "broken.gguf")
        self.assert_fails(run("inspect", data("models/mixtral")), "MixtralForCausalLM")
        self.assert_fails(run("run", data("models/llama"), "-p", "x", "--chat-template", "/none.jinja"), "/none.jinja")

    def test_environment_chooses_the_instruction_set(self):
        model = data("models/llama")
        self.assertIn('"isa": "ref"', run("inspect", model, "--json", env={"HEADRACE_ISA": "ref"}).stdout)
        self.assert_fails(run("inspect", model, env={"HEADRACE_ISA": "mmx"}), "mmx")


if __name__ == "__main__":
    unittest.main()
