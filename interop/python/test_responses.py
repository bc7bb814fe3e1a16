"""The Responses API of the OpenAI Python SDK, of its Azure client and, where it is installed, of the Agents SDK, against hearth
with ../scripted.jsonl in the model's place. Run by `make interop`, for the SDK's current major version and the one before it.
"""

import asyncio
import inspect
import json
import tempfile
import unittest
from pathlib import Path

import openai
from hearth import Server
from pydantic import BaseModel

try:
    import agents
except ImportError:
    agents = None

SCRIPT = Path(__file__).resolve().parents[1] / "scripted.jsonl"
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": False}
TOOL = {"type": "function", "name": "get_weather", "description": "The weather in a city.", "parameters": SCHEMA, "strict": False}
RUN = {"type": "custom", "name": "run", "description": "Runs a command."}


class City(BaseModel):
    city: str
    people: int


class Served(unittest.TestCase):
    """A server of its own for every class: what the script says a number of times begins anew."""

    @classmethod
    def setUpClass(cls):
        cls.data = tempfile.TemporaryDirectory()
        cls.server = Server("--log-level", "warn", "--script", str(SCRIPT), "--store-dir", cls.data.name)

    @classmethod
    def tearDownClass(cls):
        code = cls.server.stop()
        cls.data.cleanup()
        if code != 0:
            raise AssertionError("hearth did not stop cleanly")


class Scripted(Served):
    def setUp(self):
        self.client = self.connect()
        self.addCleanup(self.client.close)

    def connect(self):
        return openai.OpenAI(base_url=self.server.url + "/v1", api_key="any")

    def both(self, **ask):
        """The response created and streamed: the same but for its ids."""
        plain = self.client.responses.create(model="demo", **ask)
        numbers, streamed = [], None
        with self.client.responses.stream(model="demo", **ask) as stream:
            for e in stream:
                if hasattr(e, "sequence_number"):
                    numbers.append(e.sequence_number)
            streamed = stream.get_final_response()
        self.assertEqual(numbers, sorted(numbers))
        self.assertEqual(self.said(plain), self.said(streamed))
        self.assertEqual(plain.usage.output_tokens, streamed.usage.output_tokens)
        return plain

    def said(self, response):
        items = []
        for i in response.output:
            match i.type:
                case "message":
                    items.append(("message", "".join(p.text for p in i.content)))
                case "reasoning":
                    items.append(("reasoning", "".join(p.text for p in i.content or i.summary)))
                case "function_call":
                    items.append((i.name, json.loads(i.arguments)))
                case "custom_tool_call":
                    items.append((i.name, i.input))
        return response.status, items

    def test_text(self):
        r = self.both(input="Hi", instructions="Be brief.", metadata={"a": "b"})
        self.assertEqual((r.output_text, r.status, r.metadata, r.object), ("Hello, wörld", "completed", {"a": "b"}, "response"))
        self.assertEqual(r.usage.total_tokens, r.usage.input_tokens + r.usage.output_tokens)

    def test_reasoning(self):
        for reasoning in ({}, {"reasoning": {"effort": "low", "summary": "auto"}}):
            self.assertEqual(self.said(self.both(input="think", **reasoning))[1], [("reasoning", "Hmm."), ("message", "Yes.")])
        r = self.client.responses.create(model="demo", input="think", include=["reasoning.encrypted_content"], store=False)
        self.assertTrue(r.output[0].encrypted_content)

    def test_parse(self):
        r = self.client.responses.parse(model="demo", input="as JSON", text_format=City)
        self.assertEqual(r.output_parsed, City(city="Paris", people=2))

    def test_tool_loop(self):
        """Once as a client that sends all, once as one that names the response before."""
        for chained in (False, True):
            items = [{"role": "user", "content": "Weather in Paris and Rome?"}]
            r = self.both(input=items, tools=[TOOL])
            calls = [i for i in r.output if i.type == "function_call"]
            self.assertEqual([json.loads(c.arguments) for c in calls], [{"city": "Paris"}, {"city": "Rome"}])
            results = [{"type": "function_call_output", "call_id": c.call_id, "output": "sunny"} for c in calls]
            ask = {"input": results, "previous_response_id": r.id} if chained else {"input": items + r.output + results}
            self.assertEqual(self.both(tools=[TOOL], **ask).output_text, "They say: sunny\nsunny")

    def test_custom_tool(self):
        r = self.both(input="custom", tools=[RUN])
        self.assertEqual(self.said(r)[1], [("run", "ls -l")])
        result = {"type": "custom_tool_call_output", "call_id": r.output[0].call_id, "output": "a b"}
        self.assertEqual(self.both(input=[result], previous_response_id=r.id, tools=[RUN]).output_text, "It says: a b")

    def test_length(self):
        ask = {"model": "demo", "input": "Hi", "max_output_tokens": 2}
        last = list(self.client.responses.create(**ask, stream=True))[-1]
        self.assertEqual(last.type, "response.incomplete")
        for r in (self.client.responses.create(**ask), last.response):
            self.assertEqual((r.status, r.incomplete_details.reason), ("incomplete", "max_output_tokens"))

    def test_stored(self):
        if not hasattr(self.client.responses, "input_items"):
            self.skipTest("this version cannot list")
        r = self.client.responses.create(model="demo", input="Hi")
        again = self.client.responses.retrieve(r.id)
        self.assertEqual(self.said(again), self.said(r))
        later = self.client.responses.create(model="demo", input="Hi", previous_response_id=r.id)
        items = list(self.client.responses.input_items.list(later.id, limit=1, order="asc"))  # page by page
        self.assertEqual([i.type for i in items], ["message"] * 3)
        self.client.responses.delete(r.id)
        for call in (self.client.responses.retrieve, self.client.responses.delete, self.client.responses.cancel):
            with self.assertRaises(openai.NotFoundError):
                call(r.id)
        with self.assertRaises(openai.BadRequestError) as caught:
            self.client.responses.create(model="demo", input="Hi", previous_response_id=r.id)
        self.assertEqual((caught.exception.code, caught.exception.param), ("previous_response_not_found", "previous_response_id"))
        with self.assertRaises(openai.BadRequestError):
            self.client.responses.cancel(later.id)

    def test_compact(self):
        """By the route, by its item and before an answer; the conversation goes on from each."""
        if not hasattr(self.client.responses, "compact"):
            self.skipTest("this version cannot compact")
        first = self.client.responses.create(model="demo", input="Hi")
        for ask in ({"previous_response_id": first.id}, {"input": [{"role": "user", "content": "Hi"}] + first.output, "instructions": "Be brief."}):
            window = self.client.responses.compact(model="demo", **ask)
            self.assertEqual(([i.type for i in window.output], window.object), (["message", "compaction"], "response.compaction"))
            self.assertEqual(window.output[0].content[0].text, "Hi")
            self.assertGreater(window.usage.output_tokens, 0)
            go_on = [i.model_dump(exclude_none=True, warnings=False) for i in window.output] + [{"role": "user", "content": "Go on."}]
            self.assertEqual(self.client.responses.create(model="demo", input=go_on).output_text, "It goes on.")
        types = []
        for e in self.client.responses.create(model="demo", previous_response_id=first.id, input=[{"type": "compaction_trigger"}], stream=True):
            types.append(e.type)
        self.assertEqual([i.type for i in e.response.output], ["compaction"])
        self.assertIn("response.compaction.compacting", types)
        self.assertEqual(self.client.responses.create(model="demo", previous_response_id=e.response.id, input="Go on.").output_text, "It goes on.")
        r = self.client.responses.create(model="demo", previous_response_id=first.id, input="Hi", context_management=[{"type": "compaction", "compact_threshold": 1}])
        self.assertEqual(([i.type for i in r.output], r.output_text), (["compaction", "message"], "It goes on."))

    def test_socket(self):
        """Turns on a WebSocket, each building on the last without its being stored, behind a prompt that is computed ahead."""
        if not hasattr(self.client.responses, "connect"):
            self.skipTest("this version has no WebSocket")
        with self.client.responses.connect() as connection:

            def ask(**fields):
                connection.response.create(model="demo", store=False, tools=[TOOL], **fields)
                while (e := connection.recv()).type not in ("response.completed", "error"):
                    self.assertEqual(e.stream_id, fields.get("stream_id"))
                return e

            warm = ask(generate=False, instructions="Be brief.").response
            self.assertEqual(self.said(warm), ("completed", []))
            turn = ask(input="Weather in Paris and Rome?", previous_response_id=warm.id, stream_id="a")
            calls = [i for i in turn.response.output if i.type == "function_call"]
            self.assertEqual((turn.stream_id, [json.loads(c.arguments) for c in calls]), ("a", [{"city": "Paris"}, {"city": "Rome"}]))
            results = [{"type": "function_call_output", "call_id": c.call_id, "output": "sunny"} for c in calls]
            last = ask(input=results, previous_response_id=turn.response.id).response
            self.assertEqual((last.output_text, last.previous_response_id, last.store), ("They say: sunny\nsunny", turn.response.id, False))
            self.assertGreater(last.usage.input_tokens_details.cached_tokens, 0)
            e = ask(input="Hi", previous_response_id="resp_none")
            self.assertEqual((e.status, e.error.code, e.error.param), (400, "previous_response_not_found", "previous_response_id"))
            self.assertEqual(ask(input="Hi", tool_choice="none").type, "response.completed")
        with self.client.responses.connect() as connection:  # which knows nothing of the other one
            self.assertEqual(ask(input="Hi", previous_response_id=last.id).error.code, "previous_response_not_found")

    def test_conversations(self):
        if not hasattr(self.client, "conversations"):
            self.skipTest("this version has no conversations")
        conversations = self.client.conversations
        c = conversations.create(metadata={"topic": "tests"}, items=[{"role": "developer", "content": "Be kind."}])
        self.assertEqual((c.object, c.metadata), ("conversation", {"topic": "tests"}))
        self.assertEqual(conversations.retrieve(c.id), c)
        self.assertEqual(conversations.update(c.id, metadata={"topic": "more"}).metadata, {"topic": "more"})
        r = self.client.responses.create(model="demo", conversation=c.id, input="Weather in Paris and Rome?", tools=[TOOL])
        self.assertEqual(r.conversation.id, c.id)
        calls = [i for i in r.output if i.type == "function_call"]
        results = [{"type": "function_call_output", "call_id": call.call_id, "output": "sunny"} for call in calls]
        with self.client.responses.stream(model="demo", conversation=c.id, input=results, tools=[TOOL]) as stream:
            for _ in stream:
                pass
            self.assertEqual(stream.get_final_response().output_text, "They say: sunny\nsunny")
        items = list(conversations.items.list(c.id, order="asc", limit=2))  # page by page
        calling = ["message", "function_call", "function_call", "function_call_output", "function_call_output", "message"]
        self.assertEqual([i.type for i in items], ["message", "message", *calling])
        self.assertEqual([i.id for i in conversations.items.list(c.id)], [i.id for i in reversed(items)])
        self.assertEqual(conversations.items.retrieve(items[2].id, conversation_id=c.id), items[2])
        added = conversations.items.create(c.id, items=[{"role": "user", "content": "More."}])
        self.assertEqual(([i.role for i in added.data], added.has_more, added.last_id), (["user"], False, added.data[0].id))
        self.assertEqual(conversations.items.delete(added.last_id, conversation_id=c.id).id, c.id)
        with self.assertRaises(openai.NotFoundError):
            conversations.items.retrieve(added.last_id, conversation_id=c.id)
        self.assertTrue(conversations.delete(c.id).deleted)
        self.assertEqual(self.client.responses.retrieve(r.id).conversation.id, c.id)
        for call in (conversations.retrieve, conversations.delete, conversations.items.list):
            with self.assertRaises(openai.NotFoundError):
                call(c.id)
        with self.assertRaises(openai.NotFoundError) as caught:
            self.client.responses.create(model="demo", input="Hi", conversation=c.id)
        self.assertEqual((caught.exception.code, caught.exception.param), ("conversation_not_found", "conversation"))
        with self.assertRaises(openai.BadRequestError):
            self.client.responses.create(model="demo", input="Hi", conversation=c.id, previous_response_id=r.id)

    def test_background(self):
        responses = self.client.responses
        if "background" not in inspect.signature(responses.create).parameters:
            self.skipTest("this version knows no background")
        r = responses.create(model="demo", input="Hi", background=True)
        self.assertEqual((r.status, r.background), ("queued", True))
        while r.status in ("queued", "in_progress"):
            r = responses.retrieve(r.id)
        self.assertEqual(self.said(r), ("completed", [("message", "Hello, wörld")]))
        self.assertEqual(self.said(responses.cancel(r.id)), self.said(r))
        for call in (lambda: responses.retrieve(r.id, stream=True), lambda: responses.create(model="demo", input="Hi", background=True, store=False)):
            with self.assertRaises(openai.BadRequestError):
                call()

    def test_background_stream(self):
        responses = self.client.responses
        if "starting_after" not in inspect.signature(responses.retrieve).parameters:
            self.skipTest("this version does not resume")
        with responses.create(model="demo", input="slowly", background=True, stream=True) as stream:
            first = [next(stream) for _ in range(6)]
        self.assertEqual([e.type for e in first[:3]], ["response.created", "response.queued", "response.in_progress"])
        id = first[0].response.id
        rest = list(responses.retrieve(id, stream=True, starting_after=first[-1].sequence_number))
        events = first + rest
        self.assertEqual([e.sequence_number for e in events], list(range(len(events))))
        self.assertEqual("".join(e.delta for e in events if e.type == "response.output_text.delta"), "one two three four five six seven eight")
        self.assertEqual(rest[-1].type, "response.completed")
        self.assertEqual(list(responses.retrieve(id, stream=True)), events)
        with responses.stream(response_id=id, starting_after=4) as stream:
            self.assertEqual([e.sequence_number for e in stream][0], 5)
            self.assertEqual(stream.get_final_response().output_text, rest[-1].response.output_text)

    def test_background_cancel(self):
        responses = self.client.responses
        if "starting_after" not in inspect.signature(responses.retrieve).parameters:
            self.skipTest("this version does not resume")
        with responses.create(model="demo", input="never end", background=True, stream=True) as stream:
            id = next(stream).response.id
            for _ in range(2):
                self.assertEqual(responses.cancel(id).status, "cancelled")
            last = list(stream)[-1]
        self.assertEqual((last.type, last.response.status), ("response.incomplete", "cancelled"))

    def test_errors(self):
        client = self.client.with_options(max_retries=0)
        with self.assertRaises(openai.InternalServerError) as caught:
            client.responses.create(model="demo", input="always overloaded")
        self.assertEqual((caught.exception.status_code, caught.exception.code), (503, "server_overloaded"))
        events = [e.type for e in client.responses.create(model="demo", input="break off", stream=True)]
        self.assertEqual(events[-1], "response.failed")
        self.assertEqual(self.client.responses.create(model="demo", input="retry cut").output_text, "Hello, wörld")


class Azure(Scripted):
    """The same through Azure's paths."""

    def connect(self):
        return openai.AzureOpenAI(azure_endpoint=self.server.url, api_version="2025-04-01-preview", api_key="any")


@unittest.skipUnless(agents, "openai-agents is not installed")
class Agents(Served):
    """Two agents: the first hands over to the second, which has a tool."""

    def ask(self, run):
        async def main():
            client = openai.AsyncOpenAI(base_url=self.server.url + "/v1", api_key="any")
            model = agents.OpenAIResponsesModel(model="demo", openai_client=client)

            @agents.function_tool
            def look_up(city: str) -> str:
                return "rain in " + city

            second = agents.Agent(name="second", instructions="Answer.", tools=[look_up], model=model)
            first = agents.Agent(name="first", instructions="Hand over.", handoffs=[second], model=model)
            result = await run(first)
            await client.close()
            return result.final_output, result.last_agent.name

        return asyncio.run(main())

    def test_output_type(self):
        agents.set_tracing_disabled(True)

        async def main():
            client = openai.AsyncOpenAI(base_url=self.server.url + "/v1", api_key="any")
            model = agents.OpenAIResponsesModel(model="demo", openai_client=client)
            result = await agents.Runner.run(agents.Agent(name="typed", model=model, output_type=City), "as JSON")
            await client.close()
            return result.final_output

        self.assertEqual(asyncio.run(main()), City(city="Paris", people=2))

    def test_hand_off(self):
        agents.set_tracing_disabled(True)

        async def streamed(agent):
            result = agents.Runner.run_streamed(agent, "Weather in Paris?")
            async for _ in result.stream_events():
                pass
            return result

        for run in (lambda agent: agents.Runner.run(agent, "Weather in Paris?"), streamed):
            self.assertEqual(self.ask(run), ("It was: rain in Paris", "second"))

    def test_compaction_session(self):
        """A session that has its items compacted after every turn."""
        agents.set_tracing_disabled(True)

        async def main():
            client = openai.AsyncOpenAI(base_url=self.server.url + "/v1", api_key="any")
            session = agents.OpenAIResponsesCompactionSession("s", agents.SQLiteSession("s"), client=client, model="gpt-4.1", should_trigger_compaction=lambda _: True)
            agent = agents.Agent(name="one", model=agents.OpenAIResponsesModel(model="demo", openai_client=client))
            first = await agents.Runner.run(agent, "Hi", session=session)
            kept = [i["type"] for i in await session.get_items()]
            second = await agents.Runner.run(agent, "Go on.", session=session)
            await client.close()
            return first.final_output, kept, second.final_output

        self.assertEqual(asyncio.run(main()), ("Hello, wörld", ["message", "compaction"], "It goes on."))

    def test_session(self):
        """A session that is a conversation, and a run on one: what was said before is there, calls and their results included."""
        agents.set_tracing_disabled(True)

        @agents.function_tool
        def get_weather(city: str) -> str:
            return "sunny"

        async def main():
            client = openai.AsyncOpenAI(base_url=self.server.url + "/v1", api_key="any")
            model = agents.OpenAIResponsesModel(model="demo", openai_client=client)
            agent = agents.Agent(name="agent", instructions="Answer.", tools=[get_weather], model=model)
            session = agents.OpenAIConversationsSession(openai_client=client)
            outputs = [(await agents.Runner.run(agent, text, session=session)).final_output for text in ("Weather in Paris and Rome?", "And now?")]
            items = await session.get_items()
            last = await session.pop_item()
            rest = await session.get_items()
            await session.add_items([{"role": "user", "content": str(n)} for n in range(25)])  # in two requests
            latest = await session.get_items(limit=3)
            conversation = session.session_id
            await session.clear_session()
            with self.assertRaises(openai.NotFoundError):
                await client.conversations.retrieve(conversation)
            c = await client.conversations.create()
            for text in ("Weather in Paris and Rome?", "And now?"):
                outputs.append((await agents.Runner.run(agent, text, conversation_id=c.id)).final_output)
            stored = [i async for i in client.conversations.items.list(c.id, order="asc")]
            await client.close()
            return outputs, items, last, rest, latest, stored

        outputs, items, last, rest, latest, stored = asyncio.run(main())
        self.assertEqual(outputs, ["They say: sunny\nsunny", "They say: And now?"] * 2)
        turn = ["message", "message", "function_call", "function_call", "function_call_output", "function_call_output", "message"]
        self.assertEqual([i["type"] for i in items], [*turn, "message", "message"])
        self.assertEqual([i.type for i in stored], [*turn, "message", "message"])
        self.assertEqual([*rest, last], items)
        self.assertEqual([i["content"][0]["text"] for i in latest], ["22", "23", "24"])


if __name__ == "__main__":
    unittest.main()
