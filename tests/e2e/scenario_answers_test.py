"""Scenarios C: requests and answers. Each test is named by the scenario's id."""
import json
import os
import re
import socket
import tempfile
import time
import unittest
from concurrent.futures import ThreadPoolExecutor

from models import CHAT_MODEL, IS_SMOLLM2, TINY_MODEL
from server import SANITIZED, SLACK, Server, ServerTest

TOOL = {"type": "function", "function": {"name": "book", "parameters": {
    "type": "object", "required": ["city", "nights"], "additionalProperties": False,
    "properties": {"city": {"enum": ["Rome", "Oslo"]}, "nights": {"type": "integer", "minimum": 1, "maximum": 9}}}}}
SCHEMA = {"type": "object", "required": ["a", "b"], "additionalProperties": False, "properties": {
    "a": {"type": "string", "maxLength": 8}, "b": {"type": "array", "items": {"type": "boolean"}, "maxItems": 3}}}
SEEDS = 5 if SANITIZED else 50


def text_of_stream(events):
    return "".join(event["choices"][0]["text"] for event in events if event != "[DONE]" and event["choices"])


class AnswersTest(ServerTest):
    model = CHAT_MODEL
    flags = ("--tool-call-parser", "hermes", *(("--max-model-len", "2048") if IS_SMOLLM2 else ()))

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.context = cls.server.get("/v1/models").json()["data"][0]["max_model_len"]

    def tokens_of(self, text):
        return self.server.post("/tokenize", {"prompt": text}).json()["tokens"]

    def open_stream(self, prompt, max_tokens):
        """A raw connection on which an answer is on its way."""
        body = json.dumps({"prompt": prompt, "max_tokens": max_tokens, "ignore_eos": True, "stream": True})
        client = socket.create_connection(("127.0.0.1", self.server.port), timeout=60 * SLACK)
        client.sendall((f"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                        f"Content-Length: {len(body.encode())}\r\n\r\n{body}").encode())
        return client

    def expect_cancelled(self, close):
        before = self.server.metric("vllm:request_success_total", finished_reason="abort") or 0
        close()
        for name in ("vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:kv_cache_usage_perc"):
            self.assertLess(self.server.wait_for_metric(name, 0, timeout=10 * SLACK), 0.5 * SLACK, name)
        self.server.wait_for_metric("vllm:request_success_total", before + 1, 1, finished_reason="abort")

    @unittest.skipUnless(IS_SMOLLM2, "the tiny model has answered before a client can go")
    def test_C1_gone_while_decoding(self):
        client = self.open_stream("a", self.context - 64)
        received = b""
        while received.count(b"data: ") < 10:
            received += client.recv(4096)
        self.expect_cancelled(client.close)

    @unittest.skipUnless(IS_SMOLLM2, "the tiny model has answered before a client can go")
    def test_C1_gone_while_its_prompt_is_read(self):
        client = self.open_stream([7] * (self.context - 32), 16)
        self.server.wait_for_metric("vllm:num_requests_running", 1, timeout=10 * SLACK)
        self.expect_cancelled(client.close)

    @unittest.skipUnless(IS_SMOLLM2, "the tiny model has answered before a client can go")
    def test_C1_gone_in_the_middle_of_a_whole_answer(self):
        body = json.dumps({"prompt": "a", "max_tokens": self.context - 64, "ignore_eos": True})
        client = socket.create_connection(("127.0.0.1", self.server.port))
        client.sendall((f"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                        f"Content-Length: {len(body)}\r\n\r\n{body}").encode())
        self.server.wait_for_metric("vllm:num_requests_running", 1, timeout=10 * SLACK)
        self.expect_cancelled(client.close)

    def test_C3_a_prompt_that_is_too_long(self):
        prompt = [7] * (self.context + 1)
        error = self.assert_refused(self.server.post("/v1/completions", {"prompt": prompt}), 400,
                                    "context_length_exceeded")
        self.assertEqual((error["n_prompt_tokens"], error["n_ctx"]), (self.context + 1, self.context))
        self.assertIn(str(self.context), error["message"])
        self.assertIn(str(self.context + 1), error["message"])
        cut = self.server.post("/v1/completions", {"prompt": prompt, "max_tokens": 1, "truncate_prompt_tokens": 20})
        self.assertEqual(cut.json()["usage"]["prompt_tokens"], 20)

    def test_C4_checked_before_the_head_of_a_stream(self):
        for fields, param in (({"temperature": -1}, "temperature"), ({"top_p": 2}, "top_p"), ({"n": 0}, "n"),
                              ({"max_tokens": -1}, "max_tokens"), ({"stop": 5}, "stop")):
            for stream in (True, False):
                reply = self.server.post("/v1/completions", {"prompt": "a", "stream": stream, **fields})
                self.assert_refused(reply, 400, "invalid_value", param)
                self.assertEqual(reply.headers["content-type"], "application/json")

    def test_C6_no_character_is_split(self):
        prompt = "repeat: 你好🌍👩‍👩‍👧"
        # Bytes of characters as tokens: whatever the model says, it comes in whole ones.
        biased = {str(token): 8 for token in self.tokens_of("你好🌍👩‍👩‍👧")}
        body = {"prompt": prompt, "max_tokens": 40, "temperature": 1, "seed": 3, "ignore_eos": True,
                "logit_bias": biased}
        whole = self.server.post("/v1/completions", body).json()["choices"][0]["text"]
        self.assertEqual(text_of_stream(self.server.stream("/v1/completions", body)), whole)
        self.assertGreater(len(whole.encode()), len(whole))

    def test_C7_no_stop_text_leaks(self):
        body = {"prompt": "One, two, three,", "max_tokens": 60, "temperature": 0, "ignore_eos": True}
        whole = self.server.post("/v1/completions", body).json()["choices"][0]["text"]
        for begin, end in ((10, 22), (4, 6), (30, 41)):
            stop = whole[begin:end]
            expected = whole[:whole.index(stop)]
            for stops in (stop, [stop], ["never said", stop]):
                self.assertEqual(self.server.post("/v1/completions", {**body, "stop": stops}).json()["choices"][0]["text"],
                                 expected)
                self.assertEqual(text_of_stream(self.server.stream("/v1/completions", {**body, "stop": stops})), expected)
            kept = self.server.post("/v1/completions", {**body, "stop": stop, "include_stop_str_in_output": True})
            self.assertEqual(kept.json()["choices"][0]["text"], expected + stop)

    def test_C10_one_beginning_of_text(self):
        messages = [{"role": "user", "content": "Hi"}]
        chat = self.server.post("/tokenize", {"messages": messages}).json()["tokens"]
        usage = self.server.post("/v1/chat/completions", {"messages": messages, "max_tokens": 1}).json()["usage"]
        self.assertEqual(usage["prompt_tokens"], len(chat))
        self.assertNotEqual(chat[0], chat[1])

    def test_C11_arguments_fit_their_schema(self):
        finished = 0
        for seed in range(SEEDS):
            events = list(self.server.stream("/v1/chat/completions", {
                "messages": [{"role": "user", "content": "Book a room."}], "tools": [TOOL], "tool_choice": "required",
                "parallel_tool_calls": False, "temperature": 1, "seed": seed, "max_tokens": 100}))
            self.assertEqual(events.pop(), "[DONE]")
            calls = {}
            for event in events:
                for part in event["choices"][0]["delta"].get("tool_calls") or []:
                    call = calls.setdefault(part["index"], {"arguments": ""})
                    call.update({key: part[key] for key in ("id", "type") if key in part})
                    call["name"] = part["function"].get("name") or call.get("name")
                    call["arguments"] += part["function"].get("arguments") or ""
            reason = events[-1]["choices"][0]["finish_reason"]
            self.assertIn(reason, ("tool_calls", "length"))
            if reason == "length":
                continue
            finished += 1
            self.assertEqual(len({call["id"] for call in calls.values()}), len(calls))
            for call in calls.values():
                self.assertEqual(call["name"], "book")
                arguments = json.loads(call["arguments"])
                self.assertEqual(sorted(arguments), ["city", "nights"])
                self.assertIn(arguments["city"], ("Rome", "Oslo"))
                self.assertIn(arguments["nights"], range(1, 10))
        self.assertGreater(finished, SEEDS // 2)
        cut = self.server.post("/v1/chat/completions", {
            "messages": [{"role": "user", "content": "Book."}], "tools": [TOOL], "tool_choice": "required", "max_tokens": 5})
        self.assertEqual(cut.json()["choices"][0]["finish_reason"], "length")

    def test_C11_the_older_form(self):
        """Asked with functions, it answers with a function_call, whole and in pieces alike."""
        body = {"messages": [{"role": "user", "content": "Book a room."}], "functions": [TOOL["function"]],
                "function_call": {"name": "book"}, "temperature": 0, "max_tokens": 200}
        choice = self.server.post("/v1/chat/completions", body).json()["choices"][0]
        self.assertEqual(choice["finish_reason"], "function_call")
        self.assertNotIn("tool_calls", choice["message"])
        call = choice["message"]["function_call"]
        self.assertEqual(call["name"], "book")
        self.assertEqual(sorted(json.loads(call["arguments"])), ["city", "nights"])
        events = list(self.server.stream("/v1/chat/completions", body))[:-1]
        parts = [part for event in events if (part := event["choices"][0]["delta"].get("function_call"))]
        self.assertEqual("".join(part.get("name", "") for part in parts), "book")
        self.assertEqual("".join(part["arguments"] for part in parts), call["arguments"])
        self.assertEqual(events[-1]["choices"][0]["finish_reason"], "function_call")

    def test_C12_bounded_whitespace(self):
        finished = 0
        for seed in range(SEEDS):
            choice = self.server.post("/v1/chat/completions", {
                "messages": [{"role": "user", "content": "JSON please."}], "temperature": 1.5, "seed": seed, "max_tokens": 200,
                "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}}}).json()["choices"][0]
            text = choice["message"]["content"]
            outside = re.sub(r'"(?:[^"\\]|\\.)*"', '""', text)
            self.assertIsNone(re.search(r"\s{9}", outside), text)
            if choice["finish_reason"] != "length":
                finished += 1
                value = json.loads(text)
                self.assertEqual(sorted(value), ["a", "b"])
        self.assertGreater(finished, SEEDS // 2)

    def test_C13_scores_of_a_given_text(self):
        """As lm-eval asks: echo with log-probabilities, nothing or one token generated."""
        rows = 2 if SANITIZED else 20
        for i in range(rows):
            text = f"The mill wheel turns {i} times and the river goes on"
            context = self.tokens_of(text)
            reply = self.server.post("/v1/completions", {"prompt": text, "max_tokens": 0, "echo": True, "logprobs": 1,
                                                         "temperature": 0}).json()["choices"][0]
            logprobs = reply["logprobs"]
            self.assertEqual(reply["text"], text)
            self.assertIsNone(logprobs["token_logprobs"][0])
            self.assertEqual("".join(logprobs["tokens"][-5:]), text[logprobs["text_offset"][-5]:])
            # The same numbers as when the model goes on from the text one token earlier.
            shorter = self.server.post("/v1/completions", {
                "prompt": context[:-1], "max_tokens": 1, "logprobs": 1, "temperature": 0,
                "allowed_token_ids": None, "logit_bias": {str(context[-1]): 0}}).json()["choices"][0]["logprobs"]
            best, = shorter["top_logprobs"]
            told = logprobs["top_logprobs"][-1]
            for token, value in best.items():
                self.assertAlmostEqual(told[token], value, places=5)
            # prompt + one token: the slices line up.
            one = self.server.post("/v1/completions", {"prompt": text, "max_tokens": 1, "echo": True, "logprobs": 1,
                                                       "temperature": 0}).json()["choices"][0]["logprobs"]
            self.assertEqual(one["token_logprobs"][:len(context)], logprobs["token_logprobs"])
            self.assertEqual(len(one["tokens"]), len(context) + 1)


class FaultTest(unittest.TestCase):
    """The engine fails while answers are on their way: each ends in an error, and life goes on."""

    def check(self, path, fields, ends):
        with Server(TINY_MODEL, env={"HEADRACE_TEST_FAILING_STEP": "10"}) as server:
            ends(server, path, {**fields, "max_tokens": 40, "ignore_eos": True})
            server.wait_for_metric("vllm:kv_cache_usage_perc", 0, timeout=5 * SLACK)
            self.assertEqual(server.post(path, {**fields, "max_tokens": 4}).status, 200)
            self.assertEqual(server.end(), 0)

    def ends_in_an_error(self, server, path, body):
        body = json.dumps({**body, "stream": True})
        with socket.create_connection(("127.0.0.1", server.port), timeout=60 * SLACK) as client:
            client.sendall((f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                            f"Content-Length: {len(body)}\r\n\r\n{body}").encode())
            received = b"".join(iter(lambda: client.recv(65536), b""))  # until the server closes
        head, _, rest = received.partition(b"\r\n\r\n")
        self.assertIn(b" 200 ", head)
        events = [json.loads(data) for data in re.findall(rb"^data: (.*?)\r?\n", rest, re.MULTILINE)]
        self.assertGreater(len(events), 3)
        self.assertEqual([list(event) for event in events if "error" in event], [["error"]])
        error = events[-1]["error"]
        self.assertEqual((error["type"], error["code"], error["param"]), ("server_error", "internal", None))
        self.assertFalse(rest.endswith(b"0\r\n\r\n"), "a reader of chunks sees that it is cut off")

    def is_refused(self, server, path, body):
        reply = server.post(path, body)
        self.assertEqual((reply.status, reply.error()["code"]), (500, "internal"), reply.body)

    def test_C5_a_fault_in_the_middle(self):
        self.check("/v1/completions", {"prompt": "a"}, self.ends_in_an_error)
        self.check("/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}]}, self.ends_in_an_error)
        self.check("/v1/completions", {"prompt": "a"}, self.is_refused)


class TemplateTest(unittest.TestCase):
    TEMPLATE = ("{% for m in messages %}{% if m.role == 'system' and not loop.first %}"
                "{{ raise_exception('a system message must come first') }}{% endif %}"
                "{{ m.role }}: {{ m.content }}\n{% endfor %}assistant:")

    def test_C9_what_the_template_refuses(self):
        messages = [{"role": "user", "content": "Hi"}, {"role": "system", "content": "Be brief."}]
        with tempfile.NamedTemporaryFile("w", suffix=".jinja") as template:
            template.write(self.TEMPLATE)
            template.flush()
            for flags, status in (((), 400), (("--merge-system-messages",), 200)):
                with Server(CHAT_MODEL, "--chat-template", template.name, *flags) as server:
                    reply = server.post("/v1/chat/completions", {"messages": messages, "max_tokens": 2})
                    self.assertEqual(reply.status, status, reply.body)
                    if status == 400:
                        self.assertEqual(reply.error()["code"], "template_error")
                        self.assertIn("a system message must come first", reply.error()["message"])
                    own = server.post("/v1/chat/completions", {"messages": messages, "chat_template": "x", "max_tokens": 1})
                    self.assertEqual(own.status, 400)
                    self.assertEqual(server.end(), 0)


if __name__ == "__main__":
    unittest.main()
