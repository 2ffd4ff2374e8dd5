"""The Python package: a model in this process, servers that it starts, and what users do wrong."""
import asyncio
import os
import tempfile
import threading
import time
import unittest

import headrace
from headrace import SamplingParams

MODEL = os.path.join(os.environ["HR_TEST_DATA"], "gguf/llama-F32.gguf")
GREEDY = SamplingParams(temperature=0, max_tokens=8, ignore_eos=True)
LONG = SamplingParams(temperature=0, ignore_eos=True)
TALK = [{"role": "user", "content": "hello there"}]


class Answers:
    """What a model and a server do alike: `self.llm` is either."""

    def test_prompts_of_each_kind(self):
        a, b = self.llm.generate(["hello there", "and you"], GREEDY)
        self.assertEqual(len(a.token_ids), 8)
        self.assertEqual(a.finish_reason, "length")
        self.assertEqual((a.prompt, b.prompt), ("hello there", "and you"))
        self.assertEqual(self.llm.generate("hello there", GREEDY)[0].text, a.text)
        self.assertEqual(str(a), a.generated_text)
        self.assertEqual(a.usage.completion_tokens, 8)
        self.assertGreater(a.prompt_length, 0)
        self.assertEqual(len(self.llm.generate([5, 6, 7], GREEDY)[0].token_ids), 8)
        self.assertEqual(len(self.llm.chat(TALK, GREEDY)[0].token_ids), 8)
        self.assertEqual(len(self.llm.chat([TALK, TALK], GREEDY)), 2)

    def test_choices_and_logprobs(self):
        params = SamplingParams(temperature=0, max_tokens=4, ignore_eos=True, n=2, logprobs=2)
        response = self.llm.generate("hello", params)[0]
        self.assertEqual([o.index for o in response.outputs], [0, 1])
        self.assertEqual(len(response.outputs[1].logprobs), 4)
        self.assertEqual(len(response.outputs[1].logprobs[0].top), 2)
        self.assertEqual(response.usage.completion_tokens, 8)

    def test_streams(self):
        whole = self.llm.generate("hello there", GREEDY)[0]
        chunks = list(self.llm.stream("hello there", GREEDY))
        self.assertEqual("".join(map(str, chunks)), whole.text)
        self.assertEqual(chunks[-1].finish_reason, "length")
        self.assertEqual(chunks[-1].usage.completion_tokens, 8)

        async def many():
            async def one():
                return "".join([chunk.text async for chunk in self.llm.astream("hello there", GREEDY)])
            return await asyncio.gather(*(one() for _ in range(10)), self.llm.agenerate("hello there", GREEDY))
        self.assertEqual({str(text) for text in asyncio.run(many())}, {whole.text})

    def test_what_is_given_up_ends(self):
        stream = self.llm.stream("hello", LONG)
        next(stream)
        stream.close()

        async def leave():
            stream = self.llm.astream("hello", LONG)
            async for _ in stream:
                break
            await stream.aclose()
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(self.llm.agenerate("hello", LONG), 0)
        asyncio.run(leave())
        self.assertEqual(len(self.llm.generate("hello", GREEDY)[0].token_ids), 8)

    def test_threads(self):
        texts = []
        threads = [threading.Thread(target=lambda: texts.append(self.llm.generate("hello there", GREEDY)[0].text))
                   for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(texts), 8)
        self.assertEqual(len(set(texts)), 1)

    def test_mii_keywords(self):
        greedy = {"do_sample": False, "ignore_eos": True}
        full = self.llm(["hello there"], max_new_tokens=4, return_full_text=True, **greedy)[0]
        self.assertTrue(full.generated_text.startswith("hello there"))
        self.assertEqual(full.generated_length, 4)
        bounded = self.llm("hello there", max_length=full.prompt_length + 3, **greedy)[0]
        self.assertEqual(bounded.generated_length, 3)
        pieces = []
        whole = self.llm("hello there", max_new_tokens=4, streaming_fn=lambda r: pieces.append(str(r[0])), **greedy)
        self.assertEqual("".join(pieces), whole[0].text)

    def test_structures(self):
        params = SamplingParams(temperature=0, max_tokens=20, structured_output={"choice": ["yes", "no"]})
        self.assertIn(self.llm.generate("hello", params)[0].text, ("yes", "no"))

    def test_errors(self):
        for params, error, text in (
                (SamplingParams(temperature=-1), headrace.ParameterError, "temperature"),
                (SamplingParams(n=-1), headrace.ParameterError, "n"),
                (SamplingParams(top_p=float("nan")), headrace.ParameterError, "top_p"),
                (SamplingParams(max_tokens="many"), TypeError, "max_tokens"),
                (SamplingParams(max_tokens=1 << 40), TypeError, "max_tokens"),
                (SamplingParams(logit_bias=[1]), TypeError, "logit_bias"),
                (SamplingParams(structured_output={"regex": "("}), headrace.InvalidArgumentError, "")):
            with self.assertRaisesRegex(error, text, msg=params):
                self.llm.generate("hello", params)
        with self.assertRaises(headrace.ContextLengthError) as caught:
            self.llm.generate([5] * 5000, GREEDY)
        self.assertEqual(caught.exception.prompt_tokens, 5000)
        self.assertIsInstance(caught.exception, ValueError)
        for prompt in ([-1], [1 << 30]):
            with self.assertRaises(headrace.InvalidArgumentError):
                self.llm.generate(prompt, GREEDY)
        for prompt in ([[1.5]], [None], "\ud800"):
            with self.assertRaises((TypeError, UnicodeError)):
                self.llm.generate(prompt, GREEDY)
        with self.assertRaises(headrace.DeadlineError):
            self.llm.generate(["hello"] * 4, SamplingParams(temperature=0, ignore_eos=True, n=100), timeout=0.01)
        self.assertEqual(len(self.llm.generate("hello", GREEDY)[0].token_ids), 8)


class LocalTest(Answers, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.llm = headrace.pipeline(MODEL, threads=1)

    @classmethod
    def tearDownClass(cls):
        cls.llm.close()

    def test_loading(self):
        with self.assertRaises(headrace.NotFoundError):
            headrace.LLM("/no/such/model.gguf")
        with self.assertRaisesRegex(TypeError, "speed"):
            headrace.LLM(MODEL, speed=9)
        with self.assertRaisesRegex(TypeError, "threads"):
            headrace.LLM(MODEL, threads="two")
        with headrace.LLM(MODEL, threads=1) as llm:
            self.assertEqual(llm.detokenize(llm.tokenize("hello there")), "hello there")
            self.assertGreater(llm.max_model_len, 0)
        with self.assertRaises(headrace.UnavailableError):
            llm.generate("hello")

    def test_other_threads_run_meanwhile(self):
        ticks, done = 0, threading.Event()
        worker = threading.Thread(target=lambda: (self.llm.generate(["hello"] * 4, LONG), done.set()))
        worker.start()
        while not done.is_set():
            ticks += 1
            time.sleep(0.0005)
        worker.join()
        self.assertGreater(ticks, 3)


class ServerTest(Answers, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        os.environ["XDG_RUNTIME_DIR"] = cls.folder.name
        cls.llm = headrace.serve(MODEL, name="test", flags=["--threads", "1"])

    @classmethod
    def tearDownClass(cls):
        cls.llm.terminate_server()
        if cls.llm._process.returncode != 0:
            raise AssertionError(f"the server ended with {cls.llm._process.returncode}")
        try:
            headrace.client("test")
        except headrace.NotFoundError:
            pass
        else:
            raise AssertionError("a server that has ended is found")
        cls.folder.cleanup()

    def test_a_name_leads_to_it(self):
        with headrace.client("test") as client:
            self.assertEqual(client.generate(["hello"], max_new_tokens=2, ignore_eos=True)[0].generated_length, 2)
            self.assertTrue(client.info()["can_terminate"])
        with self.assertRaises(headrace.NotFoundError):
            headrace.client("another")
        with self.assertRaisesRegex(headrace.HeadraceError, "runs already"):
            headrace.serve(MODEL, name="test")

    def test_only_its_user_may(self):
        for key in ("", "wrong"):
            with headrace.Client(self.llm.address, key) as stranger:
                with self.assertRaises(headrace.AuthenticationError):
                    stranger.generate("hello")
                with self.assertRaises(headrace.AuthenticationError):
                    stranger.terminate_server()
        with self.assertRaises(headrace.InvalidArgumentError):
            headrace.Client(self.llm.address, "a\nb")
        for path, _, files in os.walk(self.folder.name):
            for name in files:
                self.assertEqual(os.stat(os.path.join(path, name)).st_mode & 0o077, 0, name)

    def test_huge_messages_are_refused(self):
        with self.assertRaises(headrace.UnavailableError):
            self.llm.generate("x" * (40 << 20), GREEDY)

    def test_nobody_there(self):
        with headrace.Client("127.0.0.1:1") as client:
            with self.assertRaisesRegex(headrace.UnavailableError, "127.0.0.1:1"):
                client.generate("hello", GREEDY)

    def test_a_server_that_cannot_start_says_why(self):
        with self.assertRaisesRegex(headrace.UnavailableError, "no/such/model"):
            headrace.serve("/no/such/model.gguf")


if __name__ == "__main__":
    unittest.main()
