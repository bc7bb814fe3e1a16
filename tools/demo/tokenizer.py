"""Makes tokenizer.json: whole frequent words of the templates, everything else byte by byte. There are no merges, so a
word is either one token or its letters, the same after a blank, a quote or a slash: copying, spelling and upper-casing
of unseen words is work on letters.

python tokenizer.py [WORDS=6000 [CONVERSATIONS=24000]]
"""
import collections
import json
import os
import random
import re
import sys

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers

import chat
import mix

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCES = ["chat.py", "tasks.py", "calls.py", "sums.py", "mix.py", "facts.json", *chat.parts("phrasings"), *chat.parts("talk"), "instructions.json", "memory.json", *chat.parts("schemes"), "tools.json"]
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
MARKUP = ["<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", mix.NO_THOUGHT]
SYNTAX = ['{"', ' {"', '":', ' "', '",', '"}', '"}}', "}}", " {}}", '"]}', ' ["', "):", "?:", ". ", " -", " =", '."', '?"', "://", "https", "http", "www"]


def template_words():
    """Every word that the sources of the phrasings have."""
    text = "".join(open(os.path.join(HERE, f), encoding="utf-8").read() for f in SOURCES)
    return {x.lower() for x in re.findall(r"[A-Za-z]+", text)}


def main(size=6000, conversations=24000):
    r = random.Random(11)
    mix.w.know(["a"])  # whatever tokenizer.json is there
    # a name like sponsorMail is two words, or its letters would have to be read for what sponsor_mail says at once
    pre = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(r"\p{Ll}(?=\p{Lu})"), "merged_with_previous"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)])
    # of a word that no training copies or spells, a token would be one whose letters nobody knows
    allowed, count = template_words() - {x for x in mix.w.ALL if mix.w.held(x)}, collections.Counter()
    for _ in range(conversations):
        text = mix.text(mix.conversation(r))
        for part in re.split("|".join(map(re.escape, SPECIAL + MARKUP)), text):
            count.update(t for t, _ in pre.pre_tokenize_str(part))
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocab = {c: i for i, c in enumerate(alphabet)}
    for s in SYNTAX:
        for t, _ in pre.pre_tokenize_str(s):
            vocab.setdefault(t, len(vocab))
    words = [t for t, n in count.most_common() if n >= 40 and len(t.strip("Ġ")) > 1 and t.strip("Ġ").isascii() and t.strip("Ġ").isalpha() and t.strip("Ġ").lower() in allowed]
    for t in words:
        if len(vocab) >= size + len(alphabet):
            break
        for x in (t.strip("Ġ"), "Ġ" + t.strip("Ġ")):  # a word after a blank may have to be copied to where none is, and the other way round
            vocab.setdefault(x, len(vocab))
    free = -(len(vocab) + len(SPECIAL) + len(MARKUP)) % 64
    tok = Tokenizer(models.BPE(vocab=vocab, merges=[], fuse_unk=False, byte_fallback=False, ignore_merges=True))
    tok.pre_tokenizer = pre
    tok.decoder = decoders.ByteLevel()
    tok.add_special_tokens([AddedToken(s, special=True, normalized=False) for s in SPECIAL])
    tok.add_tokens([AddedToken(s, special=False, normalized=False) for s in MARKUP])
    tok.add_special_tokens([AddedToken(f"<|reserved_{i}|>", special=True, normalized=False) for i in range(free)])
    tok.save(os.path.join(HERE, "tokenizer.json"))
    texts = [mix.text(mix.conversation(r)) for _ in range(500)]
    n = sum(len(tok.encode(t).ids) for t in texts)
    print(json.dumps(dict(vocabulary=tok.get_vocab_size(), words=len(words), chars_per_token=round(sum(map(len, texts)) / n, 2), tokens_per_conversation=n // 500)))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
