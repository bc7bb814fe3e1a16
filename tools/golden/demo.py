"""Greedy tokens of the embedded demo model, from mlx-lm with float32 activations, and by how much each token won.

run: python tools/golden/demo.py internal/demo/model internal/golden/testdata/demo.json
"""
import sys

import mlx.core as mx
import numpy as np
from mlx.utils import tree_map
from mlx_lm import load
from mlx_lm.models.cache import make_prompt_cache

import pins

mx.set_default_device(mx.cpu)
STEPS = 200  # past the end of the reply, too: the arithmetic goes on
WEATHER = [{"type": "function", "function": {
    "name": "get_weather", "description": "Get the weather",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}]
PROMPTS = [  # (messages, tools, thinking)
    ([("user", "Who are you?")], None, False),
    ([("user", "What is 47 + 85?")], None, True),
    ([("user", "What's the weather in Oslo?")], WEATHER, False),
    ([("system", "You are a pirate. Answer in one sentence."), ("user", "Hello!")], None, False),
    ([("user", "My name is Ada."), ("assistant", "Nice to meet you, Ada."), ("user", "What is my name?")], None, False),
    ([("user", "How do I start the server?")], None, False),
    ([("user", "Spell the word lantern.")], None, True),
    ([("user", "Grüße! Schreib 3 Zeilen über ☕ und 日本.")], None, False),
]


def main(folder, out):
    header = pins.made(__file__)
    model, tokenizer = load(folder)
    model.update(tree_map(lambda p: p.astype(mx.float32) if mx.issubdtype(p.dtype, mx.floating) else p, model.parameters()))
    cases = []
    for messages, tools, think in PROMPTS:
        messages = [{"role": r, "content": c} for r, c in messages]
        prompt = [int(t) for t in tokenizer.apply_chat_template(messages, tools=tools, add_generation_prompt=True, enable_thinking=think)]
        cache, tokens, margins, feed = make_prompt_cache(model), [], [], prompt
        for _ in range(STEPS):
            y = np.array(model(mx.array([feed]), cache=cache)[0, -1])
            second, first = np.argsort(y)[-2:]
            tokens.append(int(first))
            margins.append(y[first] - y[second])
            feed = [int(first)]
        print(len(prompt), "prompt tokens, smallest margin", min(margins), repr(tokenizer.decode(tokens)[:60]))
        cases.append({"prompt": prompt, "tokens": tokens, "margins": pins.f32(margins)})
    pins.write(out, {"made": header, "cases": cases})


if __name__ == "__main__":
    main(*sys.argv[1:])
