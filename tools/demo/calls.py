"""Conversations with tools. Tools come from schemes (look up, set, send, move, ...) with any noun and any names of
functions and parameters, so that only what the prompt says tells which tool and which arguments are meant."""
import json
import re

import words as w
from chat import fallback, faq, identity, small_talk, turn
from grammar import expand, fill, style
from tasks import instruct, recall

NO_TOOL = "None of my tools can do that."
NUMBERS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
TEXT = lambda r: (w.sentence(r) if r.random() < .9 else w.words(r, 5, 8))

# kind: (JSON type, usual parameter names, maker). A maker's value is written into the request as it is unless spoken() says otherwise.
KINDS = {
    "city": ("string", "city location place town where destination origin area region address", w.city),
    "person": ("string", "name person contact who user recipient to employee guest owner player customer", w.name),
    "email": ("string", "email to recipient address mail email_address sender", w.email),
    "path": ("string", "path file file_path filename source target input document", w.path),
    "folder": ("string", "path directory dir folder root workspace", w.folder),
    "url": ("string", "url link uri address page website", w.url),
    "word": ("string", "query item word term product topic symbol key name label tag category ingredient", w.word),
    "text": ("string", "text message content body title subject note comment description question", TEXT),
    "code": ("string", "id code order_id number ticket reference tracking_number serial", w.code),
    "date": ("string", "date day when due_date start_date", w.date),
    "time": ("string", "time at hour start_time when", w.time),
    "int": ("integer", "count amount number quantity limit level minutes size value seconds nights seats percent", w.integer),
    "number": ("number", "amount value degrees price distance weight speed target", lambda r: w.integer(r) if r.random() < .7 else round(r.uniform(1, 99), 1)),
    "bool": ("boolean", "enabled on active force recursive urgent verbose public locked dry_run", lambda r: r.random() < .5),
    "color": ("string", "color colour shade paint", lambda r: w.pick(r, w.COLORS)),
    "choice": ("string", "mode size unit status priority type format level style direction", None),
}
CHOICES = ["small medium large", "low medium high", "celsius fahrenheit", "left right", "open closed pending", "fast slow", "json csv xml", "up down", "daily weekly monthly", "draft final", "north south east west", "red green blue", "easy normal hard", "on off auto"]


class Param:
    def __init__(self, r, kind, role=""):
        self.kind, self.type = kind, KINDS[kind][0]
        x = r.random()
        if role and x < .3:
            self.name = role
        elif x < .55:
            self.name = r.choice(KINDS[kind][1].split(" "))
        elif x < .8:
            self.name = w.word(r)
        else:
            self.name = w.word(r) + "_" + r.choice(KINDS[kind][1].split(" ")).split("_")[0]
        self.enum = None
        if kind == "choice":
            self.enum = r.choice(CHOICES).split(" ") if r.random() < .6 else w.distinct(r, r.randint(2, 4))
        if r.random() < .15 and "_" in self.name:
            a, b = self.name.split("_", 1)
            self.name = a + b.capitalize()

    def value(self, r):
        """-> text in the request, JSON value"""
        if self.enum:
            v = r.choice(self.enum)
            return v, v
        v = KINDS[self.kind][2](r)
        if self.kind == "bool":
            return r.choice([("off", "on"), ("false", "true"), ("false", "true"), ("no", "yes")])[v], v
        if self.kind == "text":
            return (v if r.random() < .3 else w.quoted(r, v)), v
        if self.kind == "int" and v <= 10 and r.random() < .2:
            return NUMBERS[v], v
        if self.kind in ("path", "word", "code") and r.random() < .08:
            return w.quoted(r, v), v
        return str(v), v


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


# scheme: verbs for the name, kinds of its parameters (a mark ? means it may be missing), requests. {N} is the noun, {0} {1} the values.
SCHEMES = [
    ("get find fetch check lookup show", "city", "What(is|'s| is) the {N} (in|of|for|at|near) {0} [right now|today|now]?|How is the {N} in {0} [today|now]?|(Tell|Show|Give) me the {N} (in|of|for|at) {0}|{N} (in|for|of) {0}|(Check|Get|Find|Look up|Fetch) the {N} (in|of|for) {0}|I need the {N} (in|for) {0}|(Do you know|Can you tell me) the {N} (in|of) {0}?|What's the {N} like in {0}?"),
    ("get find lookup fetch show search", "word", "What is the {N} (of|for) {0}?|(Find|Get|Show|Look up|Fetch|Check) [me] the {N} (of|for) {0}|{N} (of|for) {0}|(Search|Look) [for] the {N} {0}|I need the {N} (of|for) {0}|{0}: what is its {N}?|(Find|Show) [the|me the] {N} {0}"),
    ("get find lookup check", "person", "(What is|What's) {0}'s {N}?|(Find|Get|Look up|Show|Check) {0}'s {N}|(Find|Get|Show me) the {N} of {0}|I need {0}'s {N}|Which {N} does {0} have?"),
    ("get track check find lookup", "code", "(Where is|What about|How is) [my|the] {N} {0}?|(Track|Check|Find|Look up|Show) [the|my] {N} {0}|status of {N} {0}|What is the (status|state) of [my|the] {N} {0}?"),
    ("delete remove cancel close archive stop open start", "code", "{V} [the|my] {N} {0}|Please {v} {N} {0}|I want to {v} the {N} {0}|{N} {0}: {v} it"),
    ("set change adjust", "int", "(Set|Change|Adjust|Turn) the {N} to {0}|{N} to {0}|(Make|Put) the {N} {0}|I want the {N} at {0}|(Set|Change) {N} {0}[, please]"),
    ("set change adjust", "number city?", "(Set|Change) the {N} in {1} to {0}|Set the {N} to {0} in {1}|{N} {0} in {1}[, please]"),
    ("turn switch set toggle", "bool", "(Turn|Switch) {0} the {N}|(Turn|Switch) the {N} {0}|{N} {0}[, please]|I want the {N} {0}"),
    ("set paint change", "color", "(Paint|Make|Color|Turn) the {N} {0}|(Set|Change) the {N} to {0}|I want a {0} {N}|the {N} should be {0}"),
    ("set change select", "choice", "(Set|Change|Switch) the {N} to {0}|(Use|Choose|Select|Pick) {N} {0}|the {N} should be {0}|{0} {N}[, please]"),
    ("send write post", "person text", "(Send|Write|Post) {0} (a|the) {N} (saying|that says|with the text) {1}|(Send|Write) [the|a] {N} {1} to {0}|(Tell|Let) {0} [know]: {1}|Send a {N} to {0}: {1}|{N} to {0}: {1}|{N} {0} and say {1}"),
    ("send email mail compose", "email text? text?", "(Send|Write) (a|an|the) {N} to {0} (with|about) [the subject] {1} and [the] (body|text|message) {2}|(Email|Mail) {0}: subject {1}, text {2}|(Send|Write) a {N} to {0} (saying|with the text) {1}|{N} {0}: {1}|(Email|Mail|Write to) {0} about {1}"),
    ("create add new make", "text", "(Create|Add|Make|Start) (a|an|the|a new) {N} (called|named|titled|with the title|saying|for) {0}|(Add|Put) {0} (to|on|in|into) (my|the) {N}|New {N}[:] {0}|{N}: {0}|I need a {N} (called|named|for) {0}|(Note|Write down|Save) {0} as {N}"),
    ("create add schedule plan book", "text date time?", "(Create|Add|Schedule|Plan|Book) (a|the) {N} {0} (on|for) {1} at {2}|(Put|Add) {0} (in|to|on) the {N} (on|for) {1}|(Schedule|Plan) {0} for {1} at {2}|{N} {0} on {1}[, please]|New {N} on {1} at {2}: {0}|On {1} I have {0}, put it in the {N}"),
    ("book reserve order rent get", "int city?", "(Book|Reserve|Rent|Get me|Order) (a|an|the) {N} for {0} (people|nights|persons|days|hours) [in {1}]|(I need|I want) a {N} for {0} (people|guests|nights|days) [in {1}]|{N} for {0} in {1}"),
    ("order buy add purchase", "word int?", "(Order|Buy|Get me|Purchase|Add|I want|I'd like) {1} {0} [from the {N}|for the {N}|to the {N}]|(Order|Buy|Get) [some|a] {0} (from|for) the {N}|{1} {0} for the {N}[, please]|(Put|Add) {1} {0} (on|to|in) the {N}"),
    ("read open show view cat", "path", "(Read|Open|Show|Show me|View|Display|Print) [the] [file|{N}] {0}|What (is|'s) in [the] [file|{N}] {0}?|(Show|Give) me the (contents|content|text) of {0}|What does {0} (say|contain)?"),
    ("write create save make", "path text", "(Write|Save|Put|Store) {1} (to|into|in) [the file|the {N}|] {0}|(Create|Make|Write) [a|the] [file|{N}] {0} (with|containing|with the content|with the text|that says) {1}|(Create|Make) a [new] (file|{N}) (called|named) {0} (with|containing) [the] [text|content] {1}|{0} should contain {1}|New (file|{N}) {0}: {1}"),
    ("delete remove erase", "path", "(Delete|Remove|Erase|Throw away|Get rid of) [the] [file|{N}] {0}|{0} (can go|must go|is no longer needed), (delete|remove) it"),
    ("move rename copy", "path path", "(Move|Rename|Copy) [the] [file|{N}] {0} to {1}|{0} should (be|become|go to) {1}, {v} it|{v} {0} {1}"),
    ("list show ls", "folder", "(List|Show) [me] [the files in|the contents of|all files in|the {N}s in] {0}|(What|Which) (files|{N}s) are in [the folder|the directory|] {0}?|What is in [the folder|the directory] {0}?"),
    ("run execute", "text", "(Run|Execute|Start|Do) [the] (command|{N}|script) {0}|(Run|Execute) {0} [in the {N}|now]|please (run|execute): {0}"),
    ("search find grep look", "word folder?", "(Search|Look|Find) [for] {0} in {1}|(Find|Search for|Look for) {0} [in the {N}]|(Where is|Is there) {0} in {1}?|(grep|search|find) {0} {1}"),
    ("search find google", "text", "(Search|Look) [in|on] [the] {N} for {0}|(Search for|Look up|Find) {0} [online|on the {N}|in the {N}|]|{N} search[:] {0}|What does the {N} say about {0}?"),
    ("fetch open download load", "url", "(Open|Fetch|Load|Download|Get|Visit) [the] [page|{N}|website] {0}|What (is|'s) (on|at) {0}?|(Show|Give) me [the page] {0}"),
    ("convert change exchange", "number word word", "(Convert|Change|Exchange) {0} {1} (to|into|in) {2}|(How much|How many) (is|are) {0} {1} in {2}?|{0} {1} (in|to) {2}[, please]|What is {0} {1} in {2}?"),
    ("translate", "text word", "(Translate|Put) {0} (to|into) {1}|How do you say {0} in {1}?|{0} in {1}[, please]|(What is|What's) {0} in {1}?|(Say|Write) {0} in {1}"),
    ("find search book get", "city city date?", "(Find|Search|Book|Get) [me] (a|the) {N} from {0} to {1} [on {2}]|{N}s from {0} to {1} [on {2}]|(I want|I need|I'd like) (a|to take a) {N} from {0} to {1} [on {2}]|(How far is it|What is the {N}) (from|between) {0} (to|and) {1}?|{0} to {1} by {N}"),
    ("set start create", "int", "(Set|Start|Make) (a|the) {N} (for|of) {0} (minutes|seconds|hours|rounds)|(Remind|Wake|Call) me in {0} minutes[ with the {N}|]|{N} {0} minutes[, please]|(Start|Set) a {0} minute {N}"),
    ("set create wake", "time text?", "(Set|Make|Create) (a|an|the) {N} (for|at) {0} [called {1}|saying {1}|with the text {1}]|(Wake|Remind|Call) me at {0} [about {1}]|{N} at {0}[, please]|(I need|I want) a {N} at {0}"),
    ("play start show", "text person?", "(Play|Start|Put on|Show|I want to hear) [the {N}] {0} [by {1}]|{N} {0} by {1}[, please]|I'd like to (hear|see) {0} [by {1}]"),
    ("create add register invite", "person email", "(Create|Add|Register|Make) (a|the) [new] {N} {0} with [the] (email|address|e-mail) {1}|(Add|Register|Invite) {0} ({1})|New {N}: {0}, {1}|{0} is a new {N}, (his|her|the) address is {1}"),
    ("get list show count", "", "(What|Which) {N}s (are there|do we have|do I have)?|(Show|List|Give me) (all|the|my|all the) {N}s|How many {N}s are there?|(Get|Check|Show) the {N}|What (is|'s) the {N} [now]?"),
    ("replace edit change", "path text text", "(In|In the file) {0} (replace|change) {1} (with|by|to) {2}|(Replace|Change) {1} (with|by|to) {2} in {0}|(Edit|Fix) {0}: {1} (should become|becomes|->) {2}"),
]
# a verb and a noun with parameters that the request names
OWN_REQUEST = "{V} the {N}{A}|{V} (a|my|this|our) {N}{A}|(Please|Can you|Could you|I want to|I need you to|Would you|Let's|Go ahead and|We have to|It is time to) {v} (the|a|my|this|our) {N}{A}|{v} {N}{A}|the {N}: {v} it{A}"
DESCRIBE = "{V} (a|the) {N}|{V} {N}s|{V} the given {N}|(Use this to|Lets you|Can|Helps to) {v} (a|the) {N}|{V} {N} (data|information|entries)|This (tool|function) can {v} a {N}"


class Tool:
    def __init__(self, r):
        x = r.random()
        self.noun = w.pick(r, w.NOUNS) if x < .35 else w.pick(r, w.SUBJECTS) if x < .6 else w.word(r)
        if r.random() < .12:
            self.noun = w.word(r) + " " + self.noun
        self.scheme = r.choice(SCHEMES) if r.random() < .62 else None
        if self.scheme:
            self.verb = r.choice(self.scheme[0].split(" "))
            self.params = [Param(r, k.rstrip("?")) for k in self.scheme[1].split()]
            self.optional = [k.endswith("?") for k in self.scheme[1].split()]
        else:
            self.verb = w.pick(r, w.VERBS) if r.random() < .7 else w.word(r)
            self.params = [Param(r, r.choice(list(KINDS))) for _ in range(r.choice([0, 1, 1, 2, 2, 3]))]
            self.optional = [r.random() < .3 for _ in self.params]
        seen = set()
        for p in self.params:
            while p.name in seen:
                p.name += "_" + w.word(r)
            seen.add(p.name)
        parts = [self.verb] + self.noun.split(" ")
        x = r.random()
        self.name = spelled(r, parts if x < .8 else parts[1:] if x < .88 else parts[1:] + [self.verb] if x < .95 else [w.word(r)] + parts)
        self.text = fill(expand(r, DESCRIBE), N=self.noun, v=self.verb, V=self.verb.capitalize())
        if r.random() < .25:
            self.text += expand(r, "(.|. Returns the (result|{x}).|, for example a {x})").replace("{x}", w.word(r))

    def schema(self, r):
        props = {}
        for p in self.params:
            props[p.name] = {"type": p.type, **({"enum": p.enum} if p.enum else {})}
        params = {"type": "object", "properties": props}
        required = [p.name for p, o in zip(self.params, self.optional) if not o]
        if required and r.random() < .85:
            params["required"] = required
        return {"type": "function", "function": {"name": self.name, "description": self.text, "parameters": params}}

    def request(self, r):
        """-> what the user says, arguments"""
        if not self.scheme:
            return self.own_request(r)
        text = expand(r, self.scheme[2])
        used = sorted({int(i) for i in re.findall(r"\{(\d)\}", text)})
        values = {i: self.params[i].value(r) for i in used}
        if len(self.params) == 1 and self.params[0].kind == "text" and text.endswith("{0}") and r.random() < .3:
            values[0] = (values[0][1],) * 2
        text = style(r, text)
        said = fill(text, N=self.noun, v=self.verb, V=self.verb.capitalize(), **{str(i): v[0] for i, v in values.items()})
        return said, {self.params[i].name: values[i][1] for i in used}

    def own_request(self, r):
        bits, args = [], {}
        for p, optional in zip(self.params, self.optional):
            if optional and r.random() < .5:
                continue
            said, args[p.name] = p.value(r)
            label = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", p.name).replace("_", " ").lower() if r.random() < .85 else p.name
            bits.append(fill(expand(r, "({k} {v}|{k} {v}|{k} {v}|{k} = {v}|{k}: {v}|[the] {k} is {v}|{k} set to {v}|a {k} of {v}|{v} as [the] {k}|{v} for [the] {k})"), k=label, v=said))
        order = list(bits)
        if r.random() < .2:
            r.shuffle(order)
        a = r.choice([" with ", " with ", ", ", ": ", " using ", ". Use "]) + (", ".join(order[:-1]) + r.choice([" and ", ", "]) + order[-1] if len(order) > 1 else order[0]) if order else ""
        text = style(r, expand(r, OWN_REQUEST).replace("{A}", "" if not a else "{A}"))
        return fill(text, N=self.noun, v=self.verb, V=self.verb.capitalize(), A=a), args


def toolset(r):
    tools = [Tool(r) for _ in range(r.choice([1, 1, 2, 2, 2, 3, 3, 4]))]
    if r.random() < .3:  # one that differs from another only in its noun or its verb
        a, b = tools[0], Tool(r)
        if r.random() < .5:
            b.noun = a.noun
        elif not a.scheme and not b.scheme:
            b.verb = a.verb
        b.name = spelled(r, [b.verb] + b.noun.split(" "))
        b.text = fill(expand(r, DESCRIBE), N=b.noun, v=b.verb, V=b.verb.capitalize())
        if (a.noun, a.verb) != (b.noun, b.verb):
            tools.append(b)
    r.shuffle(tools)
    names = {}
    for t in tools:
        names.setdefault((t.name.lower()), t)
    return list(names.values())


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
    keys = w.distinct(r, r.choice([1, 1, 2, 2, 3]), lambda r: r.choice("temperature condition price time count state name level code total distance humidity balance phone date score".split()) if r.random() < .5 else w.word(r) if r.random() < .8 else w.words(r, 2, 2, "_"))
    values = [r.choice([w.integer, w.integer, w.word, w.word, w.name, w.time, w.date, lambda r: round(r.uniform(0, 99), 1)])(r) for _ in keys]
    facts = [f"the {k.replace('_', ' ')} is {v}" for k, v in zip(keys, values)]
    s = ", ".join(facts[:-1]) + " and " + facts[-1] if len(facts) > 1 else facts[0]
    return json.dumps(dict(zip(keys, values))), s[0].upper() + s[1:] + "."


def unfit(r, tools):
    """A request for a tool that is not there, often close to one that is."""
    t = Tool(r)
    taken = " ".join(x.name + " " + x.text + " " + x.noun for x in tools).lower()
    if r.random() < .4 and not t.scheme:
        near = r.choice(tools)
        if not near.scheme and t.verb not in near.name.lower() + near.text.lower():
            t.noun = near.noun
            return t.request(r)[0]
    if any(part in taken for part in t.noun.lower().split(" ")):
        return None
    if t.scheme and "{N}" not in t.scheme[2]:
        return None
    for _ in range(4):
        said = t.request(r)[0]
        if t.noun.lower() in said.lower():
            return said
    return None


def conversation(r, most=3):
    """-> tools, turns; a turn with tools has calls, and results that the next reply tells about."""
    tools = toolset(r)
    turns = []
    for _ in range(min(most, r.choice([1, 1, 2, 2, 3]))):
        x = r.random()
        if x < .72:
            n = 1 if x < .57 else r.choice([2, 2, 2, 2, 3])
            if n > 1 and r.random() < .45:
                chosen = [r.choice(tools)] * n
            else:
                chosen = [r.choice(tools) for _ in range(n)]
            said, calls = [], []
            for t in chosen:
                s, a = t.request(r)
                said.append(s), calls.append(dict(name=t.name, arguments=a))
            t = chosen[0]
            if n == 2 and chosen[0] is chosen[1] and len(t.params) == 1 and t.params[0].kind in ("city", "person", "word", "path", "code") and r.random() < .7:
                p, q = t.params[0].value(r), t.params[0].value(r)
                text = expand(r, t.scheme[2] if t.scheme else "{v} the {N} {0}")
                text = style(r, text)
                if text.count("{0}") == 1:
                    said = [fill(text.replace("{0}", r.choice(["{0} and {1}", "{0} and in {1}" if "in {0}" in text else "{0} and {1}", "{0} and also {1}"])), **{"0": p[0], "1": q[0]}, N=t.noun, v=t.verb, V=t.verb.capitalize())]
                    calls = [dict(name=t.name, arguments={t.params[0].name: v[1]}) for v in (p, q)]
            user = r.choice([" and ", ", and ", " and then ", ". ", ". Then ", "; ", ". Also ", " and also ", "\n"]).join(s.rstrip(".?") for s in said)
            tn = turn(user, "", "call" if len(calls) == 1 else "calls", calls=calls)
            turns.append(tn)
            if r.random() < .75:
                done = [result(r) for _ in calls]
                tn["results"] = [d[0] for d in done]
                answer = " ".join(d[1] for d in done)
                if len(done) > 1 and all(d[1] == "Done." for d in done):
                    answer = "Done."
                tn["answer"] = answer
        elif x < .85:
            made = r.choice([small_talk, identity, faq, instruct, fallback])(r)
            for t in made[:1]:
                t["skill"] = "no call"
            turns += made[:1]
        else:
            said = unfit(r, tools)
            if said:
                turns.append(turn(said, NO_TOOL, "no fit"))
    if r.random() < .08:
        turns = recall(r)[:4] + turns
    return tools, turns
