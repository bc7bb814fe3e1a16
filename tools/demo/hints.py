"""Where attention should look in a conversation with tools. Which tool is meant is a chain of three looks that a model of
this size did not find by itself in 50 million tokens; told where to look, its heads find it in one. A fourth is for values.

home     from a token of a tool's line to the beginning of the line
match    from the end of a word of the user's to the same word in the tools' lines, or to itself where there is none
choose   from where a reply names a tool to the user's words that only this tool's line has
value    from where a reply gives a value to where the user says it

python hints.py [SEED] shows some.
"""
import random
import re
import sys

KINDS = ["home", "match", "choose", "value"]
MOST = 24  # of a kind in a conversation
WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
STEP = re.compile(r'<\|im_start\|>user\n(?!<tool_response>)(?P<said>.*?)<\|im_end\|>|\{"name": "(?P<name>[^"]*)", "arguments": (?P<arguments>.*?)\}\n</tool_call>', re.S)
VALUE = re.compile(r'": "((?:[^"\\]|\\.)*)"|": ([^",}]+)')


def in_common(a, b):
    """How many letters two words have in common, if they are one word but for the ending, or 0."""
    if a == b:
        return len(a)
    if a[0] != b[0]:
        return 0
    n = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
    other = max(len(a), len(b)) - n
    return n if n >= 4 and other <= 3 or n == 3 and other <= 2 else 0


def words(text, begin, end):
    """-> words, where they begin"""
    return [(m[0].lower(), begin + m.start()) for m in WORD.finditer(text[begin:end])]


class Hints:
    def __init__(self, tok):
        self.piece = [tok.decode([i], skip_special_tokens=False) for i in range(tok.get_vocab_size())]

    def __call__(self, ids):
        """-> for every kind a list of (place, places it should look at)"""
        out = [], [], [], []
        pieces = [self.piece[i] for i in ids]
        text = "".join(pieces)
        begin = text.find("# Tools\n") + 8
        if begin < 8:
            return out
        home, match, choose, value = out
        at = [i for i, p in enumerate(pieces) for _ in p]  # the token of a character
        end = text.index("<|im_end|>", begin)
        names, has, where = [], [], begin  # has: word, the number of its line, where it begins
        for n, line in enumerate(text[begin:end].split("\n")):
            names.append(line.split("(")[0])
            has += [(x, n, p) for x, p in words(text, where, where + len(line))]
            home += [(i, [at[where]]) for i in range(at[where] + 1, at[where + len(line) - 1] + 1)]
            where += len(line) + 1
        said, known = range(0), []  # of the user's last message: where it is; the ends of words, and the lines that have them
        for m in STEP.finditer(text, end):
            if m["said"] is not None:
                said, known = range(*m.span("said")), []
                for word, p in words(text, said.start, said.stop):
                    if len(word) < 3:
                        continue
                    found = [(in_common(word, x), n, q) for x, n, q in has]
                    longest = max((f[0] for f in found), default=0)
                    last = at[p + (longest or len(word)) - 1]
                    found = [(n, at[q + longest - 1]) for l, n, q in found if l and l == longest]
                    match.append((last, [q for _, q in found] or [last]))
                    known.append((last, {n for n, _ in found}))
                continue
            right = names.index(m["name"]) if m["name"] in names else -1
            there = [p for p, lines in known if lines == {right}] or [p for p, lines in known if right in lines and len(lines) < len(names)]
            if there:
                choose.append((at[m.start("name")] - 1, there))
            for v in VALUE.finditer(text, *m.span("arguments")):
                group = 1 if v[1] is not None else 2
                there = [at[x.start()] for x in re.finditer(rf"(?<!\w){re.escape(v[group])}(?!\w)", text[:said.stop]) if x.start() >= said.start] if v[group] else []
                if there:
                    value.append((at[v.start(group)] - 1, there))
        r = random.Random(len(ids))
        return [x if len(x) <= MOST else r.sample(x, MOST) for x in out]


if __name__ == "__main__":
    import mix
    import train

    r = random.Random(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
    stream = train.Stream(None)
    show = lambda ids: "".join(stream.hints.piece[x] for x in ids[-8:])
    for _ in range(12):
        ids = stream.conversation(mix.conversation(r))[0]
        for kind, found in zip(KINDS, stream.hints(ids)):
            for place, there in found:
                print(f"{kind:8}{show(ids[:place + 1])!r} looks at {[show(ids[:p + 1]) for p in there]}")
