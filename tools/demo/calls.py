"""Conversations with tools. Tools come from schemes (look up, set, send, move, ...) with any noun and any names of
functions and parameters, so that only what the prompt says tells which tool and which arguments are meant.

The files in schemes/ have the schemes (see Scheme), tools.json the names of parameters, what is said with tools that have no scheme,
and the words that mean nearly the same. The slots: {N} the noun, {P} its plural, {v} the verb, {G} -ing, {D} -ed, {S} -s,
{V} and {T} verb and noun with a capital, {A} the parameters, {0} {1} {2} the values of a scheme's parameters; {w} and {x}
nouns, {j} an adjective and {p} a name that have nothing to do with the call.
"""
import functools
import json
import re

import words as w
from chat import fallback, faq, identity, joined, load, parts, small_talk, turn
from grammar import expand, fill, style
from tasks import NUMBERS, instruct, recall, repeat

NO_TOOL = "None of my tools can do that."
DATA = load("tools.json")
SAY = joined(DATA["say"])
BETWEEN = DATA["between"]  # what is between several requests in one message; SAY has frames for two and three
CHOICES = DATA["choices"]
BEFORE = DATA["before_names"].split(" ")
EXTRA = {k: v.split("|") for k, v in DATA["extra"].items()}  # names of a parameter for whether something comes with the rest, and what is said
SWITCHED = [("off", "on"), ("false", "true"), ("false", "true"), ("no", "yes")]
SWITCHED_OFF = [no for no, _ in SWITCHED]
VERBS_INSTEAD = {verb: others.split(" ") for verb, others in DATA["verbs_instead"].items()}  # what a name may have for the verb of the request


def numbered(groups):
    """The number of the last group that a word is in."""
    return {word: i for i, group in enumerate(groups) for word in group.split(" ")}


VERB_GROUP = numbered(DATA["verbs_alike"])
NOUN_GROUP = numbered(DATA["nouns_alike"])  # near each other in meaning: one is not a safe stranger where another has a tool
# kinds of parameters: type is JSON's, names the usual ones, rare abbreviations and synonyms, called what a description
# calls it, unnamed how the value is said without the parameter's name
KINDS = DATA["kinds"]
KIND_NAMES = list(KINDS)
USUAL, RARE, CALLED = ({kind: k[field].split(" ") for kind, k in KINDS.items()} for field in ("names", "rare", "called"))
# a value is said as it is made unless Param.value() says otherwise
MAKE = {
    "city": w.city, "person": w.name, "email": w.email, "path": w.path, "folder": w.folder, "url": w.url, "word": w.thing, "code": w.code, "date": w.date, "time": w.time, "int": w.integer,
    "text": lambda r: w.sentence(r) if r.random() < .9 else w.words(r, 5, 8),
    "number": lambda r: w.integer(r) if r.random() < .7 else round(r.uniform(1, 99), 1),
    "bool": lambda r: r.random() < .5,
    "color": lambda r: w.pick(r, w.COLORS),
    "language": lambda r: w.pick(r, w.LANGUAGES) if r.random() < .7 else w.pseudo(r).capitalize(),
    "currency": lambda r: w.pick(r, w.CURRENCIES) if r.random() < .7 else r.choice([w.pseudo(r) + "s", w.pseudo(r), w.pseudo(r)[:3].upper()]),
    "weekday": lambda r: r.choice(w.DAYS) if r.random() < .9 else r.choice(["today", "tomorrow", "tonight"]),
    "command": w.command, "sql": w.sql,
}
# kinds whose values can be taken for each other
FAMILY = {"word": "text", "text": "text", "person": "text", "city": "text", "code": "text", "language": "text", "currency": "text", "command": "text", "sql": "text", "path": "path", "folder": "path", "int": "number", "number": "number"}
SLOT = re.compile(r"\{(\d)\}")
A_NOUN = re.compile(r"\b([aA]) \{N\}")
LATER = "this morning|this evening|tonight|tomorrow|on Sunday|next week|these days|later|at the moment|as usual|again|if possible|by noon|over there|soon|for once|this time".split("|")  # said after a value
BY_VALUE = ("person", "path", "folder", "url", "code", "email", "city", "text", "word")  # kinds whose values are said next to a noun
PAIRS = "person email|person time|person date|person text|person int|person city|person code|person word|text language|text language|text color|path text|email text|text path|url path|city date|city time|word int|word date|word color|path folder|code date|text weekday|text currency".split("|")  # kinds that requests say side by side
TWINS = "word word person city color path text code date time int int number email language folder".split()  # kinds of two parameters that only their names tell apart
SAID_BY_KIND = set(KIND_NAMES) - {"word", "choice", "bool"}  # kinds whose values tell that a name of the kind means them
BY_KIND, STRANGE = .2, .05  # shares of the parameters with a role that have a name of their kind instead, or one that tells nothing
NATURAL = .55  # share of the conversations whose tools are what their scheme says, as those of programs are
TOLD = .94  # share of the requests for a tool that say a word of its line, and of those for none that say no word of any
MOST_TRIES = 16
VAGUE_VERBS = ("get", "set", "make", "do", "new", "add", "start", "show", "open", "check", "find")  # say nothing without a noun


class Scheme:
    """A kind of tool. verbs: for its name; kinds: of its parameters, with ? one that may be missing; nouns: some that suit;
    roles: names for each parameter by what it is for, where those at the same place go together; forced: they have no
    other names; describes: descriptions of such a tool; values: by the number of a parameter, of a word some that suit, with _
    for a blank, of a choice some enumerations, of a bool the ways to say "false" and "true", with | between."""

    def __init__(self, verbs, kinds, nouns, requests, roles=(), forced=False, describes=(), values={}):
        self.verbs, self.kinds, self.nouns = verbs.split(), kinds.split(), nouns.split()
        self.requests, self.describes = "|".join(requests), "|".join(describes)
        self.roles = [x.split() for x in roles] if roles else [[]] * len(self.kinds)
        self.forced = forced
        split = {"word": lambda v: v.split(), "choice": lambda v: [x.split() for x in v], "bool": lambda v: [v[x].split("|") for x in ("false", "true")]}
        self.values = [split[k.rstrip("?")](values[str(i)]) if str(i) in values else None for i, k in enumerate(self.kinds)]
        self.says_verb = "{v}" in self.requests or "{V}" in self.requests
        self.says_noun = "{N}" in self.requests


SCHEMES = [Scheme(**s) for part in parts("schemes") for s in load(part)]
SWITCH = next(s for s in SCHEMES if s.kinds == ["bool"])  # told of in few words, and often asked for
STARTS = {x for s in SCHEMES for x in re.findall(r"\b[A-Z][a-z]+\b", s.requests)} - set(w.FIRST)


def first_part(name):
    return name.split("_")[0]


def camel(name):
    first, *others = name.split("_")
    return first + "".join(x.capitalize() for x in others)


def natural_name(r, name, noun):
    """name most often, else with the noun before it."""
    return noun.split(" ")[-1] + "_" + name if noun and r.random() < .1 and noun not in name else name


def name_by_role(r, role, kind, usual, noun):
    x = r.random()
    if x < .55 or "_" in role:
        return role
    if x < .75 and kind not in ("int", "number"):
        return role + "_" + first_part(usual)
    return (noun if noun and x < .88 else w.thing(r)) + "_" + role


def name_by_kind(r, x, kind, usual, noun):
    """x, from .07 to 1, decides how."""
    if x < .38:
        return usual
    if x < .5:
        return w.thing(r) + "_" + first_part(usual)
    if x < .7:
        return (noun or w.thing(r)) + "_" + usual
    if x < .8:
        return r.choice(BEFORE) + "_" + usual
    rare = r.choice(RARE[kind])
    return noun + "_" + rare if x > .94 and noun else rare


class Param:
    def __init__(self, r, kind, role="", noun="", clear=False, values=None, natural=False):
        """role: a name that says what the parameter is for; clear: the name must say what kind of value it is; values: a scheme's;
        natural: the name is the role or one that is usual"""
        self.values, self.kind, self.type, self.clear, self.natural = values, kind, KINDS[kind]["type"], True, natural
        usual = r.choice(USUAL[kind])
        x = r.random()
        if natural:
            self.name = natural_name(r, role or usual, noun)
        elif role and (clear or x < .85):
            self.name = name_by_role(r, role, kind, usual, noun)
        elif x < .07 and not clear:
            self.name, self.clear = w.thing(r), False
        else:
            self.name = name_by_kind(r, x, kind, usual, noun)
        self.name = "_".join(with_small(r, self.name.replace(" ", "_").split("_"), 0 if natural else .05))
        self.enum, self.extra = None, ""
        if kind == "choice":
            x = r.random()
            self.enum = r.choice(values) if values and x < .8 else r.choice(CHOICES).split(" ") if x < .6 or values else w.distinct(r, r.randint(2, 4))
        if not natural and r.random() < .4 and "_" in self.name:
            self.name = camel(self.name)

    def value(self, r, quote=True, own=False):
        """-> text in the request, JSON value. quote: a text is in quotes, always; own: the request says the parameter's name"""
        if self.enum:
            v = r.choice(self.enum)
            return v, v
        v = r.choice(self.values).replace("_", " ") if self.kind == "word" and self.values and r.random() < (.85 if self.natural else .65) else MAKE[self.kind](r)
        if self.kind == "bool" and self.values and not own:
            return r.choice(self.values[v]), v
        if self.kind in ("command", "sql"):
            return w.as_code(r, v), v
        if self.kind == "bool":
            return r.choice(SWITCHED)[v], v
        if self.kind == "text":
            return (v if not quote else w.quoted(r, v)), v
        if self.kind == "int" and v <= 10 and r.random() < .2:
            return NUMBERS[v], v
        if self.kind in ("path", "word", "code") and r.random() < .08:
            return w.quoted(r, v), v
        return str(v), v

    def label(self, r, others=(), noun=""):
        """The name as a request says it; now and then a part of it that no other name has."""
        parts = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", self.name).lower().split("_")
        part = r.choice([parts[0], parts[-1]])
        if len(parts) > 1 and r.random() < .35 and len(part) > 2 and part not in noun.lower() and all(part not in o.name.lower() for o in others if o is not self):
            return part
        return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", self.name).replace("_", " ").lower() if r.random() < .85 else self.name


def unrelated(r):
    """What fills the slots of a story."""
    return dict(w=w.pick(r, w.NOUNS) if r.random() < .6 else w.thing(r).lower(), x=w.pick(r, w.NOUNS), j=w.pick(r, w.ADJ), p=w.pick(r, w.FIRST))


def told_by_kind(kind, kinds):
    """Whether a name of the kind can mean one parameter alone; with both kinds of numbers it is not asked."""
    return kind in SAID_BY_KIND and kinds.count(kind) == 1 and not {"int", "number"}.issubset(kinds)


def families(kinds):
    return {FAMILY.get(k, k) for k in kinds}


def with_small(r, parts, share):
    """Some of these parts of names with a word among them that holds sentences together: it stands for nothing, but is copied."""
    if r.random() >= share:
        return parts
    at = r.randint(0, len(parts))
    return parts[:at] + [r.choice(w.JOINED)] + parts[at:]


def spelled(r, parts):
    """A function name in one of the usual styles."""
    x = r.random()
    if x < .6:
        return "_".join(parts)
    if x < .75:
        return parts[0] + "".join(p.capitalize() for p in parts[1:])
    if x < .85:
        return "".join(p.capitalize() for p in parts)
    if x < .95:
        return "-".join(parts)
    return "mcp__" + w.word(r) + "__" + "_".join(parts)


@functools.lru_cache(None)
def plural(noun):
    if noun in ("news", "blinds", "info", "scissors"):
        return noun
    return noun[:-1] + "ies" if noun[-1] == "y" and noun[-2:-1] not in "aeou" else noun + ("es" if noun.endswith(("s", "x", "z", "ch", "sh")) else "s")


@functools.lru_cache(None)
def stem(verb):
    """What -ing and -ed are put to."""
    if verb == "lookup":
        return verb
    if verb.endswith("e") and not verb.endswith(("ee", "ye", "oe")):
        return verb[:-1]
    doubled = re.fullmatch(r"[^aeiou]*[aeiou][bdglmnprt]", verb) or verb in ("unwrap", "reset")  # k and ck stay single
    return verb + verb[-1] if doubled else verb


@functools.lru_cache(None)
def gerund(verb):
    return "looking up" if verb == "lookup" else stem(verb) + "ing"


IRREGULAR = {"send": "sent", "write": "written", "make": "made", "buy": "bought", "find": "found", "get": "fetched", "read": "read", "set": "set", "run": "run", "reset": "reset", "freeze": "frozen", "split": "split", "feed": "fed", "show": "shown"}


@functools.lru_cache(None)
def participle(verb):
    if verb in IRREGULAR:
        return IRREGULAR[verb]
    return verb[:-1] + "ied" if verb[-1] == "y" and verb[-2:-1] not in "aeou" else stem(verb) + "ed"


def alike(verb, other):
    return VERB_GROUP.get(verb, verb) == VERB_GROUP.get(other, other)


def mentions(text, verbs):
    return any(re.search(r"\b" + re.escape(v) + r"\b", text) for v in verbs)


class Tool:
    def __init__(self, r, scheme=None, named=True, natural=False):
        """natural: noun and names are the scheme's"""
        x, self.natural, self.words_of_line = r.random(), natural, None
        self.scheme = scheme or (r.choice(SCHEMES) if natural or r.random() < .77 else SWITCH if r.random() < .12 else None)
        if natural or self.scheme and r.random() < .7:
            self.noun = r.choice(self.scheme.nouns)
        else:
            self.noun = w.pick(r, w.NOUNS) if x < .4 else w.pick(r, w.SUBJECTS) if x < .7 else w.thing(r).lower()
            if r.random() < .14:
                self.noun = w.thing(r).lower() + " " + self.noun
        if self.scheme:
            self.verb = r.choice(self.scheme.verbs)
            self.add_params(r, self.scheme.kinds, self.scheme.roles, self.scheme.values, r.randrange(720), self.scheme.forced)
        else:
            self.verb = w.pick(r, w.VERBS) if r.random() < .7 else w.thing(r).lower()
            kinds = [r.choice(KIND_NAMES) + ("?" if r.random() < .3 else "") for _ in range(r.choice([0, 1, 1, 2, 2, 3]))]
            look = r.random()
            if look < .18:
                kinds[:0] = [r.choice(TWINS)] * 2
            elif look < .36:
                kinds = r.choice(PAIRS).split(" ")
            elif look < .5:
                kinds[:1] = ["bool"]
            self.add_params(r, kinds[:3], [[]] * len(kinds[:3]), [None] * len(kinds[:3]))
            if look < .18:
                self.name_twins(r)
            elif look < .31:
                self.name_pair(r)
            elif .36 <= look < .5:
                self.add_extra(r)
        self.first_verb = self.verb
        if named:
            self.label(r)

    def add_params(self, r, kinds, roles, values, place=0, forced=False):
        """place: of the names to take in the roles, counted round"""
        self.optional = [x.endswith("?") for x in kinds]
        kinds = [x.rstrip("?") for x in kinds]
        self.params, several_texts = [], sum(KINDS[k]["type"] == "string" and k != "choice" for k in kinds) > 1
        odd = False  # whether a name tells nothing: those of the others do
        by_role = r.random() < .95  # a value and its twin of the same kind both have a name that tells, or neither has
        for kind, names, some in zip(kinds, roles, values):
            role = names[place % len(names)] if names else ""
            if role and told_by_kind(kind, kinds) and not forced:
                x = r.random()
                if x < BY_KIND:
                    role = r.choice(RARE[kind])
                elif x < BY_KIND + STRANGE and not odd:
                    role, odd = w.thing(r).lower(), True
            clear = forced or by_role if role else several_texts and any(not q.clear for q in self.params)
            p = Param(r, kind, role if by_role or forced or self.natural else "", self.noun, clear, some, self.natural)
            if role and not by_role and not forced and not self.natural:
                p.name, p.clear = w.thing(r), False
            self.params.append(p)
        seen = set()
        for p in self.params:
            while p.name in seen:
                p.name += "_" + w.word(r)
            seen.add(p.name)
        if self.natural and r.random() < .3:
            for p in self.params:
                p.name = camel(p.name)

    def name_twins(self, r):
        """The names of the first two parameters differ in the first word alone."""
        last = r.choice(USUAL[self.params[0].kind]) if r.random() < .6 else w.thing(r)
        make = camel if r.random() < .5 else str
        for p, first in zip(self.params, w.distinct(r, 2, w.thing)):
            name = make(first + "_" + last)
            if all(name != q.name for q in self.params):
                p.name, p.clear = name, True

    def name_pair(self, r):
        """The names of the parameters begin with one word, and only the kind of the value tells them apart."""
        make, first = camel if r.random() < .5 else str, self.noun.split(" ")[-1] if r.random() < .6 else w.thing(r).lower()
        names = [make(first + "_" + first_part(r.choice((USUAL if r.random() < .75 else RARE)[p.kind]))) for p in self.params]
        if len(set(names)) == len(names):
            for p, name in zip(self.params, names):
                p.name, p.clear = name, True

    def add_extra(self, r):
        """The first parameter says whether something comes with the rest."""
        p = self.params[0]
        p.extra, p.clear = w.thing(r).lower(), True
        name = r.choice(EXTRA["names"]) + "_" + p.extra.replace(" ", "_")
        p.name = camel(name) if r.random() < .4 else name

    def label(self, r, plain=False):
        """Name and description. plain: verb and noun, nothing else"""
        free = self.scheme and not self.scheme.says_verb
        verb = self.verb
        if free and r.random() < .35 and verb in VERBS_INSTEAD and not plain:
            verb = r.choice(VERBS_INSTEAD[verb])
        if self.natural:
            x = r.random() * .74 if r.random() < .85 else r.choice([.86, .9, .97])
            self.name = spelled(r, self.name_parts(r, x, verb))[:64]
        else:
            self.name = spelled(r, with_small(r, self.name_parts(r, .3 if plain else r.random(), verb), .12))[:64]
        self.text = self.description(r, self.verb if not free or verb == self.verb or r.random() < .6 else verb)

    def name_like(self, r, other):
        """A name that begins with the letters another's name begins with: who looks only for these copies the wrong one."""
        mine, theirs = (re.split(r"[_-]|(?<=[a-z])(?=[A-Z])", t.name) for t in (self, other))
        if mine[0] != "mcp":
            self.name = spelled(r, [(theirs[0][:r.randint(2, 4)] + w.pseudo(r)).lower()] + mine[1:])[:64]

    def name_parts(self, r, x, verb):
        """x, from 0 to 1, decides how."""
        noun = self.noun.split(" ")
        if x < .56:
            return [verb] + noun
        if x < .64:
            return noun
        if x < .74:
            return noun + [verb]
        if x < .79:
            return [w.word(r), verb] + noun
        if x < .82:
            return noun + [gerund(verb).replace(" ", "_")]
        if x < .85:
            return [gerund(verb).replace(" ", "_")] + noun
        if x < .89:
            return noun + [stem(verb) + "er"]
        if x < .91:
            return ["do", verb] + noun
        if x < .935:
            return [verb]
        if x < .945:
            return [verb, "the"] + noun
        if x < .965:
            return noun + [r.choice("tool service api manager v2 action helper request control".split(" "))]
        if x < .985:
            return [verb] + plural(self.noun).split(" ")
        return [verb] + noun + [r.choice("info data by for now item".split(" "))]

    def description(self, r, verb):
        if self.scheme and self.scheme.describes and r.random() < (.92 if self.natural else .65):
            grammar = self.scheme.describes
        else:
            grammar = SAY["description by parameter" if self.params and r.random() < .22 else "description"]
        text = self.with_article(expand(r, grammar))
        text = fill(text, K=r.choice(CALLED[self.params[0].kind]) if self.params else "", **self.words(text, verb.replace("_", " ")))
        if r.random() < .8:
            text = text[:1].upper() + text[1:]
        if r.random() < (.04 if self.natural else .15):
            text += expand(r, SAY["description end"]).replace("{x}", w.word(r))
        return text

    def with_article(self, text):
        """text with an where the noun needs it."""
        return A_NOUN.sub(r"\1n {N}", text) if self.noun[0] in "aeio" else text

    def words(self, text, verb):
        """The slots of text that verb and noun fill."""
        out = dict(N=self.noun, T=self.noun.capitalize(), v=verb, V=verb.capitalize())
        for slot, make in (("G", gerund), ("D", participle), ("S", plural)):
            if "{" + slot in text:
                out[slot] = make(verb)
        if "{P" in text:
            out["P"] = plural(self.noun)
        return out

    def fill(self, text, **values):
        text = self.with_article(text)
        return fill(text, **self.words(text, self.verb), **values)

    def schema(self, r):
        """The tool as a client sends it."""
        props = {p.name: {"type": p.type, **({"enum": p.enum} if p.enum else {})} for p in self.params}
        params = {"type": "object", "properties": props}
        required = [p.name for p, optional in zip(self.params, self.optional) if not optional]
        if required and r.random() < .85:
            params["required"] = required
        return {"type": "function", "function": {"name": self.name, "description": self.text, "parameters": params}}

    def meant(self, said, tools, kinds):
        """Whether nothing but this tool can be meant by what is said with values of these kinds."""
        if len(tools) < 2:
            return True
        said = said.lower()
        noun_said = self.noun.lower() in said or plural(self.noun).lower() in said
        return not any(self.mistaken_for(o, said, noun_said, kinds) for o in tools if o is not self)

    def mistaken_for(self, other, said, noun_said, kinds):
        if noun_said and other.noun != self.noun and other.noun.lower() not in said:
            return False
        fits = families(kinds) <= families(p.kind for p in other.params) and other.optional.count(False) <= len(kinds)
        if not fits and self.scheme:
            return False
        if self.scheme and other.scheme:
            return self.scheme is other.scheme or not mentions(said, [self.verb]) or mentions(said, other.scheme.verbs)
        return not mentions(said, [self.verb]) or mentions(said, [other.verb])

    def told(self, said, args, tools):
        """Whether a word of its line is said, outside values, that no other line has."""
        values = {x.lower() for v in args.values() if isinstance(v, str) for x in SPOKEN.findall(v)}
        enums = {x for p in self.params if p.enum for x in p.enum}
        mine = cues(spoken(said) - (values - enums), self.line())
        return bool(mine) and not all(any(cues([x], o.line()) for o in tools if o is not self) for x in mine)

    def line(self):
        """The words of its line in the prompt, by their first letters."""
        if self.words_of_line is None:
            self.words_of_line = {}
            parts = [self.name, self.text[:120]] + [x for p in self.params for x in [p.name, *(p.enum or ())]]
            for x in spoken(" ".join(parts)):
                self.words_of_line.setdefault(x[0], []).append(x)
        return self.words_of_line

    def request(self, r, tools=(), quote=False):
        """-> what the user says, arguments. tools: those it must be told from; quote: something follows"""
        tell = bool(tools) and r.random() < TOLD
        for _ in range(MOST_TRIES if tell else 6):
            said, args, kinds = self.scheme_request(r, quote) if self.scheme and r.random() < (.96 if self.natural else .85) else self.own_request(r, tools)
            if self.meant(said, tools, kinds) and (not tell or self.told(said, args, tools)):
                return said, args
        return self.own_request(r, tools, True)[:2]

    def short_request(self, r, tools):
        """A few words for a tool without parameters. -> what the user says, no arguments"""
        alone = all(self.noun not in o.noun for o in tools if o is not self)
        text = expand(r, SAY["request in short" if alone else "request in short by both"])
        return fill(text, **self.words(text, self.verb)), {}

    def scheme_request(self, r, quote):
        """-> what the user says, arguments, their kinds"""
        text = expand(r, self.scheme.requests)
        if r.random() < .1:
            text = re.sub(r"(\{\d\})(\??)$", lambda m: f"{m[1]} {r.choice(LATER)}{m[2]}" if self.params[int(m[1][1])].kind not in ("text", "word") else m[0], text)
        used = sorted({int(i) for i in SLOT.findall(text)})
        styled = style(r, text)
        values = {}
        for i in used:
            p, slot = self.params[i], "{%d}" % i
            whole = styled == text or (p.kind not in ("text", "word") and len(used) < 2) or around(text, slot) == around(styled, slot)
            if not whole and len(used) > 1 and r.random() < .8:
                styled, whole = text, True
            values[i] = p.value(r, quote or not whole or not styled.endswith(slot) or r.random() < .6) if p.kind == "text" else p.value(r)
            if p.kind == "word" and not whole and '"' not in values[i][0] and "'" not in values[i][0]:
                values[i] = w.quoted(r, values[i][1]), values[i][1]
        if len(used) > 1 and used[-2:] == [len(self.params) - 2, len(self.params) - 1] and self.params[-1].kind == self.params[-2].kind in ("date", "time"):
            values[used[-2]], values[used[-1]] = sorted((values[used[-2]], values[used[-1]]))  # from before to
        said = self.fill(styled, **{str(i): v[0] for i, v in values.items()}, **unrelated(r))
        return said, {self.params[i].name: values[i][1] for i in used}, {self.params[i].kind for i in used}

    def values(self, r):
        """Values for the parameters, at times without those that may be missing. -> parameters with their values as text, arguments, their kinds"""
        given, args = [], {}
        for p, optional in zip(self.params, self.optional):
            if not optional or r.random() < .5:
                value, args[p.name] = p.value(r, own=True)
                given.append((p, value))
        return given, args, {p.kind for p, _ in given}

    def by_name(self, r, p, value):
        return fill(expand(r, SAY["parameter"]), k=p.label(r, self.params, self.noun), v=value)

    def request_around(self, r):
        """A request of any verb and noun whose values are in the middle or come first, most often in a sentence of their own. -> as own_request(), or None"""
        given, args, kinds = self.values(r)
        if not given:
            return None
        named = [self.by_name(r, p, value) for p, value in given]
        if r.random() < .25:
            r.shuffle(named)
        return self.fill(style(r, expand(r, SAY["request around"])), A=listed(r, named)), args, kinds

    def request_by_value(self, r, tools):
        """A request of any verb and noun with a value next to the noun, as a name, a path or a number often is, or in its stead. -> as own_request(), or None"""
        given, args, kinds = self.values(r)
        some = [x for x in given if x[0].kind in BY_VALUE and x[0].clear and sum(x[0].kind == p.kind for p in self.params) == 1]
        if not some:
            return None
        one = r.choice(some)
        said = self.own_values(r, [x for x in given if x is not one], False)
        others = [o for o in tools if o is not self]
        alone = self.verb not in VAGUE_VERBS and all(o.verb != self.verb and VERB_GROUP.get(o.verb, 0) != VERB_GROUP.get(self.verb, 1) for o in others)
        text = expand(r, SAY["request by value alone" if alone and one[0].kind != "word" and r.random() < .4 else "request by value"])
        return self.fill(style(r, text), A=said, **{"0": one[1]}), args, kinds

    def own_request(self, r, tools=(), strict=False):
        """A request of any verb and noun, with parameters by name. strict: both are said. -> what the user says, arguments, their kinds"""
        x = r.random()
        special = self.request_around(r) if x < .2 else self.request_by_value(r, tools) if x < .5 and not strict else None
        if special:
            return special
        given, args, kinds = self.values(r)
        said = self.own_values(r, given, strict)
        x = 1 if strict else r.random()
        others = [o for o in tools if o is not self]
        if x < .15:
            kind = "request inflected"
        elif x < .26 and all(o.noun not in self.noun and self.noun not in o.noun for o in others):
            kind = "request by noun"
        # a verb of no group counts as of the first or second: a slip, but the stream depends on it
        elif x < .36 and all(o.verb != self.verb and VERB_GROUP.get(o.verb, 0) != VERB_GROUP.get(self.verb, 1) for o in others) and self.verb not in VAGUE_VERBS:
            kind = "request by verb"
        else:
            kind = "request"
        text = expand(r, SAY[kind]).replace("{A}", "{A}" if said else "")
        return self.fill(style(r, text), A=said), args, kinds

    def own_values(self, r, given, strict):
        """-> the values as text, what is to be put before them included"""
        bare, named = "", []
        strings = [p for p in self.params if p.type == "string" and not p.enum]
        for p, value in given:
            unnamed = KINDS[p.kind].get("unnamed")
            if p.extra and r.random() < .85:
                bare += " " + fill(r.choice(EXTRA["without" if value in SWITCHED_OFF else "with"]), x=p.extra)
            elif not strict and unnamed and r.random() < .4 and (len(strings) == 1 or p.clear and sum(p.kind == q.kind for q in strings) == 1 and all(q.clear for q in strings)):
                bare += " " + fill(expand(r, unnamed), v=value)
            else:
                named.append(self.by_name(r, p, value))
        if r.random() < .2:
            r.shuffle(named)
        said = bare
        if named:
            said += r.choice([" with ", " with ", ", ", ": ", " using ", ". Use ", "; ", " (", ", and "]) + listed(r, named)
        if " (" in said and said.count("(") > said.count(")"):
            said += ")"
        return said


def listed(r, items):
    return ", ".join(items[:-1]) + r.choice([" and ", ", "]) + items[-1] if len(items) > 1 else items[0]


def around(text, slot):
    """The words next to a slot."""
    before, _, after = text.partition(slot)
    return (before.lower().split() or [""])[-1], (after.lower().rstrip(".?!").split() or [""])[0]


def clash(tool, other):
    """Whether a request could mean either, whatever it says."""
    if tool.noun != other.noun:
        return False
    # schemes' verbs of no group count as alike
    return alike(tool.verb, other.verb) or tool.scheme and other.scheme and VERB_GROUP.get(tool.first_verb) == VERB_GROUP.get(other.first_verb)


def bare_tool(r):
    """A tool without parameters. The names of some say nothing of what they do; their descriptions do."""
    t = Tool(r, None, False)
    t.scheme, t.params, t.optional = None, [], []
    t.label(r)
    if r.random() < .5:
        t.name = spelled(r, [w.word(r).lower() for _ in range(r.choice([1, 1, 2]))])
        text = t.with_article(expand(r, SAY["description that tells"]))
        t.text = fill(text, **t.words(text, t.verb.replace("_", " ")))
    return t


def toolset(r, most=4, bare=False, natural=False):
    """bare: tools without parameters, so that a conversation is about which tool is meant and nothing else"""
    tools = [bare_tool(r) for _ in range(r.choice([2, 2, 3, 3, 4, 5, 6]))] if bare else [Tool(r, natural=natural) for _ in range(min(most, r.choice([1, 1, 2, 2, 2, 3, 3, 4])))]
    if r.random() < .3 and not bare and not natural:  # one that differs from another only in its noun or its verb
        a, b = tools[0], Tool(r, None, False)
        if r.random() < .5:
            b.noun = a.noun
        elif not a.scheme and not b.scheme:
            b.verb = a.verb
        b.label(r, True)
        tools.append(b)
    if r.random() < .12 and len(tools) > 1 and not natural:
        tools[1].name_like(r, tools[0])
    r.shuffle(tools)
    by_name = {}
    for t in tools:
        if t.name.lower() not in by_name and not any(clash(t, o) for o in by_name.values()):
            by_name[t.name.lower()] = t
    return list(by_name.values())


def result(r):
    """-> what the tool said, the sentence about it"""
    x = r.random()
    if x < .25:
        said = r.choice(["ok", "OK", "done", "success", "Done.", '{"status": "ok"}', '{"success": true}', '{"ok": true}', "true", "Success"])
        return said, "Done."
    if x < .33:
        e = r.choice(["not found", "permission denied", "timeout", "no such file", "service unavailable", w.words(r, 1, 3)])
        return r.choice([f"Error: {e}", f"error: {e}", json.dumps({"error": e})]), f"That did not work: {e}."
    if x < .55:
        s = r.choice([w.sentence, w.sentence, w.time, w.date, lambda r: str(w.integer(r)), lambda r: f"{w.integer(r)} {w.word(r)}"])(r)
        return (s if r.random() < .6 else json.dumps({r.choice(["result", "text", "output", "content", "message"]): s})), f"The result is: {s}"
    keys = w.distinct(r, r.choice([1, 1, 2, 2, 3]), result_key)
    values = [r.choice([w.integer, w.integer, w.word, w.word, w.name, w.time, w.date, lambda r: round(r.uniform(0, 99), 1)])(r) for _ in keys]
    facts = [f"the {k.replace('_', ' ')} is {v}" for k, v in zip(keys, values)]
    s = ", ".join(facts[:-1]) + " and " + facts[-1] if len(facts) > 1 else facts[0]
    return json.dumps(dict(zip(keys, values))), s[0].upper() + s[1:] + "."


def result_key(r):
    if r.random() < .5:
        return r.choice("temperature condition price time count state name level code total distance humidity balance phone date score".split())
    return w.word(r) if r.random() < .8 else w.words(r, 2, 2, "_")


def unfit(r, tools, natural=False):
    """A request for a tool that is not there, often close to one that is; or None. natural: always another kind of work"""
    if natural:
        return other_work(r, Tool(r, named=False, natural=True), tools, r.random() < .9)
    near = r.choice(tools)
    taken = " ".join(x.name + " " + x.text + " " + x.noun for x in tools).lower()
    x = r.random()
    if r.random() < .06:
        return other_noun(r, bare_tool(r), tools, taken, True)
    t = Tool(r, near.scheme if x < .2 else r.choice(SCHEMES) if x > .5 else None, False)
    if x < .2 and near.scheme:  # the same but for the noun
        t.verb, t.params, t.optional = near.verb, near.params, near.optional
        if t.noun in near.scheme.nouns:  # they mean nearly the same
            t.noun = w.thing(r).lower()
    elif .2 <= x < .3 and not t.scheme and not near.scheme:
        return same_noun(r, t, near, tools, taken)
    elif x < .2 or .3 <= x < .4:  # the same verb and parameters, another noun
        if not near.scheme and not t.scheme:
            t.verb = near.verb
            t.params, t.optional = near.params, near.optional
    elif x > .5:
        return other_work(r, t, tools, r.random() < .8)
    return other_noun(r, t, tools, taken)


def same_noun(r, t, near, tools, taken):
    """A request for the tool t with the noun of near and a verb that no tool has."""
    if t.verb in taken or any(alike(t.verb, o.verb) for o in tools):
        return None
    t.noun = near.noun
    if r.random() < .5:
        t.params, t.optional = near.params, near.optional
    for _ in range(4):
        said = t.request(r)[0]
        if t.verb in said.lower() and t.noun.lower() in said.lower():
            return said
    return None


SPOKEN = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")


def spoken(text):
    """The words of a text that are not there only to hold a sentence together."""
    return {x.lower() for x in SPOKEN.findall(text) if len(x) > 2} - w.JOINING


def cues(words, line):
    """Those words that a line has, but for their endings."""
    return {x for x in words if any(w.in_common(x, y) for y in line.get(x[0], ()))}


LONG_WORD = re.compile(r"[A-Z]?[a-z]{3,}|[A-Z]{4,}")


def long_words(text):
    return {x.lower() for x in LONG_WORD.findall(text)}


def other_work(r, t, tools, any_values):
    """A request of t's scheme: a kind of work that no tool does, whether its noun is said or not. any_values: a tool may take such
    values, if nothing of what is said is in its line"""
    said, _, kinds = t.scheme_request(r, False)
    verbs = {VERB_GROUP.get(v, v) for v in t.scheme.verbs}
    spoken = long_words(said)
    for o in tools:
        theirs = o.scheme.verbs if o.scheme else [o.verb]
        if verbs & {VERB_GROUP.get(v, v) for v in theirs} or o.noun.lower() in said.lower():
            return None
        if families(kinds) & families(p.kind for p in o.params) and not (any_values and not spoken & long_words(" ".join([o.name, o.text, *(p.name for p in o.params)]))):
            return None
    return said if kinds else None


NEUTRAL = set("please could would should what where when which whose with that this these those have from into there here they them your about need want like make give some more just only after before".split())
WORD = re.compile(r"([A-Za-z][a-z]{3,})([.,?!;:]*)")


def strange(r, text):
    """With other words for some of those that tell what is meant: in use half of the words may be ones that no training had."""
    words = text.split(" ")
    for i, x in enumerate(words):
        m = WORD.fullmatch(x)
        if m and m[1].lower() not in NEUTRAL and r.random() < .4:
            words[i] = (w.pseudo(r).capitalize() if x[0].isupper() else w.pseudo(r)) + m[2]
    return " ".join(words)


def told(r, said, tools, arguments=None):
    """A request with a sentence before or after it that asks for nothing. arguments: of the call it ends with; after one of their values,
    or where they are not known, there is no end that a sentence can be put to."""
    after = arguments is not None and not any(isinstance(v, str) and said.rstrip(".?!").endswith(v) for v in arguments.values()) and r.random() < .5
    for _ in range(4):
        story = expand(r, SAY["story after" if after else "story before"])
        story = fill(story, **unrelated(r))
        if r.random() < .25:
            story = strange(r, story)
        if not long_words(story) & long_words(said + " " + " ".join(t.noun + " " + t.verb + " " + t.name for t in tools)):
            break
    else:
        return said
    if r.random() < .3:
        story = story[:1].lower() + story[1:]
    if after:
        return said.rstrip(".") + story if story[0] in " ,;" else said + ("" if said[-1] in ".?!" else r.choice("...!")) + " " + story
    return story + r.choice([". ", ". ", ". ", ", ", ", so ", "! ", " - ", "\n", " and "]) + (said[:1].lower() + said[1:] if r.random() < .6 and said.split(" ")[0] in STARTS else said)


def other_noun(r, t, tools, taken, short=False):
    """A request for t, whose noun must be said and be far from those of the tools. short: in a few words"""
    parts = t.noun.lower().split(" ")
    theirs = {NOUN_GROUP[x] for o in tools for x in o.noun.lower().split(" ") + o.verb.split(" ") if x in NOUN_GROUP}
    if any(x in taken or NOUN_GROUP.get(x) in theirs for x in parts):
        return None
    if t.scheme and not t.scheme.says_noun:
        return None
    for _ in range(5):
        said = (t.short_request(r, []) if short else t.request(r))[0]
        if t.noun.lower() in said.lower() and not any(o.noun.lower() in said.lower() for o in tools):
            return said
    return None


def two_values(text):
    """Ways of naming two values where the request has one."""
    before = re.search(r"\b(in|for|of|at|near) \{0\}", text)
    return SAY["two values"] + ("|" + SAY["two values by preposition"].replace("{p}", before[1]) if before else "")


def ended(r, text):
    """Now and then with a full stop, whatever it ends in."""
    return text + r.choice("...!") if text[-1].isalnum() and r.random() < .3 else text


def together(r, said, calls):
    """Requests as one message. What ends in a value keeps its last character; only a request before another loses its mark."""
    if len(said) == 1:
        return said[0]
    ends = [tuple(str(v) for v in c["arguments"].values()) for c in calls]
    bare = [s[:-1] if s[-1] in ".?" and not s.endswith(e) else s for s, e in zip(said, ends)]
    if r.random() < .5:  # in the middle of a sentence
        bare[1:] = [s[:1].lower() + s[1:] if s.split(" ")[0] in STARTS else s for s in bare[1:]]
    if r.random() < .35 and len(said) < 4:
        return fill(expand(r, SAY["two requests" if len(said) == 2 else "three requests"]), **dict(zip("abc", bare)))
    if len(bare) < 3 or r.random() < .5:
        return r.choice(BETWEEN).join(bare)
    return bare[0] + "".join(r.choice(BETWEEN) + s for s in bare[1:])


def call(tool, arguments):
    return dict(name=tool.name, arguments=arguments)


def calling(r, tools, count):
    """A turn with count calls."""
    if count > 1 and r.random() < .45:
        chosen = [r.choice(tools)] * count
    else:
        chosen = [r.choice(tools) for _ in range(count)]
    said, calls = [], []
    for t in chosen:
        text, arguments = t.short_request(r, tools) if not t.params and r.random() < .4 else t.request(r, tools, count > 1)
        said.append(text)
        calls.append(call(t, arguments))
    t = chosen[0]
    if count == 2 and t is chosen[1] and len(t.params) == 1 and t.params[0].kind in ("city", "person", "word", "path", "code") and r.random() < .7:
        said, calls = same_call_twice(r, t, tools) or (said, calls)
    text = ended(r, together(r, said, calls))
    if r.random() < (.3 if count == 1 else .12):
        text = told(r, text, tools, calls[-1]["arguments"])
    return turn(text, "", "call" if len(calls) == 1 else "calls", calls=calls)


def same_call_twice(r, t, tools):
    """One request with two values for the tool's only parameter -> requests, calls; or None."""
    p = t.params[0]
    values = p.value(r), p.value(r)
    text = style(r, expand(r, t.scheme.requests if t.scheme else "{v} the {N} {0}"))
    if text.count("{0}") != 1:
        return None
    said = t.fill(text.replace("{0}", expand(r, two_values(text))), **{"0": values[0][0], "1": values[1][0]}, **unrelated(r))
    if not t.meant(said, tools, {p.kind}):
        return None
    return [said], [call(t, {p.name: v}) for _, v in values]


def add_results(r, t):
    """What the tools of a turn said, and the reply to it."""
    done = [result(r) for _ in t["calls"]]
    t["results"] = [said for said, _ in done]
    answers = [answer for _, answer in done]
    t["answer"] = "Done." if set(answers) == {"Done."} else " ".join(answers)


def conversation(r, most=5, several=False, most_tools=4, bare=False):
    """-> tools, turns; a turn with tools has calls, and results that the next reply tells about. several: a lesson in more
    calls than one, and in nothing else; bare: one in choosing among tools without parameters. Many requests for the same
    tools teach to look at the request: what differs between their replies is in it alone."""
    natural = not bare and r.random() < NATURAL
    tools = toolset(r, most_tools, bare, natural)
    turns = []
    for _ in range(r.randint(3, 10) if bare else min(most, r.choice([1, 2, 3, 3, 4, 5]))):
        x = r.uniform(.36, .52) if several else r.random()
        if x < .52:
            t = calling(r, tools, 1 if x < .36 else r.choice([2, 2, 2, 2, 3]))
            turns.append(t)
            if r.random() < .45 and not several and not bare:
                add_results(r, t)
        elif x < .61:
            if not bare:
                t = r.choice([small_talk, identity, faq, instruct, instruct, repeat, fallback])(r)[0]
                turns.append(dict(t, skill="no call"))
        else:
            tell = r.random() < TOLD
            said = next((x for x in (unfit(r, tools, natural) for _ in range(6)) if x and not (tell and any(cues(spoken(x), t.line()) for t in tools))), None)
            if said:
                if r.random() < (.1 if natural else .35):
                    said = strange(r, said)
                turns.append(turn(told(r, said, tools) if r.random() < .25 else said, NO_TOOL, "no fit"))
    if r.random() < .08 and not several and not bare:
        turns = recall(r)[:4] + turns
    return tools, turns
