"""Compares hearth with transformers over folders of chat templates and writes a table; templates stay where they are.

    python tools/golden/templates.py --hearth bin/hearth FOLDER... > table.md
    go test ./internal/jinja -run XXX -bench Corpus -benchtime 1x -corpus cases.jsonl   # speed, with --cases cases.jsonl

Every *.jinja and *.txt below a folder is a template and is rendered for each of the conversations below.
"""
import argparse
import copy
import datetime
import json
import pathlib
import subprocess
import sys

import jinja2
import transformers
from transformers.utils import chat_template_utils as utils

JINJA, TRANSFORMERS = "3.1.6", "5.23.0"


class Clock(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls(2026, 3, 5, 7, 8, 9)


TOOLS = [
    {"type": "function", "function": {"name": "get_weather", "description": "Get the weather <in> a city & more", "parameters": {"type": "object", "properties": {
        "city": {"type": "string", "description": "City name"}, "unit": {"type": "string", "enum": ["c", "f"]}, "days": {"type": ["integer", "null"], "default": 1.5}}, "required": ["city"]}}},
    {"type": "function", "function": {"name": "add", "description": "Add \"numbers\" — é", "parameters": {"type": "object", "properties": {
        "a": {"type": "number"}, "b": {"type": "array", "items": {"type": "integer"}}, "o": {"type": "object", "properties": {"x": {"type": "boolean"}}}}, "required": ["a", "b"]}}},
]


def user(s):
    return {"role": "user", "content": s}


def assistant(s, **more):
    return {"role": "assistant", "content": s, **more}


def system(s):
    return {"role": "system", "content": s}


def call(arguments, id="abcdefghi", name="get_weather"):
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def result(content, id="abcdefghi", name="get_weather"):
    return {"role": "tool", "tool_call_id": id, "name": name, "content": content}


def text(s):
    return {"type": "text", "text": s}


TALKS = {
    "single": dict(messages=[user("Hi there")]),
    "several turns": dict(messages=[system("Be brief.\n"), user("Hi"), assistant("Hello!"), user("  2+2? 'q' \"w\" é 😀 ")]),
    "no generation prompt": dict(messages=[user("Hi"), assistant("Hello!\n\n")], add_generation_prompt=False),
    "thinking on": dict(messages=[user("Hi")], enable_thinking=True, thinking=True, reasoning_effort="high"),
    "thinking off": dict(messages=[user("Hi"), assistant("<think>\nabc\n</think>\n\nyes"), user("go")], enable_thinking=False, thinking=False),
    "tools": dict(messages=[system("sys"), user("Weather?")], tools=TOOLS),
    "object arguments": dict(messages=[user("Weather?"), assistant("", tool_calls=[call({"city": "Paris", "days": 3, "f": 1.0, "n": None, "t": True, "l": [1, 2.5, "x"], "o": {"a": "b"}})]),
                                       result("sunny 20"), assistant("It is sunny."), user("thx")], tools=TOOLS),
    "string arguments": dict(messages=[user("Weather?"), assistant(None, tool_calls=[call('{"city": "Paris"}')]), result("sunny")], tools=TOOLS),
    "parallel calls": dict(messages=[system("s"), user("Weather?"), assistant("Let me see", tool_calls=[call({"city": "Paris"}, "aaaaaaaaa"), call({"a": 1, "b": [1, 2]}, "bbbbbbbbb", "add")]),
                                     result("sunny", "aaaaaaaaa"), result('{"sum": 3}', "bbbbbbbbb", "add")], tools=TOOLS),
    "reasoning and a call": dict(messages=[user("Weather?"), assistant("ok", reasoning_content="I should call\nit", tool_calls=[call({"city": "Paris"})]), result("sunny"),
                                           assistant("Done", reasoning_content="so"), user("more")], tools=TOOLS),
    "list content": dict(messages=[system("s"), {"role": "user", "content": [text("Look"), text(" here")]}, assistant([text("seen")]), user("x")]),
    "images": dict(messages=[{"role": "user", "content": [{"type": "image"}, text("What?"), {"type": "image_url", "image_url": {"url": "http://x/y.png"}}]}]),
    "list results": dict(messages=[user("W"), assistant("", tool_calls=[call({"city": "P"})]), result([text("sunny")])], tools=TOOLS),
    "odd order": dict(messages=[assistant("first"), user("then"), user("again"), system("late")]),
    "developer": dict(messages=[{"role": "developer", "content": "dev rules"}, user("Hi")]),
    "two rounds": dict(messages=[user("1"), assistant("", reasoning_content="r1", tool_calls=[call({"city": "A"})]), result("t1"),
                                 assistant("", reasoning_content="r2", tool_calls=[call({"city": "B"}, "123456789")]), result("t2", "123456789"),
                                 assistant("fin", reasoning_content="r3"), user("2"), assistant("z"), user("3")], tools=TOOLS, preserve_thinking=True),
    "documents": dict(messages=[user("Q")], documents=[{"title": "D1", "text": "body", "contents": "body"}, {"title": "D2", "text": "b2", "contents": "x"}]),
}
TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}


def contexts():
    for name, talk in TALKS.items():
        v = copy.deepcopy({**TOKENS, "tools": None, "documents": None, "add_generation_prompt": True, **talk})
        v["messages"] = utils._alias_reasoning_fields(v["messages"])
        yield name, v


def reference(source):
    """What transformers makes of each conversation; None for an error."""
    try:
        template = utils._compile_jinja_template(source)
    except Exception:
        return [None] * len(TALKS)
    out = []
    for _, v in contexts():
        try:
            out.append(template.render(**copy.deepcopy(v)))
        except Exception:
            out.append(None)
    return out


def ours(hearth, path):
    lines = "".join(json.dumps(v) + "\n" for _, v in contexts())
    p = subprocess.run([hearth, "debug", "render", "--template", path, "--now", "2026-03-05T07:08:09Z"], input=lines, capture_output=True, text=True)
    if p.returncode != 0:
        return [None] * len(TALKS)
    return [json.loads(line).get("text") for line in p.stdout.splitlines()]


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--hearth", default="bin/hearth")
    args.add_argument("--cases", help="also write the cases here, for the benchmark")
    args.add_argument("folders", nargs="+")
    args = args.parse_args()
    if (jinja2.__version__, transformers.__version__) != (JINJA, TRANSFORMERS):
        sys.exit(f"needs jinja2 {JINJA} and transformers {TRANSFORMERS}, found {jinja2.__version__} and {transformers.__version__}")
    utils.datetime = Clock
    cases = open(args.cases, "w", encoding="utf-8") if args.cases else None
    print(f"jinja2 {JINJA}, transformers {TRANSFORMERS}, {len(TALKS)} conversations each\n")
    print("| Templates from | Templates | Cases | Equal | Both an error | Differ |\n|---|---|---|---|---|---|")
    for folder in map(pathlib.Path, args.folders):
        files = sorted(p for p in folder.rglob("*") if p.suffix in (".jinja", ".txt"))
        equal = errors = 0
        for path in files:
            source = open(path, encoding="utf-8", newline="").read()
            want = reference(source)
            for (name, v), w, g in zip(contexts(), want, ours(args.hearth, path), strict=True):
                equal += w is not None and w == g
                errors += w is None and g is None
                if w != g:
                    print(f"differs: {path}, {name}", file=sys.stderr)
                if cases:
                    cases.write(json.dumps({"source": source, "vars": v, "text": w}) + "\n")
        n = len(files) * len(TALKS)
        print(f"| {folder.name} | {len(files)} | {n} | {equal} | {errors} | {n - equal - errors} |")


if __name__ == "__main__":
    main()
