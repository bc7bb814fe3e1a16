"""Forms that client libraries ask for against the demo model itself, which would hardly ever keep to one: each reply parses,
at temperature 1, behind some words of reasoning. Run by `make interop`, with what is installed beside the OpenAI SDK.
"""

import asyncio
import concurrent.futures
import datetime
import decimal
import enum
import unittest
import uuid
from typing import Annotated, Dict, List, Literal, Optional, Tuple, Union

import anthropic
import openai
import pydantic
from hearth import Server
from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

try:
    import agents
except ImportError:
    agents = None
try:
    import instructor
except ImportError:
    instructor = None
try:
    import langchain_anthropic
    import langchain_openai
except ImportError:
    langchain_openai = None
try:
    import outlines
except ImportError:
    outlines = None

TIMES = 5
PROMPT = "Make one up."

# The demo goes in circles at this temperature: what has no bounds would end where its context does.
Short = Annotated[str, Field(max_length=12)]


class Kind(enum.Enum):
    SMALL = "small"
    LARGE = "quite large"


class Address(BaseModel):
    """Where somebody lives."""

    street: Short
    zip: Optional[Short]


class Person(BaseModel):
    name: Short
    age: int = Field(ge=0, le=150, description="in years")
    kind: Kind
    level: Literal["low", "high", 3]
    home: Address
    friends: List[Address] = Field(max_length=2)
    married: bool


class Cat(BaseModel):
    type: Literal["cat"]
    lives: int


class Dog(BaseModel):
    type: Literal["dog"]
    name: Short


class Pets(BaseModel):
    first: Union[Cat, Dog]
    more: List[Union[Cat, Dog, int, Short]] = Field(min_length=1, max_length=3)


class Values(BaseModel):
    day: datetime.date
    at: datetime.datetime
    time: datetime.time
    lasts: datetime.timedelta
    id: uuid.UUID
    ratio: float = Field(ge=0, le=1)
    price: Annotated[decimal.Decimal, WithJsonSchema({"type": "number", "minimum": 0, "maximum": 100})]  # its own says number or any text
    steps: int = Field(multiple_of=5, ge=10, le=50)
    code: str = Field(pattern=r"^[A-Z]{2}-\d{3}$")


class Chain(BaseModel):
    value: Literal[1, 2, 3]
    next: Optional["Chain"]


def untitled(schema):
    """Leaves out the titles, for which the demo's context has no room."""
    for p in schema["properties"].values():
        p.pop("title", None)


KINDS = (bool, bool, Literal[1, 2])
Wide = pydantic.create_model("Wide", __config__=ConfigDict(json_schema_extra=untitled), **{f"f{n}": (KINDS[n % 3], ...) for n in range(200)})

class Named(BaseModel):
    name: Literal["Rex", "Fido"]


class Proud(BaseModel):
    lives: Literal[7, 9]


class Choice(BaseModel):
    kind: Kind
    sure: Optional[bool]
    pet: Union[Named, Proud]
    level: Literal["low", "high"]


class Moment(BaseModel):
    day: datetime.date
    at: datetime.datetime
    id: uuid.UUID


STRICT = (Address, Person, Pets, Values, Chain)
UNBOUND = (Choice, Moment, Chain)  # have no bounds, which Anthropic's SDK takes out of schemas
LOOSE = (Choice, Chain)  # for calls of tools that are not strict, as instructor's are not


class Loose(BaseModel):
    """What OpenAI's strict mode does not take."""

    city: Short = "Paris"
    pair: Tuple[Literal[1, 2], bool]
    scores: Dict[Short, Literal[1, 2, 3]] = Field(min_length=1, max_length=3)


def setUpModule():
    global server
    server = Server("--log-level", "warn", "--store", "memory", "--temperature", "1", "--thinking-token-budget", "24")


def tearDownModule():
    if server.stop() != 0:
        raise AssertionError("hearth did not stop cleanly")


class Served(unittest.TestCase):
    def every(self, want, ask, times=TIMES):
        """Asks some times, several at once, and looks at what came each time: want is what each is an instance of, or tells."""
        tells = want if not isinstance(want, type) else lambda got: isinstance(got, want)
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            for got in pool.map(lambda _: ask(), range(times)):
                self.assertTrue(tells(got), got)

    def everyone(self, models, ask, times=TIMES):
        for m in models:
            with self.subTest(m.__name__):
                self.every(m, lambda: ask(m), times)

    def openai(self):
        client = openai.OpenAI(base_url=server.url + "/v1", api_key="any", max_retries=0)
        self.addCleanup(client.close)
        return client

    def anthropic(self):
        client = anthropic.Anthropic(base_url=server.url, api_key="any", max_retries=0)
        self.addCleanup(client.close)
        return client


class OpenAI(Served):
    def setUp(self):
        self.client = self.openai()

    def ask(self, **kw):
        return {"model": "demo", "messages": [{"role": "user", "content": PROMPT}], **kw}

    def test_parse(self):
        parse = lambda m: self.client.chat.completions.parse(**self.ask(response_format=m)).choices[0].message.parsed
        self.everyone(STRICT, parse)
        self.every(Wide, lambda: parse(Wide), 1)

    def test_stream(self):
        def ask(m):
            with self.client.chat.completions.stream(**self.ask(response_format=m)) as stream:
                for _ in stream:
                    pass
                return stream.get_final_completion().choices[0].message.parsed

        self.everyone(STRICT, ask, 2)

    def test_choices(self):
        c = self.client.chat.completions.parse(**self.ask(response_format=Person, n=3))
        self.assertEqual([type(x.message.parsed) for x in c.choices], [Person] * 3)

    def test_responses(self):
        parse = lambda m: self.client.responses.parse(model="demo", input=PROMPT, text_format=m).output_parsed
        self.everyone(STRICT, parse)
        self.every(Wide, lambda: parse(Wide), 2)

    def test_responses_stream(self):
        def ask(m):
            with self.client.responses.stream(model="demo", input=PROMPT, text_format=m) as stream:
                for _ in stream:
                    pass
                return stream.get_final_response().output_parsed

        self.everyone(STRICT, ask, 2)

    def test_tools(self):
        tools = [openai.pydantic_function_tool(m) for m in STRICT]
        any_of = lambda got: len(got) > 0 and all(isinstance(a, STRICT) for a in got)
        parsed = lambda m: [c.function.parsed_arguments for c in m.tool_calls or []]
        parse = lambda **kw: parsed(self.client.chat.completions.parse(**self.ask(tools=tools, parallel_tool_calls=False, **kw)).choices[0].message)
        self.every(any_of, lambda: parse(tool_choice="required"))
        self.everyone(STRICT, lambda m: parse(tool_choice={"type": "function", "function": {"name": m.__name__}})[0], 2)
        self.every(lambda got: not got or any_of(got), lambda: parse(tool_choice="auto"))

    def test_responses_tools(self):
        tools = [{"type": "function", **openai.pydantic_function_tool(m)["function"]} for m in STRICT]

        def ask():
            r = self.client.responses.parse(model="demo", input=PROMPT, tools=tools, tool_choice="required", parallel_tool_calls=False)
            return [(i.name, i.arguments) for i in r.output if i.type == "function_call"]

        by_name = {m.__name__: m for m in STRICT}
        self.every(lambda got: got and [by_name[name].model_validate_json(args) for name, args in got], ask)

    def test_loose(self):
        form = {"type": "json_schema", "json_schema": {"name": "loose", "schema": Loose.model_json_schema()}}
        self.every(Loose, lambda: Loose.model_validate_json(self.client.chat.completions.create(**self.ask(response_format=form)).choices[0].message.content))


class Anthropic(Served):
    def setUp(self):
        self.client = self.anthropic()

    def ask(self, **kw):
        return {"model": "demo", "max_tokens": 3000, "messages": [{"role": "user", "content": PROMPT}], **kw}

    def test_parse(self):
        self.everyone(UNBOUND, lambda m: self.client.messages.parse(**self.ask(output_format=m)).parsed_output)

    def test_stream(self):
        def ask(m):
            with self.client.messages.stream(**self.ask(output_format=m)) as stream:
                return stream.get_final_message().parsed_output

        self.everyone(UNBOUND, ask, 2)

    def test_tools(self):
        by_name = {m.__name__: m for m in UNBOUND}
        tools = [{"name": n, "description": "Makes one.", "input_schema": anthropic.transform_schema(m), "strict": True} for n, m in by_name.items()]

        def ask(choice):
            m = self.client.messages.create(**self.ask(tools=tools, tool_choice=choice))
            return [by_name[b.name].model_validate(b.input) for b in m.content if b.type == "tool_use"]

        self.every(lambda got: len(got) == 1, lambda: ask({"type": "any", "disable_parallel_tool_use": True}))
        self.every(list, lambda: ask({"type": "auto"}))


@unittest.skipUnless(agents, "openai-agents is not installed")
class Agents(Served):
    def test_output_type(self):
        agents.set_tracing_disabled(True)

        async def ask(kind, output):
            client = openai.AsyncOpenAI(base_url=server.url + "/v1", api_key="any", max_retries=0)
            try:
                agent = agents.Agent(name="one", model=kind(model="demo", openai_client=client), output_type=output)
                return (await agents.Runner.run(agent, PROMPT)).final_output
            finally:
                await client.close()

        for kind in (agents.OpenAIResponsesModel, agents.OpenAIChatCompletionsModel):
            self.everyone(STRICT, lambda m: asyncio.run(ask(kind, m)), 2)


@unittest.skipUnless(langchain_openai, "LangChain is not installed")
class LangChain(Served):
    def test_openai(self):
        for kw in ({}, {"use_responses_api": True}):
            model = langchain_openai.ChatOpenAI(base_url=server.url + "/v1", api_key="any", model="demo", max_retries=0, **kw)
            typed = lambda m, method: model.with_structured_output(m, method=method, strict=True).invoke(PROMPT)
            with self.subTest(**kw):
                self.everyone(STRICT, lambda m: typed(m, "json_schema"), 2)
                self.everyone(STRICT[:-1], lambda m: typed(m, "function_calling"), 2)  # of recursive types it asks for anything

    def test_anthropic(self):
        model = langchain_anthropic.ChatAnthropic(base_url=server.url, api_key="any", model="demo", max_tokens=3000, max_retries=0)
        typed = lambda m, method: model.with_structured_output(m, method=method).invoke(PROMPT)
        self.everyone(UNBOUND, lambda m: typed(m, "json_schema"), 4)
        self.every(Choice, lambda: typed(Choice, "function_calling"))


@unittest.skipUnless(instructor, "instructor is not installed")
class Instructor(Served):
    def ask(self, client, m, **kw):
        return client.create(response_model=m, model="demo", max_retries=0, messages=[{"role": "user", "content": PROMPT}], **kw)

    def test_openai(self):
        for mode, models in ((instructor.Mode.TOOLS, LOOSE), (instructor.Mode.TOOLS_STRICT, LOOSE), (instructor.Mode.JSON_SCHEMA, STRICT)):
            with self.subTest(mode.name):
                client = instructor.from_openai(self.openai(), mode=mode)
                self.everyone(models, lambda m: self.ask(client, m), 4)

    def test_anthropic(self):
        client = instructor.from_anthropic(self.anthropic(), mode=instructor.Mode.ANTHROPIC_TOOLS)
        self.everyone(LOOSE, lambda m: self.ask(client, m, max_tokens=3000), 2)


@unittest.skipUnless(outlines, "outlines is not installed")
class Outlines(Served):
    def test_openai(self):
        model = outlines.from_openai(self.openai(), "demo")
        self.everyone(STRICT, lambda m: m.model_validate_json(model(PROMPT, m)), 2)

    def test_vllm(self):
        """All of its types, in the field that vLLM has for them."""
        model = outlines.from_vllm(self.openai(), "demo")
        self.everyone(STRICT, lambda m: m.model_validate_json(model(PROMPT, m)), 2)
        number = outlines.Generator(model, outlines.regex(r"[1-9][0-9]{0,3}"))
        self.every(lambda got: 0 < int(got) < 10000, lambda: number(PROMPT))
        self.every(lambda got: got in ("yes", "no way"), lambda: model("Is it?", Literal["yes", "no way"]))
        sum_of = outlines.types.CFG('start: NUMBER ("+" NUMBER)~1..3\nNUMBER: /[0-9]{1,3}/')
        self.every(lambda got: 1 < len([int(n) for n in got.split("+")]) < 5, lambda: model(PROMPT, sum_of))


if __name__ == "__main__":
    print("openai", openai.__version__, flush=True)
    unittest.main(verbosity=1)
