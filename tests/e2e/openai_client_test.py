"""The server as the real `openai` Python package sees it."""
import json
import time
import unittest

from server import SANITIZED, Server, ServerTest, openai_client
from models import CHAT_MODEL

QUESTION = [{"role": "user", "content": "Name three colours."}]


class OpenAiClientTest(ServerTest):
    model = CHAT_MODEL
    flags = ("--served-model-name", "smol", "alias", "--max-model-len", "512", "--tool-call-parser", "hermes")

    def setUp(self):
        self.client = openai_client(self.server)

    def chat(self, **fields):
        return self.client.chat.completions.create(
            **{"model": "smol", "messages": QUESTION, "max_tokens": 12, "temperature": 0, **fields})

    def complete(self, **fields):
        return self.client.completions.create(
            **{"model": "smol", "prompt": "One, two, three,", "max_tokens": 8, "temperature": 0, **fields})

    def test_models(self):
        models = self.client.models.list().data
        self.assertEqual([model.id for model in models], ["smol", "alias"])
        self.assertEqual(models[0].max_model_len, 512)
        self.assertTrue(models[0].root)
        self.assertEqual(self.client.models.retrieve("alias").id, "alias")

    def test_chat(self):
        answer = self.chat()
        self.assertEqual(answer.object, "chat.completion")
        self.assertTrue(answer.id.startswith("chatcmpl-"))
        self.assertEqual(answer.model, "smol")
        self.assertLess(abs(answer.created - time.time()), 60)
        choice, = answer.choices
        self.assertEqual(choice.message.role, "assistant")
        self.assertTrue(choice.message.content)
        self.assertIsNone(choice.logprobs)
        self.assertIn(choice.finish_reason, ("length", "stop"))
        self.assertEqual(answer.usage.total_tokens, answer.usage.prompt_tokens + answer.usage.completion_tokens)
        self.assertLessEqual(answer.usage.completion_tokens, 12)
        self.assertEqual(self.chat(model="alias").choices[0].message.content, choice.message.content)

    def test_stream_is_the_whole_answer_in_pieces(self):
        whole = self.chat()
        chunks = list(self.chat(stream=True, stream_options={"include_usage": True}))
        self.assertEqual(len({(chunk.id, chunk.created, chunk.model) for chunk in chunks}), 1)
        self.assertEqual(chunks[0].choices[0].delta.role, "assistant")
        self.assertEqual("".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices),
                         whole.choices[0].message.content)
        self.assertEqual([c.choices[0].finish_reason for c in chunks if c.choices and c.choices[0].finish_reason],
                         [whole.choices[0].finish_reason])
        self.assertEqual(chunks[-1].choices, [])
        self.assertEqual(chunks[-1].usage.completion_tokens, whole.usage.completion_tokens)
        self.assertTrue(all(chunk.usage is None for chunk in chunks[:-1]))
        self.assertGreater(len(chunks), 8)

    def test_usage_only_where_asked(self):
        for data in self.server.stream("/v1/chat/completions", {"messages": QUESTION, "max_tokens": 3}):
            if data != "[DONE]":
                self.assertNotIn("usage", data)
                self.assertEqual(len(data["choices"]), 1)

    def test_logprobs(self):
        content = self.chat(logprobs=True, top_logprobs=3).choices[0].logprobs.content
        for token in content:
            self.assertEqual(len(token.top_logprobs), 3)
            self.assertEqual(token.top_logprobs[0].logprob, token.logprob)  # greedy
            if not token.token.startswith("bytes:"):  # a part of a character has no text
                self.assertEqual(bytes(token.bytes).decode(), token.token)
        streamed = [token for chunk in self.chat(logprobs=True, top_logprobs=3, stream=True) for choice in chunk.choices
                    if choice.logprobs for token in choice.logprobs.content]
        self.assertEqual([(t.token, t.logprob) for t in streamed], [(t.token, t.logprob) for t in content])

    def test_choices_and_seeds(self):
        sampled = dict(n=3, temperature=1, seed=7)
        choices = self.chat(**sampled).choices
        self.assertEqual([choice.index for choice in choices], [0, 1, 2])
        texts = [choice.message.content for choice in choices]
        self.assertGreater(len(set(texts)), 1)
        self.assertEqual([choice.message.content for choice in self.chat(**sampled).choices], texts)
        streamed = ["", "", ""]
        for chunk in self.chat(**sampled, stream=True):
            for choice in chunk.choices:
                streamed[choice.index] += choice.delta.content or ""
        self.assertEqual(streamed, texts)

    def test_stop(self):
        whole = self.complete(max_tokens=24).choices[0].text
        stop = whole[5:8]
        cut = self.complete(max_tokens=24, stop=[stop]).choices[0]
        self.assertEqual(cut.text, whole[:whole.index(stop)])
        self.assertEqual(cut.finish_reason, "stop")
        self.assertEqual(cut.stop_reason, stop)
        streamed = "".join(c.choices[0].text for c in self.complete(max_tokens=24, stop=stop, stream=True) if c.choices)
        self.assertEqual(streamed, cut.text)

    def test_completions_of_many_prompts(self):
        first, second = "One, two,", "The sea is"
        both = self.complete(prompt=[first, second], n=2)
        self.assertEqual([choice.index for choice in both.choices], [0, 1, 2, 3])
        self.assertEqual(both.choices[0].text, self.complete(prompt=first).choices[0].text)
        self.assertEqual(both.choices[2].text, self.complete(prompt=second).choices[0].text)
        tokens = self.server.post("/tokenize", {"prompt": second}).json()["tokens"]
        self.assertEqual(self.complete(prompt=tokens).choices[0].text, both.choices[2].text)
        self.assertEqual(self.complete(prompt=[tokens, tokens]).choices[1].text, both.choices[2].text)

    def test_completion_default_is_16_tokens(self):
        answer = self.client.completions.create(model="smol", prompt="a", temperature=0, extra_body={"ignore_eos": True})
        self.assertEqual(answer.usage.completion_tokens, 16)

    def test_errors_are_those_of_the_package(self):
        import openai
        with self.assertRaises(openai.BadRequestError) as caught:
            self.chat(temperature=-1)
        self.assertEqual((caught.exception.code, caught.exception.param), ("invalid_value", "temperature"))
        with self.assertRaises(openai.NotFoundError) as caught:
            self.chat(model="gpt-4o")
        self.assertIn("smol", caught.exception.message)
        with self.assertRaises(openai.BadRequestError) as caught:
            self.chat(messages=[{"role": "user", "content": "word " * 2000}])
        self.assertEqual(caught.exception.code, "context_length_exceeded")
        with self.assertRaises(openai.BadRequestError) as caught:
            self.chat(messages=[{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}])
        self.assertEqual(caught.exception.code, "unsupported_parameter")
        with self.assertRaises(openai.NotFoundError):
            self.client.models.retrieve("gpt-4o")

    def test_schema(self):
        import pydantic

        class Person(pydantic.BaseModel):
            name: str
            age: int

        answer = self.client.chat.completions.parse(
            model="smol", messages=[{"role": "user", "content": "Invent a person."}], response_format=Person,
            max_tokens=120, temperature=0, extra_body={"stop": None})
        if answer.choices[0].finish_reason == "stop":
            self.assertIsInstance(answer.choices[0].message.parsed, Person)
        self.assertTrue(answer.choices[0].message.content.startswith("{"))
        anything = self.chat(response_format={"type": "json_object"}, max_tokens=40)
        self.assertTrue(anything.choices[0].message.content.lstrip().startswith("{"))

    def test_tools(self):
        tool = {"type": "function", "function": {
            "name": "get_weather", "description": "Weather of a city",
            "parameters": {"type": "object", "properties": {"city": {"type": "string", "maxLength": 12},
                                                            "unit": {"enum": ["C", "F"]}},
                           "required": ["city", "unit"], "additionalProperties": False}}}
        for choice in ("required", {"type": "function", "function": {"name": "get_weather"}}):
            answer = self.chat(tools=[tool], tool_choice=choice, max_tokens=100, parallel_tool_calls=False).choices[0]
            self.assertEqual(answer.finish_reason, "tool_calls")
            call, = answer.message.tool_calls
            self.assertEqual(call.function.name, "get_weather")
            arguments = json.loads(call.function.arguments)
            self.assertEqual(sorted(arguments), ["city", "unit"])
            self.assertIn(arguments["unit"], ("C", "F"))
            # And back as messages, as agents do.
            self.chat(tools=[tool], messages=QUESTION + [
                {"role": "assistant", "content": None, "tool_calls": [
                    {"id": call.id, "type": "function",
                     "function": {"name": call.function.name, "arguments": call.function.arguments}}]},
                {"role": "tool", "tool_call_id": call.id, "content": "12 C, rain"}])
        self.assertIsNone(self.chat(tools=[tool], tool_choice="none").choices[0].message.tool_calls)

    def test_closing_a_stream_cancels(self):
        before = self.server.metric("vllm:request_success_total", finished_reason="abort") or 0
        stream = self.chat(max_tokens=400, stream=True, extra_body={"ignore_eos": True})
        for _, _chunk in zip(range(3), stream):
            pass
        stream.close()
        self.server.wait_for_metric("vllm:num_requests_running", 0, timeout=5)
        self.assertEqual(self.server.metric("vllm:request_success_total", finished_reason="abort"), before + 1)


class RetryTest(unittest.TestCase):
    def test_the_client_waits_as_it_is_told_and_gets_its_answer(self):
        """One sequence at a time and one place in the queue: the package's retries bring all answers."""
        if SANITIZED:
            self.skipTest("bound by time")
        with Server(CHAT_MODEL, "--max-num-seqs", "1", "--max-queued-requests", "1") as server:
            from concurrent.futures import ThreadPoolExecutor
            client = openai_client(server).with_options(max_retries=10)
            with ThreadPoolExecutor(4) as pool:
                answers = list(pool.map(lambda _: client.completions.create(
                    model=client.models.list().data[0].id, prompt="a", max_tokens=64,
                    extra_body={"ignore_eos": True}), range(4)))
            self.assertEqual([answer.usage.completion_tokens for answer in answers], [64] * 4)
            self.assertEqual(server.end(), 0)


if __name__ == "__main__":
    unittest.main()
