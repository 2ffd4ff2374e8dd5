"""headrace batch and headrace run --parallel: many requests at once from a file."""
import json
import os
import signal
import subprocess
import tempfile
import time
import unittest

from program import PROGRAM, ProgramTest, data, run

MODEL = data("models/llama")


def line(custom_id, body, url="/v1/completions"):
    return json.dumps({"custom_id": custom_id, "method": "POST", "url": url, "body": body}) + "\n"


def completion(i):
    return {"prompt": [5 + i % 400, 9, 30 + i % 100], "max_tokens": 8 + i % 9, "temperature": i % 2, "seed": i,
            "ignore_eos": True}


class BatchTest(ProgramTest):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.input = os.path.join(self.folder.name, "in.jsonl")
        self.output = os.path.join(self.folder.name, "out.jsonl")

    def tearDown(self):
        self.folder.cleanup()

    def write(self, *lines):
        with open(self.input, "w", encoding="utf-8") as file:
            file.writelines(lines)

    def batch(self, *flags, code=0):
        result = run("batch", self.input, self.output, "--model", MODEL, *flags)
        self.assertEqual(result.returncode, code, result.stderr)
        return result

    def results(self):
        with open(self.output, encoding="utf-8") as file:
            lines = [json.loads(text) for text in file]
        ids = [one["custom_id"] for one in lines]
        self.assertEqual(len(set(ids)), len(ids), "a result twice")
        return {one["custom_id"]: one["response"] for one in lines}

    def test_answers_of_each_kind(self):
        chat = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 6, "n": 2, "seed": 3, "logprobs": True,
                "top_logprobs": 2}
        self.write(line("chat", chat, "/v1/chat/completions"),
                   line("two prompts", {"prompt": ["a b", "c d"], "max_tokens": 4, "echo": True, "logprobs": 1}),
                   "\n",
                   line("wrong", {"prompt": "a", "temperature": -1}),
                   line("too long", {"prompt": [7] * 600}),
                   line("schema", {"prompt": "x", "max_tokens": 200, "seed": 1,
                                   "structured_outputs": {"choice": ["yes", "no"]}}))
        self.assertIn("2 requests were refused", self.batch(code=2).stderr)
        results = self.results()
        body = results["chat"]["body"]
        self.assertEqual(body["object"], "chat.completion")
        self.assertEqual(len(body["choices"]), 2)
        self.assertEqual(len(body["choices"][0]["logprobs"]["content"][0]["top_logprobs"]), 2)
        usage = body["usage"]
        self.assertEqual(usage["total_tokens"], usage["prompt_tokens"] + usage["completion_tokens"])
        both = results["two prompts"]["body"]["choices"]
        self.assertEqual([choice["index"] for choice in both], [0, 1])
        self.assertTrue(both[0]["text"].startswith("a b"))
        self.assertIsNone(both[0]["logprobs"]["token_logprobs"][0])
        self.assertEqual(results["wrong"]["status_code"], 400)
        self.assertEqual(results["wrong"]["body"]["error"]["param"], "temperature")
        self.assertEqual(results["too long"]["body"]["error"]["code"], "context_length_exceeded")
        self.assertIn(results["schema"]["body"]["choices"][0]["text"], ["yes", "no"])

    def test_answers_do_not_depend_on_the_crowd(self):
        self.write(*(line(str(i), completion(i)) for i in range(40)))
        texts = []
        for flags in ([], ["--max-num-seqs", "1", "--no-enable-prefix-caching"],
                      ["--max-model-len", "32", "--kv-cache-memory-bytes", str(96 * 1024), "--threads", "2",
                       "--max-num-batched-tokens", "5"]):
            if os.path.exists(self.output):
                os.remove(self.output)
            self.batch(*flags)
            texts.append({key: one["body"]["choices"][0]["text"] for key, one in self.results().items()})
        self.assertEqual(len(texts[0]), 40)
        self.assertEqual(texts[0], texts[1])
        self.assertEqual(texts[0], texts[2])

    def test_goes_on_after_a_kill(self):
        count = 300
        self.write(*(line(str(i), dict(completion(i), max_tokens=60)) for i in range(count)))
        for stop in (signal.SIGKILL, signal.SIGINT):
            process = subprocess.Popen([PROGRAM, "batch", self.input, self.output, "-m", MODEL, "--max-num-seqs", "4"],
                                       stderr=subprocess.PIPE)
            before = len(self.results()) if os.path.exists(self.output) else 0
            deadline = time.monotonic() + 60
            while time.monotonic() < deadline and process.poll() is None:
                if os.path.exists(self.output) and os.path.getsize(self.output) > 0:
                    with open(self.output, encoding="utf-8") as file:
                        if sum(1 for _ in file) > before + 20:
                            break
                time.sleep(0.01)
            process.send_signal(stop)
            process.communicate(timeout=60)
            self.assertEqual(process.returncode, -stop if stop == signal.SIGKILL else 130)
        with open(self.output, "a", encoding="utf-8") as file:
            file.write('{"id":"batch_cmpl-9","custom_id":"hal')  # as a kill may leave it
        result = self.batch()
        self.assertRegex(result.stderr, r"\d+ results are there already; \d+ requests are left")
        self.assertEqual(len(self.results()), count)
        self.assertIn("0 requests are left", self.batch().stderr)

    def test_tries_again_what_another_try_may_better(self):
        self.write(*(line(name, completion(i)) for i, name in enumerate(["ok", "busy", "fault", "wrong"])))

        def result(name, status):
            return json.dumps({"id": "batch_cmpl-1", "custom_id": name, "error": None,
                               "response": {"status_code": status, "request_id": "cmpl-1", "body": {}}}) + "\n"
        with open(self.output, "w", encoding="utf-8") as file:
            file.writelines([result("fault", 503), result("ok", 200), result("busy", 429), result("wrong", 400)])
        self.assertIn("2 results are there already; 2 requests are left", self.batch().stderr)
        results = self.results()
        self.assertEqual({name: one["status_code"] for name, one in results.items()},
                         {"ok": 200, "wrong": 400, "busy": 200, "fault": 200})
        self.assertEqual(results["ok"]["body"], {}, "what was there is kept")
        self.assertEqual(sorted(os.listdir(self.folder.name)), ["in.jsonl", "out.jsonl"])

    def test_faults_of_the_files_are_told_at_once(self):
        self.write(line("a", {"prompt": "x"}), "{\n")
        self.assert_fails(run("batch", self.input, self.output, "-m", MODEL), "in.jsonl:2", "not JSON")
        self.write(line("a", {"prompt": "x"}), line("a", {"prompt": "y"}))
        self.assert_fails(run("batch", self.input, self.output, "-m", MODEL), "in.jsonl:2", "stands there twice")
        self.write(line("a", {"input": "x"}, "/v1/embeddings"))
        self.assert_fails(run("batch", self.input, self.output, "-m", MODEL), "in.jsonl:1", "/v1/chat/completions")
        self.write(line("a", {"prompt": "x"}))
        self.assert_fails(run("batch", self.input, self.output), "no model", "--model")
        self.assert_fails(run("batch", self.input, os.path.join(self.folder.name, "no", "out"), "-m", MODEL), "no/out")
        self.assert_fails(run("batch", self.input + "x", self.output, "-m", MODEL), "cannot be read")
        self.assert_fails(run("batch", self.folder.name, self.output, "-m", MODEL), "is a folder")
        self.assert_fails(run("batch", self.input, self.folder.name, "-m", MODEL), "is no ordinary file")
        self.assert_fails(run("batch", self.input, "/dev/stdout", "-m", MODEL), "is no ordinary file")

    def test_other_files_are_left_alone(self):
        self.write(line("a", {"prompt": "x"}))
        precious = os.path.join(self.folder.name, "precious")
        for text in ("no line break", "a line\n", '{"id":"other"}\n'):
            with open(precious, "w", encoding="utf-8") as file:
                file.write(text)
            self.assert_fails(run("batch", self.input, precious, "-m", MODEL), "something else than results")
            with open(precious, encoding="utf-8") as file:
                self.assertEqual(file.read(), text)
        self.assert_fails(run("batch", self.input, self.input, "-m", MODEL), "is the file of requests too")

    def test_a_full_disk_is_an_error(self):
        self.write(*(line(str(i), completion(i)) for i in range(200)))
        result = subprocess.run(["bash", "-c", 'trap "" XFSZ; ulimit -f 4; exec "$@"', "-", PROGRAM, "batch", self.input,
                                 self.output, "-m", MODEL], capture_output=True, text=True, timeout=60)
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("cannot be written", result.stderr)
        self.batch()
        self.assertEqual(len(self.results()), 200)

    def test_scoring_many_choices(self):
        self.write(line("a", {"prompt": "hi", "max_tokens": 0, "n": 120, "best_of": 128}),
                   line("b", {"prompt": "hi", "max_tokens": 0, "n": 3, "prompt_logprobs": 1, "return_token_ids": True}),
                   line("c", {"prompt": "hi", "stream": True}))
        self.batch(code=2)
        results = self.results()
        self.assertEqual(len(results["a"]["body"]["choices"]), 120)
        scored = results["b"]["body"]["choices"]
        self.assertEqual(len(scored), 3)
        self.assertEqual(len(scored[2]["prompt_logprobs"]), len(scored[2]["prompt_token_ids"]))
        self.assertEqual(results["c"]["body"]["error"]["param"], "stream")


class ParallelTest(ProgramTest):
    FLAGS = ["--raw", "--temperature", "0", "--max-tokens", "8", "--numerics", "exact"]

    def test_answers_every_line_in_order(self):
        prompts = ["a river", "the mill", "", "water runs", "a b c"]
        result = run("run", MODEL, "--parallel", "3", *self.FLAGS, stdin="\n".join(prompts) + "\n")
        self.assertEqual(result.returncode, 0, result.stderr)
        alone = [run("run", MODEL, "-p", prompt, *self.FLAGS).stdout for prompt in prompts if prompt]
        self.assertEqual(result.stdout, "".join(f"[{i}] {text}" for i, text in enumerate(alone, 1)))
        self.assertIn("4 prompts", result.stderr)

    def test_prompts_that_fail_leave_the_others(self):
        result = run("run", MODEL, "--parallel", "3", *self.FLAGS, stdin="a river\n" + "word " * 600 + "\nthe mill\n")
        self.assertEqual(result.returncode, 2, result.stderr)
        lines = result.stdout.splitlines()
        self.assertEqual(len([text for text in lines if text.startswith("[")]), 3)
        self.assertIn("[2] error: the prompt has", result.stdout)
        self.assert_fails(run("run", MODEL, "--parallel", "3", *self.FLAGS, stdin="\n \n\n"), "no line that is not blank")

    def test_output_that_nobody_reads_ends_the_run(self):
        reader, writer = os.pipe()
        os.close(reader)
        # Ignored, as services have it, so that writing fails in place of ending the program.
        result = subprocess.run(["bash", "-c", 'trap "" PIPE; exec "$@"', "-", PROGRAM, "run", MODEL, "--parallel", "8",
                                 *self.FLAGS], input="a river\n" * 200, stdout=writer, stderr=subprocess.PIPE, text=True,
                                timeout=60)
        os.close(writer)
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("standard output cannot be written", result.stderr)


if __name__ == "__main__":
    unittest.main()
