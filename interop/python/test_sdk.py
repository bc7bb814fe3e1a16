"""The official Python SDKs against a running hearth: create, stream, models, tools, wrong key, unknown model.

Run by `make interop`. HEARTH_BIN names the binary; without it one is built. What the demo model says is its own
affair: the tests look at the shape of replies. Replies known to the letter are the business of ../go and of the
testdata of internal/wire.
"""

import os
import sys
import unittest

try:
    import anthropic
    import openai
except ImportError as e:  # skip where it is optional, fail where it is promised
    if os.environ.get("CI") == "true":
        raise
    print(f"skipped: {e}; install interop/python/requirements.txt", file=sys.stderr)
    sys.exit(0)

from hearth import Server

KEY = "interop-key"
PROMPT = "Hello! Who are you?"
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def setUpModule():
    global server
    server = Server("--api-key", KEY)


def tearDownModule():
    if server.stop() != 0:
        raise AssertionError("hearth did not stop cleanly")


class Anthropic(unittest.TestCase):
    def setUp(self):
        self.client = self.connect(api_key=KEY)

    def connect(self, **kw):
        client = anthropic.Anthropic(base_url=server.url, max_retries=0, **kw)
        self.addCleanup(client.close)
        return client

    def ask(self, **kw):
        return {"model": "demo", "max_tokens": 60, "messages": [{"role": "user", "content": PROMPT}], **kw}

    def check(self, m, model="demo"):
        self.assertEqual((m.type, m.role, m.model), ("message", "assistant", model))
        self.assertIn(m.stop_reason, ("end_turn", "max_tokens", "tool_use"))
        self.assertTrue(m.content, "the reply is empty")
        self.assertGreater(m.usage.input_tokens + (m.usage.cache_read_input_tokens or 0), 0)
        self.assertGreater(m.usage.output_tokens, 0)

    def test_create(self):
        self.check(self.client.messages.create(**self.ask(system="Be brief.", stop_sequences=["\n\n\n"])))

    def test_beta_create(self):
        self.check(self.client.beta.messages.create(**self.ask(betas=["interleaved-thinking-2025-05-14"])))

    def test_any_claude_name(self):
        self.check(self.client.messages.create(**self.ask(model="claude-sonnet-4-5")), "claude-sonnet-4-5")

    def test_stream(self):
        with self.client.messages.stream(**self.ask()) as stream:
            text = "".join(stream.text_stream)
            m = stream.get_final_message()
        self.check(m)
        self.assertEqual(text, "".join(b.text for b in m.content if b.type == "text"))

    def test_published_examples(self):
        # 100 tokens and no word of thinking: the text is there, and first.
        ask = self.ask(max_tokens=100, messages=[{"role": "user", "content": "What is 17 × 23?"}])
        m = self.client.messages.create(**ask)
        self.assertTrue(m.content[0].text, m)
        with self.client.messages.stream(**ask) as stream:
            self.assertTrue(stream.get_final_text())

    def test_no_room_behind_thinking(self):
        ask = self.ask(max_tokens=5, thinking={"type": "adaptive"}, messages=[{"role": "user", "content": "What is 17 × 23?"}])
        m = self.client.messages.create(**ask)
        self.assertEqual([b.text for b in m.content if b.type == "text"], [""])
        with self.client.messages.stream(**ask) as stream:
            self.assertEqual(stream.get_final_text(), "")

    def test_image(self):
        source = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
        messages = [{"role": "user", "content": [{"type": "image", "source": source}, {"type": "text", "text": "What is it?"}]}]
        count = self.client.messages.count_tokens(model="demo", messages=messages).input_tokens
        m = self.client.messages.create(**self.ask(max_tokens=2000, messages=messages))
        self.check(m)
        self.assertEqual(m.usage.input_tokens + m.usage.cache_creation_input_tokens + m.usage.cache_read_input_tokens, count)

    def test_raw_stream(self):
        kinds = [e.type for e in self.client.messages.create(**self.ask(stream=True))]
        self.assertEqual(kinds[0], "message_start")
        self.assertEqual(kinds[-2:], ["message_delta", "message_stop"])

    def test_greedy_is_the_same_streamed_and_not(self):
        # The SDK no longer has temperature; servers of open models still do.
        ask = self.ask(extra_body={"temperature": 0})
        plain = self.client.messages.create(**ask)
        with self.client.messages.stream(**ask) as stream:
            streamed = stream.get_final_message()
        self.assertEqual([b.model_dump() for b in plain.content], [b.model_dump() for b in streamed.content])

    def test_tool_round_trip(self):
        tools = [{"name": "get_weather", "description": "The weather in a city.", "input_schema": SCHEMA}]
        messages = [{"role": "user", "content": "What is the weather in Paris?"}]
        m = self.client.messages.create(**self.ask(messages=messages, tools=tools))
        self.check(m)
        calls = [b for b in m.content if b.type == "tool_use"]
        if m.stop_reason != "tool_use":
            # The demo answered in words. The way of a call back is still worth trying.
            calls = []
            content = [{"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"city": "Paris"}}]
            ids = ["toolu_1"]
        else:
            content, ids = m.content, [c.id for c in calls]
            self.assertTrue(calls)
        messages.append({"role": "assistant", "content": content})
        messages.append({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": i, "content": "Sunny, 21 degrees."} for i in ids]})
        self.check(self.client.messages.create(**self.ask(messages=messages, tools=tools)))

    def test_count_tokens(self):
        count = lambda text: self.client.messages.count_tokens(
            model="demo", messages=[{"role": "user", "content": text}]).input_tokens
        self.assertGreater(count("one two three four five six"), count("one"))

    def test_models(self):
        models = list(self.client.models.list(limit=10))
        self.assertTrue(models)
        m = self.client.models.retrieve(models[0].id)
        self.assertEqual((m.id, m.type, m.lifecycle), (models[0].id, "model", "active"))
        self.assertGreater(m.max_input_tokens, 0)

    def test_wrong_key(self):
        for client in (self.connect(api_key="wrong"), self.connect(auth_token="wrong")):
            with self.assertRaises(anthropic.AuthenticationError) as caught:
                client.messages.create(**self.ask())
            self.assertEqual(caught.exception.body["error"]["type"], "authentication_error")

    def test_auth_token(self):
        self.check(self.connect(auth_token=KEY).messages.create(**self.ask()))

    def test_unknown_model(self):
        for call in (
            lambda: self.client.messages.create(**self.ask(model="no-such-model")),
            lambda: self.client.messages.create(**self.ask(model="no-such-model", stream=True)),
            lambda: self.client.models.retrieve("no-such-model"),
        ):
            with self.assertRaises(anthropic.NotFoundError) as caught:
                call()
            self.assertEqual(caught.exception.body["error"]["type"], "not_found_error")

    def test_bad_request(self):
        with self.assertRaises(anthropic.BadRequestError) as caught:
            self.client.messages.create(**self.ask(messages=[{"role": "robot", "content": "Hi"}]))
        self.assertIn("messages.0.role", caught.exception.body["error"]["message"])


class OpenAI(unittest.TestCase):
    def setUp(self):
        self.client = self.connect(KEY)

    def connect(self, key):
        client = openai.OpenAI(base_url=server.url + "/v1", api_key=key, max_retries=0)
        self.addCleanup(client.close)
        return client

    def ask(self, **kw):
        return {"model": "demo", "max_completion_tokens": 60, "messages": [{"role": "user", "content": PROMPT}], **kw}

    def check(self, c, model="demo"):
        self.assertEqual((c.object, c.model), ("chat.completion", model))
        choice = c.choices[0]
        self.assertIn(choice.finish_reason, ("stop", "length", "tool_calls"))
        m = choice.message
        self.assertTrue(m.content or m.tool_calls or getattr(m, "reasoning_content", None), "the reply is empty")
        self.assertGreater(c.usage.prompt_tokens, 0)
        self.assertEqual(c.usage.total_tokens, c.usage.prompt_tokens + c.usage.completion_tokens)

    def test_create(self):
        self.check(self.client.chat.completions.create(**self.ask(temperature=0.5, seed=1, stop=["\n\n\n"])))

    def test_seed(self):
        ask = self.ask(temperature=1, seed=7)
        one, two = (self.client.chat.completions.create(**ask).choices[0].message.content for _ in range(2))
        self.assertEqual(one, two)

    def test_stream(self):
        chunks = list(self.client.chat.completions.create(**self.ask(stream=True, stream_options={"include_usage": True})))
        self.assertEqual(chunks[0].choices[0].delta.role, "assistant")
        self.assertEqual(chunks[-1].choices, [])
        self.assertGreater(chunks[-1].usage.completion_tokens, 0)
        self.assertTrue(all(c.usage is None for c in chunks[:-1]))
        reasons = [c.choices[0].finish_reason for c in chunks[:-1]]
        self.assertTrue(reasons[-1])
        self.assertFalse(any(reasons[:-1]))

    def test_stream_helper(self):
        with self.client.chat.completions.stream(**self.ask(stream_options={"include_usage": True})) as stream:
            for _ in stream:
                pass
            self.check(stream.get_final_completion())

    def test_logprobs(self):
        c = self.client.chat.completions.create(**self.ask(max_completion_tokens=5, logprobs=True, top_logprobs=3))
        for t in c.choices[0].logprobs.content:
            self.assertLessEqual(t.logprob, 0)
            self.assertEqual(len(t.top_logprobs), 3)

    def test_tool_round_trip(self):
        tools = [{"type": "function", "function": {"name": "get_weather", "description": "The weather in a city.", "parameters": SCHEMA}}]
        messages = [{"role": "user", "content": "What is the weather in Paris?"}]
        c = self.client.chat.completions.create(**self.ask(messages=messages, tools=tools))
        self.check(c)
        message = c.choices[0].message
        if message.tool_calls:
            messages.append(message)
            ids = [t.id for t in message.tool_calls]
        else:  # the demo answered in words; the way of a call back is still worth trying
            ids = ["call_1"]
            messages.append({"role": "assistant", "content": None, "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Paris"}'}}]})
        messages += [{"role": "tool", "tool_call_id": i, "content": "Sunny, 21 degrees."} for i in ids]
        self.check(self.client.chat.completions.create(**self.ask(messages=messages, tools=tools)))

    def test_models(self):
        models = list(self.client.models.list())
        self.assertTrue(models)
        m = self.client.models.retrieve(models[0].id)
        self.assertEqual((m.id, m.object), (models[0].id, "model"))

    def test_wrong_key(self):
        with self.assertRaises(openai.AuthenticationError) as caught:
            self.connect("wrong").chat.completions.create(**self.ask())
        self.assertEqual(caught.exception.code, "invalid_api_key")

    def test_unknown_model(self):
        for call in (
            lambda: self.client.chat.completions.create(**self.ask(model="no-such-model")),
            lambda: self.client.chat.completions.create(**self.ask(model="no-such-model", stream=True)),
            lambda: self.client.models.retrieve("no-such-model"),
        ):
            with self.assertRaises(openai.NotFoundError):
                call()

    def test_bad_request(self):
        with self.assertRaises(openai.BadRequestError) as caught:
            self.client.chat.completions.create(**self.ask(messages=[]))
        self.assertEqual(caught.exception.param, "messages")


if __name__ == "__main__":
    if sys.version_info < (3, 9):
        sys.exit("the SDKs need Python 3.9")
    unittest.main(verbosity=2)
