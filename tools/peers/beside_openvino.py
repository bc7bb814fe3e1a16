"""Long prompts beside OpenVINO GenAI, on the same weights and threads, by turns: one side idles while the other works.

    pip install openvino-genai
    beside_openvino.py HEARTH FOLDER FILE.gguf [--tokens 512,2048,4096,8192] [--rounds 5] [--threads 2] [--peer-kv bf16]

FOLDER holds the model in MLX format with 4 bits and groups of 64, FILE.gguf the same in Q4_0: both take 4.5 bits a weight. Every prompt is
of random tokens, so that no cache knows it, and one token is generated. What is timed is the whole call: for hearth a request over HTTP,
for OpenVINO the pipeline's generate. It prints a table in Markdown: medians, least and most, and the ratio of the medians.
"""

import argparse
import contextlib
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

WORDS = 150_000  # ids of both vocabularies
CACHE_GIB, CHUNK = 4, 2048  # OpenVINO's cache, and its tokens a step; hearth's is 2048 as well


class Hearth:
    def __init__(self, program, folder, threads):
        self.home = tempfile.TemporaryDirectory()
        env = {"HOME": self.home.name, "PATH": os.environ["PATH"]}
        args = [program, "serve", folder, "--port", "0", "--threads", str(threads), "--prefix-cache-dir", "off", "--store", "off", "--config", "off", "--log-level", "warn"]
        self.process = subprocess.Popen(args, env=env, stdout=subprocess.PIPE, text=True)
        for line in self.process.stdout:
            if line.startswith("listening on "):
                self.address = line.split()[2]
            if line.startswith("ready in "):
                return
        sys.exit("hearth did not start")

    def prefill(self, ids):
        body = json.dumps({"model": "default", "prompt": ids, "max_tokens": 1, "temperature": 0}).encode()
        request = urllib.request.Request(self.address + "/v1/completions", body, {"Content-Type": "application/json"})
        began = time.perf_counter()
        with urllib.request.urlopen(request) as response:
            answer = json.load(response)
        took = time.perf_counter() - began
        assert answer["usage"]["prompt_tokens"] == len(ids), answer["usage"]
        return took

    def close(self):
        self.process.terminate()
        self.process.wait()
        self.home.cleanup()


def serve_peer(path, threads, keys):
    """The peer's process: a prompt a line, its seconds a line."""
    out = os.fdopen(os.dup(1), "w")
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)  # the library prints
    import numpy as np
    import openvino as ov
    import openvino_genai as genai

    scheduler = genai.SchedulerConfig()
    scheduler.enable_prefix_caching, scheduler.dynamic_split_fuse = True, True
    scheduler.cache_size, scheduler.max_num_batched_tokens, scheduler.max_num_seqs = CACHE_GIB, CHUNK, 16
    properties = {"INFERENCE_NUM_THREADS": threads}
    if keys:
        properties["KV_CACHE_PRECISION"] = keys
    pipe = genai.LLMPipeline(path, "CPU", scheduler_config=scheduler, **properties)
    config = genai.GenerationConfig()
    config.max_new_tokens, config.ignore_eos, config.do_sample = 1, True, False
    print("ready", genai.__version__, file=out, flush=True)
    for line in sys.stdin:
        ids = np.array([json.loads(line)], dtype=np.int64)
        began = time.perf_counter()
        pipe.generate(genai.TokenizedInputs(ov.Tensor(ids), ov.Tensor(np.ones_like(ids))), config)
        print(time.perf_counter() - began, file=out, flush=True)


class Peer:
    def __init__(self, path, threads, keys):
        args = [sys.executable, __file__, "--serve", path, "--threads", str(threads), "--peer-kv", keys]
        self.process = subprocess.Popen(args, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.version = self.process.stdout.readline().split()[1]

    def prefill(self, ids):
        self.process.stdin.write(json.dumps(ids) + "\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def compare(hearth, peer, tokens, rounds):
    rnd = random.Random(1)
    took = {n: ([], []) for n in tokens}
    for each in range(rounds + 1):  # the first is not counted
        for n in tokens if each else tokens[:1]:
            ids = [rnd.randrange(WORDS) for _ in range(n)]
            for seconds, side in zip(took[n], (hearth, peer)):
                s = side.prefill(ids)
                if each:
                    seconds.append(s)
                print(f"round {each}, {n} tokens, {type(side).__name__}: {n / s:.0f} tokens/s", file=sys.stderr, flush=True)
    print("| tokens | hearth, tok/s | OpenVINO GenAI, tok/s | times as fast |\n|---|---|---|---|")
    for n, sides in took.items():
        rates = [sorted(n / s for s in side) for side in sides]
        cells = [f"{statistics.median(r):.0f} ({r[0]:.0f} to {r[-1]:.0f})" for r in rates]
        print(f"| {n:,} | {cells[0]} | {cells[1]} | {statistics.median(rates[0]) / statistics.median(rates[1]):.2f} |")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("paths", nargs="*", help="HEARTH FOLDER FILE.gguf")
    p.add_argument("--tokens", default="512,2048,4096,8192")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--peer-kv", default="", help="KV_CACHE_PRECISION: u8 or bf16; without, the library's own choice")
    p.add_argument("--serve", help=argparse.SUPPRESS)
    a = p.parse_args()
    if a.serve:
        return serve_peer(a.serve, a.threads, a.peer_kv)
    program, folder, path = a.paths
    with contextlib.ExitStack() as ends:
        hearth = ends.enter_context(contextlib.closing(Hearth(str(pathlib.Path(program).resolve()), folder, a.threads)))
        peer = ends.enter_context(contextlib.closing(Peer(path, a.threads, a.peer_kv)))
        print(f"OpenVINO GenAI {peer.version}, {a.threads} threads, {a.rounds} rounds\n")
        compare(hearth, peer, [int(n) for n in a.tokens.split(",")], a.rounds)


if __name__ == "__main__":
    main()
