"""The OpenAI Python SDK, its Azure client and, where it is installed, LangChain against hearth with ../scripted.jsonl in
the model's place: replies known to the letter, and failures on demand. Run by `make interop`, for the SDK's current major
version and the one before it.
"""

import json
import time
import unittest
from pathlib import Path

import openai
import pydantic
from hearth import Server

try:
    import langchain_openai
except ImportError:
    langchain_openai = None

SCRIPT = Path(__file__).resolve().parents[1] / "scripted.jsonl"
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOL = {"type": "function", "function": {"name": "get_weather", "description": "The weather in a city.", "parameters": SCHEMA}}
RUN = {"type": "custom", "custom": {"name": "run", "description": "Runs a command."}}


class City(pydantic.BaseModel):
    city: str
    people: int


def as_format(model, strict):
    return {"type": "json_schema", "json_schema": {"name": model.__name__, "schema": model.model_json_schema(), "strict": strict}}


class Served(unittest.TestCase):
    """A server of its own for every class: what the script says a number of times begins anew."""

    @classmethod
    def setUpClass(cls):
        cls.server = Server("--log-level", "warn", "--script", str(SCRIPT))

    @classmethod
    def tearDownClass(cls):
        if cls.server.stop() != 0:
            raise AssertionError("hearth did not stop cleanly")


class Scripted(Served):
    def setUp(self):
        self.client = self.connect()
        self.addCleanup(self.client.close)

    def connect(self):
        return openai.OpenAI(base_url=self.server.url + "/v1", api_key="any")

    def ask(self, text, **kw):
        return {"model": "demo", "messages": [{"role": "user", "content": text}], **kw}

    def both(self, **ask):
        """The completion created and streamed: the same but for its ids."""
        plain = self.client.chat.completions.create(**ask)
        with self.client.chat.completions.stream(**ask, stream_options={"include_usage": True}) as stream:
            for _ in stream:
                pass
            streamed = stream.get_final_completion()
        self.assertEqual([self.content(c) for c in plain.choices], [self.content(c) for c in streamed.choices])
        self.assertEqual(plain.usage.completion_tokens, streamed.usage.completion_tokens)
        return plain

    def content(self, choice):
        m = choice.message
        calls = [(c.function.name, c.function.arguments) for c in m.tool_calls or []]
        return (choice.finish_reason, m.content or "", getattr(m, "reasoning_content", None), calls)

    def test_text(self):
        c = self.both(**self.ask("Hi"))
        self.assertEqual(self.content(c.choices[0]), ("stop", "Hello, wörld", None, []))
        self.assertTrue(c.system_fingerprint.startswith("hearth-"))

    def test_choices(self):
        c = self.both(**self.ask("Hi", n=3))
        self.assertEqual([x.message.content for x in c.choices], ["Hello, wörld"] * 3)

    def test_reasoning(self):
        c = self.both(**self.ask("think"))
        self.assertEqual(self.content(c.choices[0]), ("stop", "Yes.", "Hmm.", []))
        self.assertEqual(c.choices[0].message.reasoning, "Hmm.")
        self.assertGreater(c.usage.completion_tokens_details.reasoning_tokens, 0)

    def test_stop(self):
        for stop in ("STOP", ["STOP", "never"]):
            c = self.both(**self.ask("count to four", stop=stop))
            self.assertEqual(self.content(c.choices[0])[:2], ("stop", "one two three "))

    def test_length(self):
        for limit in ("max_tokens", "max_completion_tokens"):
            ask = self.ask("Hi", **{limit: 2})
            self.assertEqual(self.client.chat.completions.create(**ask).choices[0].finish_reason, "length")
            chunks = list(self.client.chat.completions.create(**ask, stream=True))
            self.assertEqual(chunks[-1].choices[0].finish_reason, "length")

    def test_chunks(self):
        chunks = list(self.client.chat.completions.create(**self.ask("Weather?", tools=[TOOL], stream=True)))
        self.assertEqual(chunks[0].choices[0].delta.role, "assistant")
        self.assertTrue(all(c.usage is None for c in chunks))
        heads = {}
        for c in chunks:
            for t in c.choices[0].delta.tool_calls or []:
                self.assertIsInstance(t.function.arguments, str)
                if t.id:
                    self.assertNotIn(t.index, heads)
                    heads[t.index] = t.function.name
                else:
                    self.assertIn(t.index, heads)
                    self.assertIsNone(t.function.name)
        self.assertEqual(heads, {0: "get_weather", 1: "get_weather"})
        self.assertEqual(chunks[-1].choices[0].finish_reason, "tool_calls")

    def test_tool_loop(self):
        messages = [{"role": "user", "content": "Weather in Paris and Rome?"}]
        m = self.both(**self.ask("", messages=messages, tools=[TOOL])).choices[0].message
        self.assertEqual([json.loads(c.function.arguments) for c in m.tool_calls], [{"city": "Paris"}, {"city": "Rome"}])
        messages += [m] + [{"role": "tool", "tool_call_id": c.id, "content": "sunny"} for c in m.tool_calls]
        c = self.both(**self.ask("", messages=messages, tools=[TOOL]))
        self.assertEqual(c.choices[0].message.content, "They say: sunny\nsunny")

    def test_one_call_only(self):
        c = self.both(**self.ask("Weather?", tools=[TOOL], parallel_tool_calls=False))
        self.assertEqual(len(c.choices[0].message.tool_calls), 1)

    def test_no_call(self):
        c = self.both(**self.ask("Weather?", tools=[TOOL], tool_choice="none"))
        self.assertIsNone(c.choices[0].message.tool_calls)

    def test_custom_tool(self):
        ask = self.ask("custom", tools=[RUN])
        m = self.client.chat.completions.create(**ask).choices[0].message
        self.assertEqual([(c.type, c.custom.name, c.custom.input) for c in m.tool_calls], [("custom", "run", "ls -l")])
        ask["messages"] += [m, {"role": "tool", "tool_call_id": m.tool_calls[0].id, "content": "a b"}]
        self.assertEqual(self.client.chat.completions.create(**ask).choices[0].message.content, "It says: a b")

    def test_json(self):
        for form in ({"type": "json_object"}, as_format(City, False)):
            r = self.client.chat.completions.with_raw_response.create(**self.ask("as JSON", response_format=form))
            self.assertEqual(City.model_validate_json(r.parse().choices[0].message.content), City(city="Paris", people=2))
            self.assertEqual(r.headers["x-hearth-schema"], "checked")  # a script is held to nothing
            r = self.client.chat.completions.with_raw_response.create(**self.ask("Hi", response_format=form))
            self.assertEqual(r.headers["x-hearth-schema"], "unmet")

    def test_parse(self):
        c = self.client.chat.completions.parse(**self.ask("as JSON", response_format=City))
        self.assertEqual(c.choices[0].message.parsed, City(city="Paris", people=2))

    def test_parse_tools(self):
        tool = openai.pydantic_function_tool(City, name="get_weather")
        c = self.client.chat.completions.parse(**self.ask("complete call", tools=[tool]))
        self.assertEqual([t.function.parsed_arguments for t in c.choices[0].message.tool_calls], [City(city="Paris", people=2)])

    def test_completions(self):
        ask = {"model": "demo", "prompt": ["Hi", "count to four"], "stop": "STOP", "echo": True}
        plain = self.client.completions.create(**ask)
        texts = ["", ""]
        for chunk in self.client.completions.create(**ask, stream=True):
            for c in chunk.choices:
                texts[c.index] += c.text
        self.assertEqual([c.text for c in plain.choices], ["HiHello, wörld", "count to fourone two three "])
        self.assertEqual(texts, [c.text for c in plain.choices])
        self.assertEqual(plain.usage.total_tokens, plain.usage.prompt_tokens + plain.usage.completion_tokens)

    def test_azure_v1(self):
        with openai.OpenAI(base_url=self.server.url + "/openai/v1", api_key="any", default_query={"api-version": "preview"}) as client:
            c = client.chat.completions.create(**self.ask("Hi", store=True, metadata={"a": "b"}, prompt_cache_key="k"))
            self.assertEqual(self.content(c.choices[0])[:2], ("stop", "Hello, wörld"))
            self.assertEqual([m.id for m in client.models.list()], ["demo"])

    def test_embeddings_are_refused(self):
        with self.assertRaises(openai.BadRequestError) as caught:
            self.client.embeddings.create(model="demo", input="x")
        self.assertEqual(caught.exception.code, "model_not_supported")

    def test_models(self):
        self.assertEqual([m.id for m in self.client.models.list()], ["demo"])
        self.assertEqual(self.client.models.retrieve("demo").object, "model")

    def test_retries(self):
        for what in ("overloaded", "limited", "cut"):
            with self.subTest(what):
                began = time.monotonic()
                c = self.client.chat.completions.create(**self.ask("retry " + what))
                self.assertEqual(c.choices[0].message.content, "Hello, wörld")
                if what != "cut":  # the server said to wait for a second
                    self.assertGreater(time.monotonic() - began, 0.9)

    def test_errors(self):
        client = self.client.with_options(max_retries=0)
        with self.assertRaises(openai.InternalServerError) as caught:
            client.chat.completions.create(**self.ask("always overloaded"))
        self.assertEqual((caught.exception.status_code, caught.exception.code), (503, "server_overloaded"))
        self.assertTrue(caught.exception.request_id.startswith("req_"))
        with self.assertRaises(openai.BadRequestError) as caught:
            client.chat.completions.create(**self.ask("", messages=[{"role": "user", "content": [{"type": "hologram"}]}]))
        self.assertEqual(caught.exception.param, "messages[0].content[0].type")

    def test_broken_streams(self):
        for what, error in (("break off", openai.APIError), ("hang up", Exception)):
            with self.subTest(what), self.assertRaises(error):
                for _ in self.client.chat.completions.create(**self.ask(what, stream=True)):
                    pass


class Azure(Scripted):
    """The same through Azure's paths. Its client names the deployment, which is the model, in the path."""

    def connect(self):
        return openai.AzureOpenAI(azure_endpoint=self.server.url, api_version="2024-10-21", api_key="any")


class Demo(unittest.TestCase):
    """What only a model can say."""

    def test_completions(self):
        server = Server("--log-level", "warn")
        self.addCleanup(server.stop)
        with openai.OpenAI(base_url=server.url + "/v1", api_key="any") as client:
            for limit in (0, 1):
                c = client.completions.create(model="demo", prompt=[10, 20, 30], max_tokens=limit, echo=True, logprobs=2)
                self.assertEqual(len(c.choices[0].logprobs.token_logprobs), 3 + limit)
                self.assertIsNone(c.choices[0].logprobs.token_logprobs[0])
            c = client.completions.create(model="demo", prompt="Hello", max_tokens=4, best_of=3, n=2, temperature=1)
            self.assertEqual(len(c.choices), 2)
            self.assertGreater(c.usage.completion_tokens, 4)


@unittest.skipUnless(langchain_openai, "langchain-openai is not installed")
class LangChain(Served):
    def connect(self, **kw):
        return langchain_openai.ChatOpenAI(base_url=self.server.url + "/v1", api_key="any", model="demo", **kw)

    def test_chain(self):
        from langchain_core.output_parsers import StrOutputParser
        from langchain_core.prompts import ChatPromptTemplate

        chain = ChatPromptTemplate.from_messages([("system", "Be brief."), ("user", "{q}")]) | self.connect() | StrOutputParser()
        self.assertEqual(chain.invoke({"q": "Hi"}), "Hello, wörld")
        self.assertEqual("".join(chain.stream({"q": "Hi"})), "Hello, wörld")

    def test_tool_loop(self):
        self.tool_loop()

    def test_responses(self):
        """The same by the Responses API: with all that was said, by reference, and without anything stored."""
        for kw in ({}, {"use_previous_response_id": True}, {"store": False, "include": ["reasoning.encrypted_content"]}):
            self.tool_loop(use_responses_api=True, **kw)
        model = self.connect(use_responses_api=True, reasoning={"effort": "low", "summary": "auto"})
        thought = self.joined(model.stream("think"))
        self.assertEqual([(b.get("reasoning"), b.get("text")) for b in thought.content_blocks], [("Hmm.", None), (None, "Yes.")])
        self.assertEqual(model.invoke([("user", "think"), thought, ("user", "Hi")]).text, "Hello, wörld")

    def tool_loop(self, **kw):
        from langchain_core.messages import HumanMessage
        from langchain_core.tools import tool

        @tool
        def get_weather(city: str) -> str:
            """The weather in a city."""
            return "rain in " + city

        model = self.connect(**kw).bind_tools([get_weather])
        for ask in (model.invoke, lambda m: self.joined(model.stream(m))):
            messages = [HumanMessage("Weather?")]
            messages.append(ask(messages))
            self.assertEqual([c["args"] for c in messages[1].tool_calls], [{"city": "Paris"}, {"city": "Rome"}])
            messages += [get_weather.invoke(c) for c in messages[1].tool_calls]
            self.assertEqual(ask(messages).text, "They say: rain in Paris\nrain in Rome")

    def joined(self, chunks):
        whole = None
        for c in chunks:
            whole = c if whole is None else whole + c
        return whole

    def test_structured_output(self):
        model = self.connect().with_structured_output(City, method="json_mode")
        self.assertEqual(model.invoke("as JSON"), City(city="Paris", people=2))
        model = self.connect().with_structured_output(City.model_json_schema(), method="json_schema", strict=False)
        self.assertEqual(model.invoke("as JSON"), {"city": "Paris", "people": 2})
        self.assertEqual(self.connect().with_structured_output(City).invoke("as JSON"), City(city="Paris", people=2))


if __name__ == "__main__":
    print("openai", openai.__version__, flush=True)
    unittest.main(verbosity=1)
