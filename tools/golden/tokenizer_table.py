"""The table of docs/tokenizers.md: real vocabularies and hard texts through PyPI tokenizers and through internal/tokenizer.

  pip download --no-deps --no-binary :all: llama-cpp-python     (and unpack it)
  python tools/golden/tokenizer_table.py SDIST_FOLDER WORK_FOLDER [--rounds 5] [--keep]

From the repository root. Needs tokenizers, gguf, and what tokenizer.py here needs. The vocabularies are those of the sdist's vocabulary-only GGUF files, put
into tokenizer.json files here: the normalizers, pre-tokenizers and decoders are typed below after the models' published ones.
Nothing of it is kept in the repository but the table.
"""
import argparse
import glob
import json
import os
import random
import re
import resource
import statistics
import subprocess
import sys

os.environ["TOKENIZERS_PARALLELISM"] = "false"

import gguf
import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, decoders as D, models, normalizers as N, pre_tokenizers as P, trainers

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tokenizer import DEEPSEEK, LLAMA3, O200K, QWEN2, QWEN35


def read(base, name):
    r = gguf.GGUFReader(f"{base}/ggml-vocab-{name}.gguf")
    return [r.fields[k].contents() if k in r.fields else None for k in (f"tokenizer.ggml.{x}" for x in ("tokens", "merges", "token_type", "scores"))]


def byte_level():
    return P.ByteLevel(add_prefix_space=False, use_regex=False)


def split(regex):
    return P.Sequence([P.Split(Regex(regex), "isolated"), byte_level()])


def add_tokens(t, tokens, types):
    special = [AddedToken(x, special=True, normalized=False) for x, y in zip(tokens, types) if y == 3]
    user = [AddedToken(x, special=False, normalized=False) for x, y in zip(tokens, types) if y == 4]
    if special:
        t.add_special_tokens(special)
    if user:
        t.add_tokens(user)


def byte_bpe(base, name, pre, normalizer=None, **options):
    tokens, merges, types, _ = read(base, name)
    t = Tokenizer(models.BPE({x: i for i, x in enumerate(tokens)}, [tuple(m.split(" ", 1)) for m in merges], **options))
    t.pre_tokenizer, t.decoder = pre, D.ByteLevel()
    if normalizer:
        t.normalizer = normalizer
    add_tokens(t, tokens, types)
    return t


def gemma(base):
    tokens, merges, types, _ = read(base, "gemma-4")
    t = Tokenizer(models.BPE({x: i for i, x in enumerate(tokens)}, [tuple(m.split(" ", 1)) for m in merges], byte_fallback=True, fuse_unk=True, unk_token="<unk>"))
    t.normalizer, t.pre_tokenizer = N.Replace(" ", "\u2581"), P.Split(" ", "merged_with_previous")
    t.decoder = D.Sequence([D.Replace("\u2581", " "), D.ByteFallback(), D.Fuse()])
    add_tokens(t, tokens, types)
    return t


def llama2(base):
    """Merges are made from the scores, as transformers does for a SentencePiece file."""
    tokens, _, types, scores = read(base, "llama-spm")
    vocab = {x: i for i, x in enumerate(tokens)}
    merges = []
    for token, score in zip(tokens, scores):
        local = [(token[:i], token[i:], score) for i in range(1, len(token)) if token[:i] in vocab and token[i:] in vocab]
        merges += sorted(local, key=lambda x: (vocab[x[0]], vocab[x[1]]))
    merges.sort(key=lambda x: x[2], reverse=True)
    t = Tokenizer(models.BPE(vocab, [m[:2] for m in merges], byte_fallback=True, fuse_unk=True, unk_token="<unk>"))
    t.normalizer = N.Sequence([N.Prepend("\u2581"), N.Replace(" ", "\u2581")])
    t.decoder = D.Sequence([D.Replace("\u2581", " "), D.ByteFallback(), D.Fuse(), D.Strip(" ", 1, 0)])
    add_tokens(t, tokens, types)
    return t


def xlmr(base):
    tokens, _, _, scores = read(base, "nomic-bert-moe")
    t = Tokenizer(models.Unigram([(x, float(s)) for x, s in zip(tokens, scores)], unk_id=tokens.index("<unk>"), byte_fallback=False))
    t.pre_tokenizer, t.decoder = P.Metaspace(), D.Metaspace()
    return t


def bert(base):
    tokens, _, _, _ = read(base, "bert-bge")
    vocab = {x[1:] if x[0] == "\u2581" else x if x[0] == "[" else "##" + x: i for i, x in enumerate(tokens)}
    t = Tokenizer(models.WordPiece(vocab, unk_token="[UNK]", max_input_chars_per_word=100))
    t.normalizer, t.pre_tokenizer, t.decoder = N.BertNormalizer(lowercase=True), P.BertPreTokenizer(), D.WordPiece()
    return t


def o200k(sources):
    t = Tokenizer(models.BPE())
    t.pre_tokenizer, t.decoder = split(O200K), D.ByteLevel()
    t.train(sources, trainers.BpeTrainer(vocab_size=16000, initial_alphabet=P.ByteLevel.alphabet(), special_tokens=["<|endoftext|>", "<|start|>", "<|message|>"], show_progress=False))
    return t


DEEPSEEK_V3 = [P.Split(Regex(r"\p{N}{1,3}"), "isolated"), P.Split(Regex("[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"), "isolated"), P.Split(Regex(DEEPSEEK), "isolated"), byte_level()]

VOCABULARIES = {
    "Llama 3": lambda b, s: byte_bpe(b, "llama-bpe", split(LLAMA3), ignore_merges=True),
    "Qwen2": lambda b, s: byte_bpe(b, "qwen2", split(QWEN2), N.NFC()),
    "Qwen3.5": lambda b, s: byte_bpe(b, "qwen35", split(QWEN35), N.NFC()),
    "GPT-2": lambda b, s: byte_bpe(b, "gpt-2", P.ByteLevel(add_prefix_space=False, use_regex=True)),
    "DeepSeek (V3's split)": lambda b, s: byte_bpe(b, "deepseek-llm", P.Sequence(DEEPSEEK_V3)),
    "trained here (GPT-4o's split)": lambda b, s: o200k(s),
    "Gemma 4": lambda b, s: gemma(b),
    "Llama 2": lambda b, s: llama2(b),
    "XLM-R (Unigram)": lambda b, s: xlmr(b),
    "BERT (WordPiece)": lambda b, s: bert(b),
}

POOLS = [(0x20, 0x7F), (0xA0, 0x17F), (0x300, 0x36F), (0x370, 0x5FF), (0x600, 0x6FF), (0x900, 0x97F), (0xE00, 0xE7F), (0x1100, 0x11FF), (0x2000, 0x206F), (0x2190, 0x22FF), (0x3040, 0x30FF), (0x4E00, 0x9FA5),
         (0xAC00, 0xD7A3), (0xFF00, 0xFFEF), (0x1F300, 0x1F6FF), (0x1D400, 0x1D7FF), (9, 13), (0x660, 0x669), (0x1C4, 0x1CC), (0x2150, 0x218F)]
BITS = [" ", "  ", "\n", " \n\n", "\t", "'s", "'LL", "123456", "   ", "\u017f", "\u212a", "<|im_start|>", "<|eot_id|>", "</s>", "<start_of_turn>"]


def make_texts(base, sources):
    texts = set()
    for f in glob.glob(f"{base}/*.inp"):
        texts |= set(open(f, encoding="utf8", errors="replace").read().split("\n__ggml_vocab_test__\n"))
    texts = sorted(texts)
    for f in sources[::6] + sorted(glob.glob(f"{base}/templates/*.jinja"))[::4]:
        texts.append(open(f, encoding="utf8", errors="replace").read()[:6000])
    r = random.Random(7)
    for _ in range(1500):
        s = ""
        for _ in range(r.randint(1, 12)):
            lo, hi = r.choice(POOLS)
            s += "".join(chr(r.randint(lo, hi)) for _ in range(r.randint(1, 5)))
            if r.random() < 0.4:
                s += r.choice(BITS)
        texts.append(s)
    return texts


def cpu():
    u = resource.getrusage(resource.RUSAGE_SELF)
    return u.ru_utime + u.ru_stime


def reference_rates(path, text):
    """As TestCorpus measures ours: a fresh tokenizer, 4 KB at a time, twice; the better of two ways to call it."""
    best = [0, 0]
    for one in (lambda t, s: t.encode(s, add_special_tokens=False).ids, lambda t, s: t.encode_batch_fast([s], add_special_tokens=False)[0].ids):
        t = Tokenizer.from_file(path)
        for i in range(2):
            before = cpu()
            for at in range(0, len(text), 4096):
                one(t, text[at:at + 4096])
            best[i] = max(best[i], len(text) / 1e6 / (cpu() - before))
    return best


def build(base, work):
    sources = sorted(glob.glob(os.path.dirname(os.__file__) + "/*.py"))[:150]
    texts = make_texts(base, sources)
    json.dump(texts, open(f"{work}/texts.json", "w"))
    # ASCII only, so that characters are bytes on both sides.
    speed = re.sub(r"[^\x00-\x7f]", "", "".join(open(f, encoding="utf8", errors="replace").read() for f in sources))[:600_000]
    open(f"{work}/speed.txt", "w").write(speed)
    for name, make in VOCABULARIES.items():
        t = make(base, sources)
        t.save(f"{work}/{name}.json", pretty=False)
        ids = [t.encode(x, add_special_tokens=False).ids for x in texts]
        json.dump({"ids": ids, "text": [t.decode(i, skip_special_tokens=False) for i in ids]}, open(f"{work}/{name}.want.json", "w"))
        print(name, len(texts), "texts", file=sys.stderr)


def ours(work, name, compare):
    out = subprocess.run([f"{work}/corpus.test", "-test.run", "TestCorpus$", "-corpus", work, "-vocabulary", name, f"-compare={compare}"], capture_output=True, text=True).stdout
    line = re.search(r"^result (.*)$", out, re.M)
    return json.loads(line[1]) if line else sys.exit(f"{name}: {out}")


def main():
    args = argparse.ArgumentParser()
    args.add_argument("sdist")
    args.add_argument("work")
    args.add_argument("--rounds", type=int, default=5)
    args.add_argument("--keep", action="store_true", help="use what an earlier run left in WORK_FOLDER")
    args = args.parse_args()
    args.work = os.path.abspath(args.work)
    os.makedirs(args.work, exist_ok=True)
    if not args.keep:
        build(f"{args.sdist}/vendor/llama.cpp/models", args.work)
    speed = open(f"{args.work}/speed.txt").read()
    subprocess.run(["go", "test", "-c", "-o", f"{args.work}/corpus.test", "./internal/tokenizer"], check=True)
    print(f"tokenizers {tokenizers.__version__}, gguf of {os.path.basename(os.path.abspath(args.sdist))}, {args.rounds} interleaved rounds, load average {os.getloadavg()[0]:.1f} of {os.cpu_count()} cores\n")
    print("| vocabulary | texts | ids equal | decode equal | stream equal | ours, MB per CPU s (first / second pass) | tokenizers | ratio | load, CPU ms |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name in VOCABULARIES:
        pairs = [(ours(args.work, name, i == 0), reference_rates(f"{args.work}/{name}.json", speed)) for i in range(args.rounds)]
        mid = lambda f: statistics.median(f(p) for p in pairs)
        r = pairs[0][0]
        print(f"| {name} | {r['texts']} | {r['ids']} | {r['decode']} | {r['stream']} | {mid(lambda p: p[0]['cold']):.1f} / {mid(lambda p: p[0]['warm']):.1f} "
              f"| {mid(lambda p: p[1][0]):.1f} / {mid(lambda p: p[1][1]):.1f} | {mid(lambda p: p[0]['cold'] / p[1][0]):.1f} / {mid(lambda p: p[0]['warm'] / p[1][1]):.1f} | {mid(lambda p: p[0]['load_ms']):.0f} |", flush=True)


if __name__ == "__main__":
    main()
