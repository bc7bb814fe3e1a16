"""Writes internal/generate/testdata/deepseek_v32.json: conversations of our own and what mlx-lm's renderer makes of them.

    python tools/golden/chat.py internal/generate/testdata/deepseek_v32.json
"""
import copy
import json
import sys

import mlx_lm
from mlx_lm.chat_templates import deepseek_v32

MLX_LM = "0.32.2"
TOOLS = [
    {"type": "function", "function": {"name": "look", "description": "Look é <up>", "parameters": {"type": "object", "properties": {"b": {"type": "string"}, "a": {"type": "number", "default": 1.0}}}}},
    {"type": "function", "function": {"name": "add"}},
]


def say(role, content, **more):
    return {"role": role, "content": content, **more}


def call(name, arguments):
    return {"id": "c", "type": "function", "function": {"name": name, "arguments": arguments}}


TWO = [call("look", {"b": "x y", "a": 1.0}), call("add", {"l": [1, {"k": None}], "t": True, "s": "é\n"})]
TALKS = [
    [say("user", "Hi")],
    [say("system", "Be brief."), say("user", "Hi"), say("assistant", "Hello", reasoning_content="why"), say("user", " more ")],
    [say("system", "S"), say("user", "Q"), say("assistant", "", reasoning_content="r", tool_calls=TWO), say("tool", "one"), say("tool", "two")],
    [say("system", "S"), say("user", "Q"), say("assistant", "let me", reasoning_content="r", tool_calls=TWO), say("tool", "one"), say("tool", "two"),
     say("assistant", "done", reasoning_content="so"), say("user", "next")],
    [say("system", ""), say("user", "Q"), say("assistant", "", reasoning_content="r", tool_calls=TWO[:1]), say("tool", "1"),
     say("assistant", "", reasoning_content="s", tool_calls=TWO[1:]), say("tool", "2")],
    [say("user", "a"), say("user", "b")],
    [say("user", "a"), say("assistant", "x", reasoning_content="y")],
    [say("developer", "rules"), ],
    [say("user", "a"), say("tool", "b")],
    [say("system", "only")],
]


def run(messages, **options):
    reference = copy.deepcopy(messages)
    for m in reference:
        for c in m.get("tool_calls", []):
            c["function"]["arguments"] = json.dumps(c["function"]["arguments"], ensure_ascii=False)
    case = {"vars": {"messages": messages, **options}}
    try:
        case["text"] = deepseek_v32.apply_chat_template(reference, **{k: v for k, v in options.items() if v is not None})
    except (AssertionError, NotImplementedError) as e:
        case["error"] = type(e).__name__
    return case


def main(out):
    if mlx_lm.__version__ != MLX_LM:
        sys.exit(f"needs mlx-lm {MLX_LM}, found {mlx_lm.__version__}")
    cases = []
    for talk in TALKS:
        for thinking in (None, True, False):
            for generate in (True, False):
                options = {"add_generation_prompt": generate} | ({} if thinking is None else {"enable_thinking": thinking})
                cases.append(run(talk, **options))
                if thinking is None and talk[0]["role"] in ("system", "developer"):
                    cases.append(run(talk, tools=TOOLS, **options))
    with open(out, "w", encoding="utf-8") as f:
        f.write('{"made": ' + json.dumps({"script": "tools/golden/chat.py", "mlx-lm": MLX_LM}) + ',\n"cases": [\n')
        f.write(",\n".join(json.dumps(c, ensure_ascii=False) for c in cases) + "\n]}\n")
    print(f"{len(cases)} cases, mlx-lm {MLX_LM}")


if __name__ == "__main__":
    main(*sys.argv[1:])
