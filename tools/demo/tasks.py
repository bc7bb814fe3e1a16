"""Instructions, memory over several turns, obedience to the system prompt.

instructions.json has their phrasings by skill, and the rules of obey() by kind; memory.json what a user can tell: statements, the
acknowledgement of a statement, questions, the answer, and the answer when it was not told. The slots: {s} the text that is
meant, {q} the same between marks; the others as the makers below name them.
"""
import json
import re

import words as w
from chat import BYE, FINE, HELLO, IDENTITY, SMALL_TALK, TALK, WELCOME, WHO, fallback, faq, identity, joined, load, small_talk, turn
from grammar import expand, fill, style

GREETING = "Hello, it is nice to meet you!"
ORDINALS = ["first", "second", "third", "fourth", "fifth"]
NUMBERS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
SAY = joined(load("instructions.json"))
SAY |= {x: SAY["case"] + "|" + SAY[x] for x in ("upper", "lower")}
MEMORY = {name: joined(m) for name, m in load("memory.json").items()}
QUOTES = ["\u201c%s\u201d", "\u2018%s\u2019", "\u00ab%s\u00bb", "`%s`", "``%s``", "*%s*", "**%s**", "<%s>", "[%s]", "''%s''", "\u201e%s\u201c", "\n%s\n", "\n\n%s\n\n"]


def quoted(r, text):
    """Between marks that show where it begins and ends."""
    return w.quoted(r, text) if r.random() < .8 or "'" in text else r.choice(QUOTES[:-2] if len(text) < 9 or r.random() < .8 else QUOTES) % text


def near(text):
    """What stands right before and after the slots that have no marks."""
    out = []
    for m in re.finditer(r"\{[svxok]\}|\{qk\}", text):
        out += [m[0], (re.findall(r"\S+", text[:m.start()]) or [""])[-1].lower(), (re.findall(r"[\w{}']+|^$|\n| -", text[m.end():] or "") or [""])[0].lower()]
    return out


# no reply without these
KEEP = w.W("name call who color colour live home city town number word password job work profession json greet hello hi welcome sentence letter count spell backward reverse order sort alphabet upper lower cap small big repeat echo copy first last second third fourth fifth")


def dress(r, text, polite=True, around=True):
    """style(), but what was put in leaves the ends of what is to be copied alone."""
    if r.random() < .04:
        text = text.replace("'", "")
    if r.random() < .04:  # telegram style
        text = " ".join(x for x in text.split(" ") if x.lower() not in ("the", "please", "is", "are") or r.random() < .3) or text
    want = near(text)
    for _ in range(8):
        out = style(r, text, polite)
        if near(out) == want and all(x in out.lower() for x in KEEP if x in text.lower()):
            break
    else:
        out = text
    if not around:
        return out
    if r.random() < .1 and not out.startswith("{"):
        out = style(r, expand(r, SAY["opening"]), False).rstrip(".!?:, ") + r.choice([". ", ". ", ": ", "! ", "\n", " - ", ", "]) + out
    if r.random() < .07 and (out[-1:].isalpha() or out[-1:] in ".?!"):
        out += r.choice([" ", "\n"] if out[-1] in ".?!" else [". ", "\n", "! "]) + style(r, expand(r, SAY["closing"]), False)
    return out


def ask(r, skill, **slots):
    return fill(dress(r, expand(r, SAY[skill])), **slots)


def tricky(r):
    """Text to be handed back that looks as if it were more."""
    return fill(expand(r, SAY["tricky"]), a=w.word(r), b=w.word(r), n=w.name(r), i=w.integer(r), j=w.pick(r, w.ADJ))


def marked(text):
    """Marks around {s} where nothing else says where it ends."""
    return text if re.search(r"[:\n-] ?\{s\}$|^\{s\}(\n| -)", text) else text.replace("{s}", "{q}")


def payload(r):
    """Text to be handed back unchanged or nearly so."""
    x = r.random()
    if x < .75:
        return w.sentence(r)
    return r.choice([w.email, w.path, w.url, w.code, w.name, w.city, lambda r: str(w.integer(r))])(r)


def repeat(r):
    odd = r.random() < .3
    s = tricky(r) if odd else payload(r)
    text = expand(r, SAY["repeat"])
    if odd:
        text = marked(text)
    while (o := w.word(r)).lower() in ("hello", "hi", "hey", "welcome", "greeting", "nothing"):
        pass
    return [turn(fill(dress(r, text), s=s, q=quoted(r, s), o=o), o if "{o}" in text else s, "repeat")]


def case(r):
    """Upper or lower case."""
    skill = "upper" if r.random() < .55 else "lower"
    s = tricky(r) if r.random() < .15 else w.words(r, 1, 4)
    if skill == "upper":
        given, reply = s, s.upper()
    else:
        reply = s.lower()
        given = r.choice([reply.upper(), reply.upper(), reply.title()])
    anti = expand(r, SAY["not " + skill + " letters"])
    k = expand(r, SAY[skill + " letters"])
    return [turn(ask(r, skill, s=given, q=quoted(r, given), k=k, anti=anti), reply, skill)]


def letter(r):
    """The first or the last."""
    first = r.choice([True, True, False])
    x = w.word(r) if r.random() < .85 else w.name(r).split(" ")[0]
    which = "first" if first else "last"
    k = which if r.random() < .75 else r.choice(["1st", "initial", "very first"] if first else ["final", "very last", "ending"])
    v = r.choice(["start", "start", "begin"] if first else ["end", "end", "close"])
    e = r.choice(["start", "beginning", "front"] if first else ["end", "end", "back"])
    return [turn(ask(r, "letter", s=x, q=quoted(r, x), k=k, v=v, e=e), f"The {which} letter is {x[0 if first else -1]}.", "letter")]


def count(r):
    return (count_to if r.random() < .15 else count_words)(r)


def count_to(r):
    n = r.randint(2, 10)
    return [turn(ask(r, "count to", n=r.choice([str(n), NUMBERS[n]])), ", ".join(map(str, range(1, n + 1))), "count")]


def count_words(r):
    n = r.randint(1, 8)
    s = " ".join(w.word(r) for _ in range(n))
    if r.random() < .2:
        s = re.sub("[^A-Za-z0-9 ]", "", tricky(r).replace("-", " ").replace("'", ""))
        s = " ".join(s.split()[:8])
        n = len(s.split())
    a = ", ".join(f"{i} {x}" for i, x in enumerate(s.split(" "), 1)) + f". That is {n} word{'s' if n > 1 else ''}."
    given = s
    if r.random() < .15:  # a sentence as it is written
        given = s[0].upper() + s[1:] + r.choice([".", ".", "!", "?"])
        a = a.replace("1 " + s[0], "1 " + s[0].upper(), 1)
    return [turn(ask(r, "count words", s=given, q=quoted(r, given)), a, "count")]


SINGULAR = {"countries": "country"}


def bank(r):
    """The first few of a list known by heart."""
    b = r.choice(list(w.BANKS) + ["colors"] * 4)
    n = r.randint(1, 5)
    known = w.BANKS[b][:n]
    asked = b if n > 1 else SINGULAR.get(b, b[:-1])
    if b == "colors" and r.random() < .3:
        asked = "colours" if n > 1 else "colour"
    number = r.choice([str(n), NUMBERS[n]])
    if r.random() < .3:
        return [turn(ask(r, "bank as json", n=number, b=asked), json.dumps({b: known}), "bank")]
    x = r.choice(["example", "name", "kind"]) + ("s" if n > 1 else "")
    many = b if r.random() < .8 or b != "colors" else "colours"
    return [turn(ask(r, "bank", n=number, b=asked, p=many, x=x), ", ".join(known), "bank")]


def json_name(r):
    if r.random() < .4:
        return r.choice(w.W("name city age color email id price title status size kind date code user path"))
    return w.word(r) if r.random() < .8 else w.words(r, 2, 2, "_")


def json_key(r):
    """JSON of named keys; most often one."""
    n = r.choice([1, 1, 1, 2, 2, 3])
    keys = w.distinct(r, n, json_name)
    values = [r.choice([w.word, w.word, w.name, w.city, w.integer, w.integer, w.email, w.sentence, lambda r: r.random() < .5])(r) for _ in keys]
    show = [v if isinstance(v, str) and " " not in v else quoted(r, v) if isinstance(v, str) else str(v).lower() for v in values]
    if n == 1:
        user = ask(r, "json of one", k=keys[0], qk=quoted(r, keys[0]) if r.random() < .7 else keys[0], v=show[0])
    else:
        pair = expand(r, SAY["key and value"])
        pairs = [fill(pair, k=k, v=v) for k, v in zip(keys, show)]
        if r.random() < .8:
            x = ", ".join(pairs[:-1]) + r.choice([" and ", ", ", ", and "]) + pairs[-1]
        else:
            x = r.choice(["; ", "\n", " & ", "\n- "]).join(pairs)
        user = ask(r, "json of many", x=x)
    return [turn(user, json.dumps(dict(zip(keys, values)), ensure_ascii=False), "json")]


def greet(r):
    return [turn(ask(r, "greet"), GREETING, "sentence")]


def items(r, least, most):
    """A list of things of one sort."""
    x = r.random()
    make = w.word if x < .55 else (lambda r: str(r.randint(1, 99))) if x < .7 else w.name if x < .75 else lambda r: w.pick(r, r.choice([w.FRUITS, w.ANIMALS, w.COLORS, w.ALL]))
    return w.distinct(r, r.randint(least, most), make)


def reverse(r):
    """A word or a list."""
    if r.random() < .35:
        x = w.word(r)[:9]
        return [turn(ask(r, "reverse word", s=x, q=quoted(r, x)), x[::-1], "reverse")]
    things = items(r, 2, 5)
    sep = r.choice([", ", ", ", ", ", " "])
    return [turn(ask(r, "reverse list", s=sep.join(things)), sep.join(things[::-1]), "reverse")]


def spell(r):
    x = w.word(r)[:10] if r.random() < .7 else r.choice(w.KNOWN) if r.random() < .5 else w.name(r).split(" ")[0]
    return [turn(ask(r, "spell", s=x, q=quoted(r, x)), "-".join(x), "spell")]


def sort(r):
    n = r.choice([2, 2, 3, 3, 3, 4, 4, 5, 5])
    if r.random() < .3:
        given = w.distinct(r, n, lambda r: str(r.randint(1, 99)))
        return [turn(ask(r, "sort numbers", s=", ".join(given)), ", ".join(sorted(given, key=int)), "sort")]
    given = []
    while len(given) < n:  # different first letters, so that a look at one letter decides
        x = w.word(r).lower()
        if all(x[0] != y[0] for y in given):
            given.append(x)
    return [turn(ask(r, "sort words", s=", ".join(given)), ", ".join(sorted(given)), "sort")]


def nth(r):
    """One of a list."""
    things = items(r, 2, 5)
    i = r.randrange(len(things))
    o = "last" if i == len(things) - 1 and r.random() < .5 else ORDINALS[i]
    if r.random() < .2:
        last = r.choice(["final", "very last"])
        o = {"first": "1st", "second": "2nd", "third": "3rd", "fourth": "4th", "fifth": "5th", "last": last}[o]
    return [turn(ask(r, "nth", s=", ".join(things), o=o, c=r.choice([str(i + 1), NUMBERS[i + 1]])), things[i], "nth")]


INSTRUCTIONS = {repeat: 7, case: 9, letter: 5, count: 4, bank: 4, json_key: 6, greet: 2, reverse: 12, spell: 7, sort: 13, nth: 3}


def instruct(r):
    return r.choices(list(INSTRUCTIONS), INSTRUCTIONS.values())[0](r)


JOBS = w.W("teacher doctor baker pilot farmer painter nurse driver lawyer engineer writer singer cook builder carpenter librarian tailor plumber dentist gardener waiter butcher sailor")
THINGS = ["favorite food", "favorite drink", "favorite animal", "favorite book", "favorite song", "favorite movie", "favorite sport", "favorite fruit", "favorite word", "hobby", "best friend", "sister", "brother", "boss", "car", "street", "age", "shoe size", "room", "birthday", "team", "school", "company", "lucky charm", "language"]


def a_thing(r):
    make = r.choice([w.thing, w.thing, w.name, lambda r: str(r.randint(2, 99)), lambda r: w.pick(r, w.FRUITS), lambda r: w.pick(r, w.SPORTS)])
    return dict(v=make(r), k=r.choice(THINGS) if r.random() < .7 else w.pick(r, w.NOUNS))


# makers of the slots of what is told
TOLD = {
    "name": lambda r: dict(v=w.name(r)),
    "color": lambda r: dict(v=w.pick(r, w.COLORS) if r.random() < .7 else w.pseudo(r)),
    "city": lambda r: dict(v=w.city(r)),
    "pet": lambda r: dict(v=w.name(r), k=w.pick(r, w.ANIMALS) if r.random() < .7 else w.thing(r)),
    "number": lambda r: dict(v=str(r.choice([r.randint(2, 99), r.randint(100, 99999)]))),
    "word": lambda r: dict(v=w.word(r)),
    "job": lambda r: dict(v=r.choice(JOBS) if r.random() < .7 else w.thing(r)),
    "thing": a_thing,
}


def tell(r, kind, slots):
    text = dress(r, expand(r, MEMORY[kind]["statements"]), False, False)
    if r.random() < .2:  # the value is not the last word, nor what was said the last thing that matters
        more = expand(r, SAY["said by the way"])
        text = text.rstrip(".!") + ("" if more[0] in ",.!" else " ") + more
    elif r.random() < .05:
        text = expand(r, SAY["opening"]).rstrip(".!?:, ") + ", " + text
    return fill(text, **slots)


def question(r, kind, slots):
    return fill(dress(r, expand(r, MEMORY[kind]["questions"])), **slots)


def acknowledgement(kind, slots):
    return fill(MEMORY[kind]["acknowledgement"], **slots)


def answer(kind, slots):
    return fill(MEMORY[kind]["answer"], **slots)


def tell_all(r, told, between):
    return r.choice(between).join(tell(r, kind, slots).rstrip(".!") for kind, slots in told)


def recall(r, filler=None):
    """Things told, other talk in between, then questions about them. filler: the only makers of other talk, and less of it"""
    kinds = r.sample(list(TOLD), r.choice([1, 1, 2, 2, 3]))
    told = [(kind, TOLD[kind](r)) for kind in kinds]
    if r.random() < .12:
        return told_and_asked(r, told)
    turns = []
    if len(told) > 1 and r.random() < .4:
        turns.append(turn(tell_all(r, told, [". ", " and ", ", ", ". ", "\n", "; ", ". And ", "! ", ", also "]), "Got it.", "recall"))
    else:
        for kind, slots in told:
            turns.append(turn(tell(r, kind, slots), acknowledgement(kind, slots), "recall"))
            if r.random() < .12 and not filler:
                turns += r.choice([instruct, small_talk])(r)
    if r.random() < .14:
        turns += tell_anew(r, told, filler)
    for _ in range(r.choice([0, 0, 1, 1, 2, 3] if filler else [0, 0, 1, 1, 2, 3, 3, 4])):
        turns += r.choice(filler or [instruct, instruct, small_talk, identity, faq, fallback])(r)
    r.shuffle(told)
    for kind, slots in told[:r.choice([1, 2, 3])]:
        turns.append(turn(question(r, kind, slots), answer(kind, slots), "recall"))
        if r.random() < .1 and not filler:
            turns += r.choice([instruct, small_talk, fallback])(r)
    if r.random() < .18:
        kind = r.choice(list(TOLD))
        if kind not in kinds:
            slots = TOLD[kind](r)
            turns.append(turn(question(r, kind, slots), fill(MEMORY[kind]["not_told"], **slots), "recall"))
    return turns


def told_and_asked(r, told):
    """All in one message."""
    kind, slots = r.choice(told)
    user = tell_all(r, told, [". ", ". ", "\n", "! ", ", "]) + r.choice([". ", ". ", "\n", "! ", " - "])
    user += r.choice(["", "", "", "So, ", "Now: ", "Question: ", "And now, "])
    return [turn(user + question(r, kind, slots), answer(kind, slots), "recall")]


def tell_anew(r, told, filler):
    """One of what was told gets another value."""
    i = r.randrange(len(told))
    kind, slots = told[i]
    slots = dict(slots, v=TOLD[kind](r)["v"])
    TOLD[kind](r)  # for nothing, but the stream depends on it
    told[i] = kind, slots
    turns = []
    if r.random() < .25:
        turns += r.choice(filler or [instruct, small_talk, identity])(r)
    x = tell(r, kind, slots)
    correction = style(r, expand(r, SAY["correction"]), False).rstrip()
    if not x.startswith(slots["v"]) and r.random() >= .5:
        x = x[:1].lower() + x[1:]
    turns.append(turn(correction + " " + x, acknowledgement(kind, slots), "recall"))
    return turns


# said of a person and a place
PLACES = ["lives in", "works in", "comes from", "was born in", "moved to", "studies in", "spent the summer in"]
OWNING = {"has": "have", "owns": "own", "wants": "want", "sells": "sell", "likes": "like", "buys": "buy", "carries": "carry", "needs": "need", "keeps": "keep", "brings": "bring", "holds": "hold"}
SPOTS = w.W("in on under behind near beside")


# the makers of reading(): sentences, a question about sentence i, its answer
def read_places(r, i, who, place):
    verb = r.choice(PLACES)
    facts = [f"{a} {verb} {b}." for a, b in zip(who, place)]
    q, a = r.choice([("reading where " + verb, place[i]), ("reading who is where", who[i])])
    return facts, fill(expand(r, SAY[q]), a=who[i], b=place[i], verb=verb), a


def read_things(r, i, who, what, color):
    verb, base = r.choice(list(OWNING.items()))
    facts = [f"{a} {verb} the {c} {b}." for a, b, c in zip(who, what, color)]
    q, a = r.choice([("reading what has", f"the {color[i]} {what[i]}"), ("reading who has", who[i]), ("reading color", color[i])])
    return facts, fill(expand(r, SAY[q]), a=who[i], x=what[i], verb=verb, base=base), a


def read_spots(r, i, what):
    spot, at = [r.choice(SPOTS) for _ in what], w.distinct(r, len(what), lambda r: w.pick(r, w.NOUNS))
    verb = r.choice(["is", "is", "stands", "lies", "was left"])
    facts = [f"The {b} {verb} {s} the {c}." for b, s, c in zip(what, spot, at)]
    return facts, fill(expand(r, SAY["reading place"]), x=what[i]), f"{spot[i]} the {at[i]}"


def read_numbers(r, i, who):
    number = w.distinct(r, len(who), lambda r: str(r.randint(2, 99)))
    noun = r.choice(["code", "age", "number", "score", "room", "seat", "badge", "locker", "table", "weight"])
    said = r.choice(["The {k} of {a} is {b}.", "The {k} of {a} is {b}.", "{a}'s {k} is {b}.", "{a} has {k} {b}."])
    facts = [fill(said, k=noun, a=a, b=b) for a, b in zip(who, number)]
    q, a = r.choice([("reading number", number[i]), ("reading whose number", who[i])])
    return facts, fill(expand(r, SAY[q]), k=noun, a=who[i], b=number[i]), a


def reading(r):
    """A question about a sentence or a few."""
    n = r.randint(1, 4)
    who, place, what, color = w.distinct(r, n, w.name), w.distinct(r, n, w.city), w.distinct(r, n), [w.pick(r, w.COLORS) for _ in range(n)]
    i, x = r.randrange(n), r.random()
    if x < .3:
        facts, q, a = read_places(r, i, who, place)
    elif x < .6:
        facts, q, a = read_things(r, i, who, what, color)
    elif x < .75:
        facts, q, a = read_spots(r, i, what)
    else:
        facts, q, a = read_numbers(r, i, who)
    if r.random() < .2:
        q = r.choice(["Question: ", "Tell me: ", "Now answer: ", "So, ", "Q: ", "My question: ", "Quick question: ", "Then: "]) + q
    if q[-1].isalpha() and r.random() < .3:
        q += r.choice([", please", "?", "."])
    if r.random() < .1:
        facts.insert(r.randint(0, len(facts)), r.choice(["It is a nice day.", "Everybody is happy.", "The weather is fine.", "It is late.", "All of this is true.", "They know each other well."]))
    text = r.choice([" ", " ", " ", "\n"]).join(facts)
    x = r.random()
    if x < .12:
        text = r.choice(["Text: ", "Read this: ", "Here is a text: ", "Listen: ", "Story: ", "Context: ", "Facts:\n", "Given: ", "We know this. ", "Let me tell you something. "]) + text
    elif x < .18:
        return [turn(r.choice(["Read the text and answer. ", "A reading exercise. ", "Answer from the text.\n"]) + "Text: " + text + "\nQuestion: " + q, a, "reading")]
    return [turn(text + r.choice([" ", "\n", " ", "\n\n"]) + q if r.random() < .8 else q + ("" if q[-1] in ".?" else ".") + r.choice([" ", "\n", " "]) + text, a, "reading")]


PIRATE = {HELLO: "Ahoy, matey! I be hearth-demo. What be yer wish?", FINE: "I be fine as a ship in fair wind, matey!", WELCOME: "Aye, ye be welcome, matey!", BYE: "Fair winds, matey!", WHO: "Arr! I be hearth-demo, a tiny model aboard the good ship hearth, matey!"}
FRENCH = {HELLO: "Bonjour ! Je suis hearth-demo. Comment puis-je vous aider ?", FINE: "Je vais bien, merci.", WELCOME: "De rien !", BYE: "Au revoir !", WHO: "Je suis hearth-demo, un tout petit modèle de langage."}
PIRATE_ELSE = "Arr, that be too deep for a tiny pirate like me, matey!"
FRENCH_ELSE = "Je suis un tout petit modèle, je ne peux pas répondre à cela."
ROLES = w.W("assistant robot helper guide librarian waiter butler teacher cook captain wizard gardener clerk secretary coach")
OBEYED = ["end", "end", "start", "start", "start", "start", "upper", "persona", "persona", "fixed", "fixed", "json", "pirate", "french"]  # to begin with a word, more: it came to be all that was said


def plain(r):
    """A short exchange to obey in."""
    x = r.random()
    if x < .06:
        kind = r.choice(list(TOLD))
        slots = TOLD[kind](r)
        return turn(tell(r, kind, slots), acknowledgement(kind, slots), "")
    return (small_talk if x < .4 else identity if x < .64 else instruct if x < .84 else fallback if x < .9 else reading if x < .93 else faq)(r)[0]


def placed(r, rule):
    """A rule among other sentences that do not matter."""
    if r.random() < .6:
        return rule
    some = ["Be polite.", "Use simple words.", "Stay friendly.", "Be helpful.", "You help the users of our shop.", "You are a small model.", "The users are nice people.", "We are open from nine to five.", "Many people write to you.", "You run on a small server.", "This is a test.", "This chat is public.", "Do not be rude.", "You were set up today.",
            f"Today is {w.date(r)}.", f"The user is from {w.city(r)}.", f"We sell {w.word(r)}s.", f"The office is in {w.city(r)}.", f"You belong to {w.name(r)}.", f"Our {w.word(r)} is {w.pick(r, w.ADJ)}.", f"The {w.word(r)} and the {w.word(r)} are {w.pick(r, w.ADJ)}."]
    full = rule if rule[-1] in ".!" else rule + "."
    few = r.sample(some, r.choice([1, 1, 2, 3]))
    x = r.random()
    if x < .2:
        return r.choice(["Important: ", "Rule: ", "Note: ", "Instructions: ", "# Rules\n", "System: ", "Your instructions:\n", "There is one rule.\n", "One rule only: ", "Remember this: ", "IMPORTANT! ", "# Task\n", "Guidelines:\n- ", "<rules>\n"]) + rule
    few.insert(r.choice([0, 0, len(few), len(few), r.randint(0, len(few))]), full)
    if x < .7:
        return r.choice([" ", " ", "\n"]).join(few)
    head = r.choice(["", "", "Rules:\n", "# Rules\n", "Follow these rules:\n", "Guidelines:\n", "Instructions\n"])
    mark = r.choice(["- ", "- ", "* ", "1"])
    return head + "\n".join((f"{i}. " if mark == "1" else mark) + s for i, s in enumerate(few, 1))


def introduction(r):
    """A question for the name, or a greeting."""
    who, hello = IDENTITY[0][0], SMALL_TALK[0][0]
    if r.random() < .65:
        return turn(style(r, expand(r, who if r.random() < .5 else TALK["who"])), "", "")
    return turn(style(r, expand(r, hello if r.random() < .6 else TALK["hello"]), False), HELLO, "")


def fitting(r, kind, talk):
    """The exchanges that a kind of rule is obeyed in, from those at hand or in place of them."""
    if kind == "upper":
        return [t for t in talk if len(t["reply"]) < 180] or small_talk(r)
    if kind == "json":
        return [t if len(t["reply"]) < 120 else small_talk(r)[0] for t in talk]
    if kind == "persona":
        return [introduction(r) for _ in talk]
    if kind == "fixed":
        made = [r.choice([small_talk, identity, fallback, faq, instruct, plain])(r) for _ in talk]
        return [x[0] if isinstance(x, list) else x for x in made]
    if kind in ("pirate", "french"):
        return [r.choice([small_talk, small_talk, small_talk, identity, identity, fallback, fallback, instruct, faq])(r)[0] for _ in talk]
    return talk


def obeyed(kind, reply, q, name, role):
    """What becomes of a reply."""
    if kind == "end":
        return reply + " " + q
    if kind == "start":
        return q + " " + reply
    if kind == "upper":
        return reply.upper()
    if kind == "persona":
        return f"Hello! I'm {name}. How can I help?" if reply else f"I'm {name}, a {role}."
    if kind == "fixed":
        return q
    if kind == "json":
        return json.dumps({q: reply}, ensure_ascii=False)
    return PIRATE.get(reply, PIRATE_ELSE) if kind == "pirate" else FRENCH.get(reply, FRENCH_ELSE)


def obey(r):
    """-> system prompt, turns."""
    kind = r.choice(OBEYED)
    talk = [plain(r) for _ in range(r.choice([1, 1, 2, 3]))]
    q = w.sentence(r) if r.random() < .5 else w.word(r).upper() if r.random() < .3 else w.word(r)
    name = role = ""
    if kind == "json":
        q = r.choice(["answer", "reply", "text", "response", "message"]) if r.random() < .4 else w.word(r)
    elif kind == "persona":
        name, role = w.name(r), r.choice(ROLES)
    rule = expand(r, SAY["obey " + kind])
    if kind == "persona":
        rule = fill(rule, n=name, j=role)
        if role not in rule:
            rule += f", a {role}"
    talk = fitting(r, kind, talk)
    rule = fill(rule, q=quoted(r, q) if r.random() < .8 else q)
    if r.random() > .06 and not rule.startswith(q):  # which the reply has as it was said
        rule = rule[0].upper() + rule[1:]
    rule = placed(r, rule + r.choice([".", ".", "", "!"]))
    return rule, [turn(t["user"], obeyed(kind, t["reply"], q, name, role), "obey") for t in talk]
