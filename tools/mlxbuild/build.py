"""What mlx-lm's Python takes to build one decode step of qwen3: BenchmarkMLXOverhead of internal/model runs this beside the mlx backend.

A config.json is the argument, a dtype of activations the second. Every line on standard input asks for so many steps; the answer
is a line with two numbers for each, nanoseconds and those of them on a CPU: calling the model, without computing, and letting go
of what that left.
"""

import json
import sys
import time

import mlx.core as mx
import mlx.nn as nn
from mlx_lm.models import cache, qwen3

POSITIONS = 2000  # after which a new sequence begins, as in the benchmark


def load(config, dtype):
    model = qwen3.Model(qwen3.ModelArgs.from_dict(config))
    nn.quantize(model, **config["quantization"])
    model.set_dtype(dtype)
    mx.eval(model.parameters())
    return model


def clocks():
    return time.perf_counter_ns(), time.process_time_ns()


def step(model, caches, token):
    start = clocks()
    y = model(token, caches)
    built = clocks()
    mx.eval(y, [c.state for c in caches])
    end = clocks()
    del y
    return [b - a + d - c for a, b, c, d in zip(start, built, end, clocks())]


def main():
    mx.set_default_device(mx.cpu)
    model = load(json.loads(sys.argv[1]), getattr(mx, sys.argv[2]))
    token = mx.array([[1]])
    caches, done = None, 0
    for line in sys.stdin:
        took = []
        for _ in range(int(line)):
            if done % POSITIONS == 0:
                caches = cache.make_prompt_cache(model)
            took += step(model, caches, token)
            done += 1
        print(*took, flush=True)


main()
