"""A small grammar for phrasings: "(a|b)" chooses, "[x]" is there half of the time, "{slot}" is left for fill()."""
import functools
import re

BLANKS = re.compile(r" (?=[ ?.,!:;]|$)|^ ")
TOKEN = re.compile(r"[()\[\]|]|[^()\[\]|]+")


@functools.lru_cache(None)
def parse(text):
    """A nested list: a sequence has texts and choices, a choice has sequences."""
    stack = [[[]]]  # of choices, each a list of sequences
    for t in TOKEN.findall(text):
        if t in "([":
            stack.append([[]] if t == "(" else [[], []])
        elif t == "|":
            stack[-1].append([])
        elif t in ")]":
            choice = stack.pop()
            stack[-1][-1].append(choice)
        else:
            stack[-1][-1].append(t)
    if len(stack) != 1 or len(stack[0]) != 1:
        raise ValueError("unbalanced grammar: " + text)
    return stack[0][0]


def walk(r, sequence, out):
    for x in sequence:
        if isinstance(x, str):
            out.append(x)
        else:
            walk(r, r.choice(x), out)
    return out


def expand(r, text):
    """One phrasing of the grammar, slots left alone. Blanks around what was left out go."""
    return BLANKS.sub("", "".join(walk(r, parse("(" + text + ")"), [])))


def fill(text, **values):
    """Puts values into slots; values are never read as grammar."""
    return re.sub(r"\{(\w+)\}", lambda m: str(values[m[1]]), text)


PREFIX = ("(please|Please|can you|could you|ok, please|now|Now please|I want you to|would you|kindly|just|hey,|next,|then|so,|well,|alright,|"
          "quick one:|one more thing:|Task:|Hi!|Hello,|Thanks.|Great.|listen,|I need help:|for me:)")
SUFFIX = "(please|now|thanks|thank you|for me|right away|if you can)"
OPENING = ("(Yo|Hey|So|Well|Okay|Alright|Um|Hmm|Ah|Oh|Excuse me|Sorry|Hi|Hello|Hey there|Good evening|Listen|Look|Say|Tell me|Question|One thing|Dear model|Friend|Buddy|Now|And|But|Btw|By the way|Honestly|Curious|"
           "Be honest|Out of curiosity|For the record|I wonder|I'm wondering|Could you say|Do you know|Any idea|Mind telling me|Please tell me|State|My question is|Let me ask)(,|,|:|...|!|.|)")
CLOSING = ("(mate|buddy|friend|hearth|if I may ask|if you don't mind|in your own words|in a nutshell|in short|then|anyway|though|right now|exactly|haha|dear|my friend|roughly|actually|I wonder|I'm curious|for real|no rush|"
           "asap|in simple terms|in one line|today|here|would you|at once|pls|again)")
ADVERB = ("(exactly|really|actually|precisely|just|even|then|honestly|basically|maybe|perhaps|possibly|quickly|briefly|also|again|simply|currently|please|properly|roughly|ever|still|kindly|here|today|now|at all|of course|in fact|"
          "for once|somehow|first|only|truly|generally|normally|the|a|my|this|some)")


def typo(r, word):
    if len(word) < 5 or not word.isalpha():
        return word
    i = r.randint(1, len(word) - 2)
    return r.choice([word[:i] + word[i + 1] + word[i] + word[i + 2:], word[:i] + word[i + 1:], word[:i] + word[i] + word[i:]])


def any_word(r):
    return "".join(r.choice("aeioubdfgklmnprst") for _ in range(r.randint(2, 7)))


def beside_slot(words, i):
    """Whether what stands next to word i could be taken for a part of a value."""
    return any("{" in w for w in words[max(0, i - 1):i + 2])


def style(r, text, polite=True):
    """Varies the literal part of a phrasing: case, typing errors, politeness, punctuation."""
    if r.random() < .06:
        words = re.split(r"(\{\w+\}| )", text)
        i = r.randrange(len(words))
        words[i] = typo(r, words[i])
        text = "".join(words)
    if r.random() < .04:  # one more word that means nothing, or it stands for one of so many that the others still tell
        words = text.split(" ")
        i = r.randrange(len(words))
        if "'" not in words[i] and not beside_slot(words, i) and len(words) > 2:
            words[i:i + 1] = [any_word(r)] if len(words) > 5 and r.random() < .5 else [words[i], any_word(r)]
            text = " ".join(words)
    if r.random() < .07:  # words that change nothing
        words = text.split(" ")
        i = r.randint(1, len(words))
        if not beside_slot(words, i - 1):
            words.insert(i, expand(r, ADVERB))
        text = " ".join(words)
        text = re.sub(r"([.?!]+) ([a-z ]+)$", r" \2\1", text)
    if r.random() < .09:
        text = expand(r, OPENING) + " " + text[:1].lower() + text[1:]
    elif r.random() < .08 and text[-1:].isalpha():
        text += r.choice([" ", ", ", ", ", " - "]) + expand(r, CLOSING)
    elif r.random() < .05 and text[-1:] in "?." and text[-2:-1].isalpha():
        text = text[:-1] + r.choice([" ", ", "]) + expand(r, CLOSING) + text[-1]
    x = r.random()
    if x < .25:
        text = text[:1].lower() + text[1:]
    elif x < .32:
        text = re.sub(r"\{\w+\}|[^{]+", lambda m: m[0] if m[0][0] == "{" else m[0].lower(), text)
    if r.random() < .25:
        text = text.rstrip(".?!")
    if polite and r.random() < .18:
        text = expand(r, PREFIX) + " " + text[:1].lower() + text[1:]
    elif polite and r.random() < .08 and text[-1:].isalpha():
        text += r.choice([" ", ", "]) + expand(r, SUFFIX)
    return text
