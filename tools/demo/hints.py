"""Where attention should look, and what it should bring from there. Which tool is meant is a chain of three looks that a model of this size
did not find by itself in 50 million tokens. Told where to look, its heads looked there within one, and still said the wrong name one time
in three after 75: what one pass on to the next was lost. Told what to pass on as well, they learnt that in three. A kind is for all that
a reply takes over from what was said, and one for whether a tool is meant at all.

home     from a token of a tool's line to the beginning of the line, which is the tool's name
match    from the end of a word of the user's to the same word in the tools' lines, or to itself where there is none
fit      from where a reply begins to the user's words that tell the tools that it calls, or to itself where it calls none
choose   from where a reply names a tool to the user's words that only this tool's line has
copy     from where a reply goes on with something that was said to where it was

What is passed on is the first token of the tool's name, for fit and copy the next token.

python hints.py [SEED] shows some.
"""
import random
import re
import sys

import words as w
from calls import NO_TOOL, SPOKEN
from chat import FACTS, FALLBACK, IDENTITY, SMALL_TALK
from tasks import GREETING, MEMORY

KINDS = ["home", "match", "fit", "choose", "copy"]  # by their layers
MOST = 24  # of a kind in a conversation
MESSAGE = re.compile(r"<\|im_start\|>(\w+)\n(.*?)(?:<\|im_end\|>|$)", re.S)
TOOLS = re.compile(r"<\|im_start\|>system\n(?:(?!<\|im_end\|>).)*?# Tools\n(.*?)<\|im_end\|>", re.S)
CALL = re.compile(r'\{"name": "([^"]*)", "arguments": (.*?)\}\n</tool_call>', re.S)
ARGUMENT = re.compile(r'[{,] ?"([^"]*)": (?:"((?:[^"\\]|\\.)*)"|([^",}]+))')
TAKEN = re.compile(r"[^\s\"(),;!?{}\[\]�]*[^\s\"(),;!?{}\[\]�.:']")  # what may have been taken over
THOUGHT = re.compile(r"(.*?</think>)?\s*", re.S)  # of a reply, what is before its content
SPELT = re.compile(r"\w(-\w)+")
# words of replies that are nobody's: they are not taken over
OWN = " ".join([FALLBACK, GREETING, *(x[1] for x in IDENTITY + SMALL_TALK), *(f["answer"] for f in FACTS), *(x for m in MEMORY.values() for k, x in m.items() if k not in ("statements", "questions")),
                "The first last letter is. That words word did not work: result None of my tools can do and"])
OWN = {x.lower() for x in TAKEN.findall(OWN)}


def words(text, begin, end):
    """-> words, where they begin"""
    return [(m[0].lower(), begin + m.start()) for m in SPOKEN.finditer(text[begin:end])]


def found(text, part, begin, end):
    """Where part is a word of its own in text, in any case of its letters."""
    return [begin + m.start() for m in re.finditer(rf"(?<!\w){re.escape(part)}(?!\w)", text[begin:end], re.I)]


def along(there, length):
    """there and the places after: for each of length characters where it may be."""
    return [[x + i for x in there] for i in range(length)]


def pointers(text, begin, end, said):
    """Of a reply that is not a call: -> (where a word begins, for each of its characters where it may have been taken from). said:
    spans of what was said before, the last one first"""
    reply = text[begin:end]
    if SPELT.fullmatch(reply):
        there = found(text, reply[::2], *said[0])
        return [(begin + 2 * i, [x]) for i, x in enumerate(along(there, len(reply[::2])))]
    out, before = [], None  # before: where the last word ended, in the reply and where it was taken from
    for m in TAKEN.finditer(reply):
        word, at = m[0], begin + m.start()
        if word.lower() in OWN:
            before = None
            continue
        there = next((x for x in (found(text, word, *span) for span in said) if x), [])
        if not there and len(word) == len(reply) > 2:
            out.append((at, along(found(text, word[::-1], *said[0]), len(word))[::-1]))
            continue
        if before:
            gap = text[before[0]:at]
            there = [x for x in there if x == before[1] + len(gap) and text[before[1]:x] == gap] or there
        before = (at + len(word), there[0] + len(word)) if len(there) == 1 else None
        out.append((at, along(there, len(word))))
    return out


def called(text, call, line, said):
    """Of a call of the tool whose line is given: as pointers(); said is the span of the user's last message."""
    name, arguments = call[1], call.span(2)
    out = [(call.start(1), along([line[0]], len(name)))]
    for a in ARGUMENT.finditer(text, *arguments):
        out.append((a.start(1), along(found(text, a[1], line[0] + len(name), line[1])[:1], len(a[1]))))
        group = 2 if a[2] is not None else 3
        if a[group]:
            out.append((a.start(group), along(found(text, a[group], *said), len(a[group]))))
    return out


class Hints:
    def __init__(self, tok):
        self.piece = [tok.decode([i], skip_special_tokens=False) for i in range(tok.get_vocab_size())]

    def __call__(self, ids):
        """-> for every kind a list of (place, places it should look at, the token to pass on or None)"""
        home, match, fit, choose, first, copy = [], [], [], [], {}, {}  # the first tokens of what is copied, and those that follow
        pieces = [self.piece[i] for i in ids]
        text = "".join(pieces)
        at = [i for i, p in enumerate(pieces) for _ in p]  # the token of a character
        lines, names, has = [], [], []  # has: word, the number of its line, where it begins
        tools = TOOLS.match(text)
        if tools:
            where = tools.start(1)
            for n, line in enumerate(tools[1].split("\n")):
                lines.append((where, where + len(line)))
                names.append(line.split("(")[0])
                has += [(x, n, p) for x, p in words(text, where, where + len(line))]
                home += [(i, [at[where]], ids[at[where]]) for i in range(at[where] + 1, at[where + len(line) - 1] + 1)]
                where += len(line) + 1

        def point(begin, there):
            """Adds to copy the looks of tokens from the character begin on, there being where each character is taken from."""
            for i, x in enumerate(there):
                if x and at[begin + i] != at[begin + i - 1]:
                    (copy if i else first)[at[begin + i] - 1] = [at[y] for y in x]
            blank = at[begin - 1]
            if there and pieces[blank] == " ":  # of a word that is letters; one that is a token has its blank with it
                there = [at[y - 1] for y in there[0] if text[y - 1] == " "]
                if there:
                    first[blank - 1] = there

        said, known, asked = [], [], False  # spans of what was said, the last one first; of the user's last message: the ends of words, and the lines that have them
        for m in MESSAGE.finditer(text):
            who, span = m[1], m.span(2)
            if who == "system":
                said.insert(0, (span[0], tools.start(1) if tools else span[1]))
            elif who == "user":
                said.insert(0, span)
                asked = bool(names) and not m[2].startswith("<tool_response>")
                if asked:
                    known = self.match(text, span, has, at, [ids[at[begin]] for begin, _ in lines], match)
            else:
                body = THOUGHT.match(text, *span).end()
                calls = list(CALL.finditer(text, body, span[1])) if names else []
                taken, meant = [], set()  # meant: the words that tell a tool
                for c in (c for c in calls if c[1] in names and said):
                    right = names.index(c[1])
                    there = [p for p, of in known if of == {right}] or [p for p, of in known if right in of and len(of) < len(names)]
                    if there:
                        place = at[c.start(1)] - 1
                        choose.append((place, there, ids[place + 1]))
                        meant.update(there)
                    taken += called(text, c, lines[right], said[0])
                if asked and body < len(text) and (meant or not calls):
                    begin = at[body] - 1
                    refused = text.startswith(NO_TOOL, body)
                    fit.append((begin, sorted(meant) or [begin], ids[begin + 1] if meant or refused else None))
                if not calls and said:
                    taken = pointers(text, body, span[1], said)
                for word, there in taken:
                    point(word, there)
        r = random.Random(len(ids))
        some = lambda x, most: x if len(x) <= most else r.sample(x, most)
        copies = [[(place, there, ids[place + 1]) for place, there in x.items()] for x in (first, copy)]
        return [some(x, MOST) for x in (home, match, fit, choose)] + [[y for x in copies for y in some(x, MOST)]]

    def match(self, text, span, has, at, names, match):
        """Adds the looks of a user's words to match; names: the first token of every line. -> the ends of the words, and the lines that have them"""
        known = []
        for word, p in words(text, *span):
            if len(word) < 3:
                continue
            same = [(w.in_common(word, x), n, q) for x, n, q in has]
            longest = max((f[0] for f in same), default=0)
            last = at[p + (longest or len(word)) - 1]
            same = [(n, at[q + longest - 1]) for l, n, q in same if l and l == longest]
            lines = {n for n, _ in same}
            match.append((last, [q for _, q in same] or [last], names[min(lines)] if len(lines) == 1 else None))
            if word not in w.JOINING:
                known.append((last, lines))
        return known


if __name__ == "__main__":
    import mix
    import train

    r = random.Random(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
    stream = train.Stream(None)
    show = lambda ids: "".join(stream.hints.piece[x] for x in ids[-8:])
    for _ in range(12):
        ids = stream.conversation(mix.conversation(r))[0]
        for kind, looks in zip(KINDS, stream.hints(ids)):
            for place, there, token in looks:
                what = "" if token is None else f" and passes on {stream.hints.piece[token]!r}"
                print(f"{kind:8}{show(ids[:place + 1])!r} looks at {[show(ids[:p + 1]) for p in there]}{what}")
