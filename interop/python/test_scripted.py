"""The Anthropic Python SDK against hearth with ../scripted.jsonl in the model's place: replies known to the letter, and
failures on demand. Run by `make interop`, for the SDK's current major version and the one before it.
"""

import time
import unittest
from pathlib import Path

import anthropic
import pydantic
from hearth import Server

SCRIPT = Path(__file__).resolve().parents[1] / "scripted.jsonl"
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOL = {"name": "get_weather", "description": "The weather in a city.", "input_schema": SCHEMA}


class City(pydantic.BaseModel):
    city: str
    people: int


def setUpModule():
    global server
    server = Server("--log-level", "warn", "--script", str(SCRIPT))


def tearDownModule():
    if server.stop() != 0:
        raise AssertionError("hearth did not stop cleanly")


class Scripted(unittest.TestCase):
    def setUp(self):
        self.client = anthropic.Anthropic(base_url=server.url, api_key="any")
        self.addCleanup(self.client.close)

    def ask(self, text, **kw):
        return {"model": "demo", "max_tokens": 500, "messages": [{"role": "user", "content": text}], **kw}

    def both(self, **ask):
        """The reply created and streamed: the same but for its id."""
        plain = self.client.messages.create(**ask)
        with self.client.messages.stream(**ask) as stream:
            streamed = stream.get_final_message()
        content = lambda m: [dict(b.model_dump(exclude_none=True), id=None) for b in m.content]
        self.assertEqual(content(plain), content(streamed))
        self.assertEqual((plain.stop_reason, plain.stop_sequence, plain.usage.output_tokens),
                         (streamed.stop_reason, streamed.stop_sequence, streamed.usage.output_tokens))
        return plain

    def test_text(self):
        m = self.both(**self.ask("Hi"))
        self.assertEqual((m.content[0].text, m.stop_reason), ("Hello, wörld", "end_turn"))

    def test_thinking(self):
        m = self.both(**self.ask("think", thinking={"type": "enabled", "budget_tokens": 1024}))
        self.assertEqual([b.type for b in m.content], ["thinking", "text"])
        self.assertEqual((m.content[0].thinking, m.content[1].text), ("Hmm.", "Yes."))
        self.assertTrue(m.content[0].signature)

    def test_stop_sequence(self):
        m = self.both(**self.ask("count to four", stop_sequences=["STOP"]))
        self.assertEqual((m.content[0].text, m.stop_reason, m.stop_sequence), ("one two three ", "stop_sequence", "STOP"))

    def test_max_tokens(self):
        self.assertEqual(self.both(**self.ask("Hi", max_tokens=2)).stop_reason, "max_tokens")

    def test_tool_loop(self):
        messages = [{"role": "user", "content": "Weather in Paris and Rome?"}]
        m = self.client.messages.create(**self.ask("", messages=messages, tools=[TOOL]))
        self.assertEqual((m.stop_reason, [b.type for b in m.content]), ("tool_use", ["text", "tool_use", "tool_use"]))
        calls = m.content[1:]
        self.assertEqual([c.input for c in calls], [{"city": "Paris"}, {"city": "Rome"}])
        messages += [{"role": "assistant", "content": m.content},
                     {"role": "user", "content": [{"type": "tool_result", "tool_use_id": c.id, "content": "sunny"} for c in calls]}]
        m = self.client.messages.create(**self.ask("", messages=messages, tools=[TOOL]))
        self.assertEqual((m.content[0].text, m.stop_reason), ("They say: sunny\nsunny", "end_turn"))

    def test_tool_runner(self):
        @anthropic.beta_tool
        def get_weather(city: str) -> str:
            """The weather in a city.

            Args:
                city: its name
            """
            return "rain in " + city

        last = self.client.beta.messages.tool_runner(**self.ask("Weather?", tools=[get_weather])).until_done()
        self.assertEqual(last.content[0].text, "They say: rain in Paris\nrain in Rome")

    def test_one_call_only(self):
        m = self.both(**self.ask("Weather?", tools=[TOOL], tool_choice={"type": "auto", "disable_parallel_tool_use": True}))
        self.assertEqual([b.type for b in m.content], ["text", "tool_use"])

    def test_no_call(self):
        m = self.both(**self.ask("Weather?", tools=[TOOL], tool_choice={"type": "none"}))
        self.assertNotIn("tool_use", [b.type for b in m.content])

    def test_parse(self):
        m = self.client.messages.parse(**self.ask("as JSON"), output_format=City)
        self.assertEqual(m.parsed_output, City(city="Paris", people=2))

    def test_count_is_what_a_reply_reports(self):
        for ask in (self.ask("Hi there"), self.ask("Weather?", tools=[TOOL], system="Be brief."),
                    self.ask("think", thinking={"type": "enabled", "budget_tokens": 1024})):
            m = self.client.messages.create(**ask)
            del ask["max_tokens"]
            used = m.usage.input_tokens + m.usage.cache_read_input_tokens + m.usage.cache_creation_input_tokens
            self.assertEqual(self.client.messages.count_tokens(**ask).input_tokens, used)

    def test_models(self):
        page = self.client.models.list(limit=1)
        self.assertEqual([m.id for m in page], ["demo"])
        self.assertFalse(page.has_more)
        self.assertEqual(list(self.client.models.list(after_id="demo")), [])
        self.assertEqual(list(self.client.models.list(after_id="no-such-model")), [])
        self.assertEqual(self.client.models.retrieve("demo").id, "demo")

    def test_retries(self):
        for what in ("overloaded", "limited", "cut"):
            with self.subTest(what):
                began = time.monotonic()
                m = self.client.messages.create(**self.ask("retry " + what))
                self.assertEqual(m.content[0].text, "Hello, wörld")
                if what != "cut":  # the server said to wait for a second
                    self.assertGreater(time.monotonic() - began, 0.9)

    def test_errors(self):
        client = self.client.with_options(max_retries=0)
        with self.assertRaises(anthropic.APIStatusError) as caught:
            client.messages.create(**self.ask("always overloaded"))
        self.assertEqual((caught.exception.status_code, caught.exception.body["error"]["type"]), (529, "overloaded_error"))
        self.assertTrue(caught.exception.request_id.startswith("req_"))
        with self.assertRaises(anthropic.BadRequestError) as caught:
            client.messages.create(**self.ask("", messages=[{"role": "user", "content": [{"type": "hologram"}]}]))
        self.assertTrue(caught.exception.body["error"]["message"].startswith("messages.0.content.0.type: "))

    def test_broken_streams(self):
        for what, error in (("break off", anthropic.APIStatusError), ("hang up", Exception)):
            with self.subTest(what), self.assertRaises(error):
                with self.client.messages.stream(**self.ask(what)) as stream:
                    for _ in stream.text_stream:
                        pass


if __name__ == "__main__":
    print("anthropic", anthropic.__version__, flush=True)
    unittest.main(verbosity=1)
