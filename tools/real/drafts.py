"""Drafts of hearth and of llama.cpp on the same weights and tasks: `make drafts-real` runs it and prints a table in Markdown.

    drafts.py HEARTH DIR [--rounds N] [--tokens N] [--threads N]

The model is SmolLM2-135M-Instruct as quality.py has it, at its 4 bits; the tasks are the prompts of `hearth bench speculate`, with the
first two lines of the answer. Each server says its own greedy answer to them, of so many tokens, in turns with and without drafts:
llama.cpp with each drafter that looks into the context, of which the best of a task counts. One server at a time is let run. The prompt
is in the cache, and nothing that was said before helps.
"""

import argparse
import json
import pathlib
import signal
import statistics
import time
import urllib.request

import quality
from hearth import Server

TEXTS = pathlib.Path(__file__).resolve().parents[2] / "internal" / "bench" / "texts"
TASKS = ("edits", "json", "corrections", "prose")
DRAFTERS = (
    [],
    ["ngram_simple", "size_n=5", "size_m=15"],
    ["ngram_map_k4v", "size_n=5", "size_m=15"],
    ["ngram_mod", "n_match=8", "n_min=2", "n_max=15"],
    ["ngram_cache"],
)


def task(name):
    prompt, answer = (TEXTS / f"{name}.txt").read_text().split("\n-----\n")
    return prompt + "\n" + "".join(answer.splitlines(keepends=True)[:2])


class Peer(quality.Peer):
    def say(self, prompt, n):
        """-> text, drafted and accepted tokens"""
        a = self.ask(prompt, n, cache_prompt=True)
        assert a["tokens_predicted"] == n, a
        return a["content"], a["timings"].get("draft_n", 0), a["timings"].get("draft_n_accepted", 0)

    def forget(self):
        """It has no memory of answers but the cache of its slot, where the same prompt takes the answer's place."""


class Ours:
    def __init__(self, folder, threads, speculation):
        self.server = Server(str(folder), "--threads", str(threads), "--speculation", speculation, "--runaway-stop=false", *quality.QUIET)
        self.url, self.process, self.stop = self.server.url, self.server.process, self.server.stop

    def counts(self):
        s = json.load(urllib.request.urlopen(self.url + "/v1/status", timeout=60)).get("speculation") or {}
        return s.get("drafted_tokens", 0), s.get("accepted_tokens", 0)

    def say(self, prompt, n):
        before = self.counts()
        a = quality.post(self.url + "/v1/completions", {"prompt": prompt, "max_tokens": n, "temperature": 0, "ignore_eos": True})
        assert a["usage"]["completion_tokens"] == n, a
        now = self.counts()
        return a["choices"][0]["text"], now[0] - before[0], now[1] - before[1]

    def forget(self):
        urllib.request.urlopen(urllib.request.Request(self.url + "/v1/cache", method="DELETE"), timeout=60).close()


def measure(servers, prompt, tokens, rounds):
    """-> by name: tokens a second of each round, text, drafted, accepted"""
    speeds, said = {name: [] for name in servers}, {}
    for turn in range(rounds + 1):
        for name, s in servers.items():
            s.process.send_signal(signal.SIGCONT)
            s.forget()
            s.say(prompt, 1)
            began = time.perf_counter()
            said[name] = s.say(prompt, tokens)
            took = time.perf_counter() - began
            s.process.send_signal(signal.SIGSTOP)
            if turn:
                speeds[name].append(tokens / took)
    return {name: (speeds[name], *said[name]) for name in servers}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("hearth", type=lambda p: str(pathlib.Path(p).absolute()))
    parser.add_argument("dir", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    args.dir.mkdir(parents=True, exist_ok=True)
    bench = quality.Bench(args.hearth, args.dir)
    folder, file = bench.folder("SmolLM2 4 bits g32"), bench.gguf("smollm2")
    servers = {}
    try:
        for speculation in ("off", "auto"):
            servers[f"hearth {speculation}"] = Ours(folder, args.threads, speculation)
        for drafter in DRAFTERS:
            servers[" ".join(["llama.cpp", *drafter])] = Peer(file, args.threads, *drafter)
        for s in servers.values():
            s.process.send_signal(signal.SIGSTOP)
        quality.head("task", "server", "tok/s", "of its own without", "drafted", "accepted", "same text as without")
        for name in TASKS:
            got = measure(servers, task(name), args.tokens, args.rounds)
            for server, (speeds, text, drafted, accepted) in got.items():
                plain = got["hearth off" if server.startswith("hearth") else "llama.cpp"]
                ratio = statistics.median(a / b for a, b in zip(speeds, plain[0]))
                share = f"{accepted} ({accepted / drafted:.0%})" if drafted else ""
                same = "yes" if text == plain[1] else "no"
                quality.line(name, server, f"{statistics.median(speeds):.0f}", f"{ratio:.2f}", str(drafted or ""), share, same)
    finally:
        for s in servers.values():
            s.process.send_signal(signal.SIGCONT)
            s.stop()


if __name__ == "__main__":
    main()
