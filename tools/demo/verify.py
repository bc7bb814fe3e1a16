"""Checks that hearth reads tokenizer.json and chat_template.jinja as Python does, on training text and on odd text.

python verify.py HEARTH      the hearth program
"""
import json
import os
import random
import subprocess
import sys

from tokenizers import Tokenizer

import chat
import mix

HERE = os.path.dirname(os.path.abspath(__file__))


def lines(program, *args, given):
    out = subprocess.run([program, "debug", *args], input="".join(json.dumps(x) + "\n" for x in given), capture_output=True, text=True, check=True)
    return [json.loads(x) for x in out.stdout.splitlines()]


def context(c):
    """The template's variables for a conversation."""
    messages = [dict(role="system", content=c["system"])] if c["system"] else []
    for m in c["messages"]:
        q = dict(role=m["role"], content=m["content"])
        if m.get("tool_calls"):
            q["tool_calls"] = [dict(type="function", function=x) for x in m["tool_calls"]]
        if m.get("thought"):
            q["reasoning_content"] = m["thought"]
        messages.append(q)
    return dict(messages=messages, tools=c["tools"], enable_thinking=c["think"], add_generation_prompt=True)


def main(program):
    r = random.Random(5)
    talks = [mix.conversation(r) for _ in range(300)]
    texts = [mix.text(c, prompt=True) for c in talks] + [chat.nonsense(r) for _ in range(300)] + chat.FOREIGN + ["", " ", "a\n\n b", mix.NO_THOUGHT + "x", "<think>\n\n</think>\n", "<|im_end|><|im_start|>"]
    tok = Tokenizer.from_file(os.path.join(HERE, "tokenizer.json"))
    got = lines(program, "tokenize", "--tokenizer", os.path.join(HERE, "tokenizer.json"), given=texts)
    for t, ids in zip(texts, got, strict=True):
        want = tok.encode(t, add_special_tokens=False).ids
        if ids != want:
            raise SystemExit(f"tokens differ: {t!r}\n{ids}\n{want}")
    got = lines(program, "render", "--template", os.path.join(HERE, "chat_template.jinja"), given=[context(c) for c in talks])
    for c, g in zip(talks, got, strict=True):
        if g.get("text") != mix.text(c, prompt=True):
            raise SystemExit(f"the template differs: {g}\n{mix.text(c, prompt=True)!r}")
    print(len(texts), "texts and", len(talks), "conversations agree")


if __name__ == "__main__":
    main(*sys.argv[1:])
