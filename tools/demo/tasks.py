"""Instructions, memory over several turns, obedience to the system prompt."""
import json

import words as w
from chat import BYE, FINE, HELLO, IDENTITY, MORE, SMALL_TALK, WELCOME, WHO, fallback, faq, identity, small_talk, turn
from grammar import expand, fill, style

GREETING = "Hello, it is nice to meet you!"
ORDINALS = ["first", "second", "third", "fourth", "fifth"]
NUMBERS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]


def ask(r, grammar, **slots):
    return fill(style(r, expand(r, grammar)), **slots)


def payload(r):
    """Text to be handed back unchanged or nearly so."""
    x = r.random()
    if x < .75:
        return w.sentence(r)
    return r.choice([w.email, w.path, w.url, w.code, w.name, w.city, lambda r: str(w.integer(r))])(r)


def repeat(r):
    s = payload(r)
    g = ("(Repeat|Echo|Say|Copy|Write|Print|Output|Type|Return|Reproduce) [after me|back|this|exactly|the following|the text|these words|this text|this sentence|this line|just this|word for word|the sentence]: {s}|(Say|Echo|Repeat|Write|Print|Type|Output) [the words|exactly|just|only|me] {q}|"
         "(Reply|Answer|Respond) (with|using) [only|exactly|just|nothing but] [the (word|words|text|phrase)] ({q}|{s})|(Answer|Reply|Respond) (exactly|only|just)[:] {q}|(Your|The) [whole|complete|only] (answer|reply|response|output) (is|must be|should be|has to be) {q}|"
         "(Say|Write|Print) {q} and nothing else|I say {q}[,] you (repeat|say it back|echo)|(What I say, you repeat|Be my echo|Be a parrot|Same text back): {s}|(Only|Just) (say|write|reply|answer) {q}|{q}[:|.] (repeat that|say that again|echo this|now repeat it)|repeat[:] {q}|(Reply|Answer|Respond) with (one|a single|the single) word: {o}")
    text = expand(r, g)
    o = w.word(r)
    return [turn(fill(style(r, text), s=s, q=w.quoted(r, s), o=o), o if "{o}" in text else s, "repeat")]


def case(r):
    up = r.random() < .55
    s = w.words(r, 1, 4) if up else w.words(r, 1, 4).lower()
    given = s if up else r.choice([s.upper(), s.upper(), s.title()])
    g = ("(Write|Put|Turn|Change|Convert|Transform|Make|Set|Give me|Print|Show|Rewrite|Type) ({q}|this: {s}) [to|in|into|all in] {k}|({k}|to {k}|in {k}|{k} please|make {k}|Convert to {k}|Make this {k}|Put this in {k}|Write in {k}|Change to {k}): {s}|({q}|{q},) in {k}[, please]|"
         "What is {q} in {k}?|How does {q} look in {k}?|I (need|want|would like) {q} in {k}|(Write|Say|Spell) {q} (using|with|in) [only] {k}|Use {k} for {q}|{q} (as|to|into) {k}|Give me the {k} (version|form) of {q}|{k}[:] {q}")
    k = expand(r, "(uppercase|upper case|capital letters|capitals|all caps|caps|block letters|big letters|upper-case letters|uppercase letters)" if up else "(lowercase|lower case|small letters|little letters|lower-case letters|lowercase letters|no capitals)")
    return [turn(ask(r, g, s=given, q=w.quoted(r, given), k=k), s.upper() if up else s, "upper" if up else "lower")]


def letter(r):
    which = r.choice(["first", "first", "last"])
    x = w.word(r) if r.random() < .85 else w.name(r).split(" ")[0]
    g = ("(What|What's|Which) is the {k} letter (of|in) [the word] ({q}|{s})?|[the|The] {k} letter of [the word] ({q}|{s})[?]|(Give|Tell|Show|Name) me the {k} letter (of|in) [the word] ({q}|{s})|(Which|What) letter (does [the word] ({q}|{s}) {v} with|{v}s [the word] ({q}|{s})|is {k} in ({q}|{s}))?|"
         "(Say|Name|Write|Print) [only] the {k} letter of ({q}|{s})|({q}|{s}): (which|what) letter is {k}?|With (what|which) letter does ({q}|{s}) {v}?|I need the {k} letter of {q}|[Take] the word {s}[:|,] what is its {k} letter?|(Find|Return|Get) the {k} letter of {q}|{k} letter: {s}")
    c = x[0] if which == "first" else x[-1]
    return [turn(ask(r, g, s=x, q=w.quoted(r, x), k=which, v="start" if which == "first" else "end"), f"The {which} letter is {c}.", "letter")]


def count(r):
    if r.random() < .15:
        n = r.randint(2, 10)
        g = "Count (to|up to|from 1 to|from one to) {n}|(Say|List|Write) the numbers (from 1 to|up to) {n}|Can you count to {n}?|I want you to count [from one] to {n}"
        return [turn(ask(r, g, n=r.choice([str(n), NUMBERS[n]])), ", ".join(map(str, range(1, n + 1))), "count")]
    n = r.randint(1, 8)
    s = " ".join(w.word(r) for _ in range(n))
    g = ("How many words (are in|are there in|does|has|do you see in|can you count in) ({q}|this: {s})[ have]?|Count [the|all|all the] words (in|of|here) [the (text|sentence|phrase)] {q}|Count [the|all] words[ here| in this]: {s}|(Number|Count) of words in {q}[?]|How many words: {s}|(Word count|word count)( of|:|) {q}|"
         "(Tell|Give) me (the number of words|how many words are) in {q}|{q}[:] how many words (is that|are that|are these)?|(What is|Find) the (word count|number of words) (of|in) {q}|How long is {q} in words?|I want to know how many words {q} has")
    a = ", ".join(f"{i} {x}" for i, x in enumerate(s.split(" "), 1)) + f". That is {n} word{'s' if n > 1 else ''}."
    return [turn(ask(r, g, s=s, q=w.quoted(r, s)), a, "count")]


SINGULAR = {"countries": "country"}


def bank(r):
    b = r.choice(list(w.BANKS) + ["colors"] * 4)
    n = r.randint(1, 5)
    l = w.BANKS[b][:n]
    many = b if n > 1 else SINGULAR.get(b, b[:-1])
    if b == "colors" and r.random() < .3:
        many = "colours" if n > 1 else "colour"
    number = r.choice([str(n), NUMBERS[n]])
    if r.random() < .3:
        g = ("(Give|Show|Send|Write|Tell) me {n} {b} (as|in) [a] JSON [object|list|format]|(List|Name|Write|Return) {n} {b} (as|in) JSON|(Reply|Answer|Respond) (in|with|as) JSON[:] (with|name|list|) {n} {b}|JSON (with|of) {n} {b}|I need {n} {b} as JSON|{n} {b} (as|in) JSON [please]")
        return [turn(ask(r, g, n=number, b=many), json.dumps({b: l}), "bank")]
    g = ("(Name|List|Give me|Tell me|Say|Write|Mention|Show me|Enumerate|Think of|Type|Print) [exactly|any|just|only|some] {n} {b}|[I need|I want|Give me] {n} {b}[, please| please| of your choice| separated by commas| you know| that you know]|(Can|Could) you (name|list|give me|think of|tell me) {n} {b}?|(Which|What) {n} {b} (do you know|can you name|come to mind)?|"
         "(What are|Do you know) {n} {b}?|{n} {b}[!|?]|A list of {n} {b}|(Come up with|Pick|Choose|Select) {n} {b}|(Reply|Answer) with {n} {b}")
    return [turn(ask(r, g, n=number, b=many), ", ".join(l), "bank")]


def json_key(r):
    """JSON of named keys; most often one."""
    n = r.choice([1, 1, 1, 2, 2, 3])
    keys = w.distinct(r, n, lambda r: r.choice(w.W("name city age color email id price title status size kind date code user path")) if r.random() < .4 else w.word(r) if r.random() < .8 else w.words(r, 2, 2, "_"))
    values = [r.choice([w.word, w.word, w.name, w.city, w.integer, w.integer, w.email, w.sentence, lambda r: r.random() < .5])(r) for _ in keys]
    show = [v if isinstance(v, str) and " " not in v else w.quoted(r, v) if isinstance(v, str) else str(v).lower() for v in values]
    if n == 1:
        g = ("(Give me|Write|Make|Create|Return|Build|Output|Show|Print|Send) [me|a|some] JSON [object] (with|having|where|containing) [the|one|a] key {qk} (and [the] value|is|set to|with value|and its value|=|:) {v}|JSON[:| with| object with] [key] {qk} (is|=|:|with value|and value) {v}|(Reply|Answer|Respond) (in|with|as|using) [only] JSON[:] (the|with the|one|) key [is] {qk}[,] [and] (the|with the|) value [is] {v}|"
             "Put {v} (into|in) [a] JSON [object] (under|with|at|using) the key {qk}|(Wrap|Pack) {v} in JSON[,] (with the|the|using the|) key [is] {qk}|A JSON object (where|in which) {qk} is {v}|(As|In) JSON: {k} is {v}|Turn this into JSON: {k} (is|=|:) {v}|I need {v} as JSON under {qk}|JSON (of|for) {k} {v}")
        u = ask(r, g, k=keys[0], qk=w.quoted(r, keys[0]) if r.random() < .7 else keys[0], v=show[0])
    else:
        bits = [expand(r, "({k} {v}|{k} is {v}|{k}: {v}|{k} = {v})") for _ in range(1)] * n
        bits = [fill(b, k=k, v=v) for b, k, v in zip(bits, keys, show)]
        joined = ", ".join(bits[:-1]) + r.choice([" and ", ", ", ", and "]) + bits[-1]
        u = ask(r, "(Give me|Write|Make|Create|Return|Build) [a] JSON [object] (with|of|from|for|where) {x}|(As|In|To) JSON: {x}|Turn (this|these) into [a] JSON [object]: {x}|[a] JSON (object for|for|with|of|:) {x}|Put this in[to] [a] JSON [object]: {x}|(Answer|Reply) in JSON[:] {x}|{x} as JSON", x=joined)
    return [turn(u, json.dumps(dict(zip(keys, values)), ensure_ascii=False), "json")]


def greet(r):
    g = ("(Say|Write|Give me|Reply with|Answer with|Send|Type) [me|a] (hello|hi|greeting|welcome|friendly hello) in (one|a single|one short|a short|1|just one|exactly one) sentence|(Greet|Welcome) me [in|with] (one|a single|a short|one short) sentence|(Write|Give me|Say) (one|a single|a|1) [short|friendly|polite] (sentence of greeting|greeting sentence|sentence that says hello|sentence to greet me|sentence as a greeting)|"
         "(Say|Write) hello [to me|to everyone|nicely|now]|(One|A) sentence[,|:] (say hello|greeting|a greeting)[, please]|In one sentence[,|:] (say hello|greet me|a greeting)|A (one-sentence|one sentence|single-sentence) (greeting|hello)[, please]|(Say|Write) (one sentence|something nice in one sentence|a sentence)")
    return [turn(ask(r, g), GREETING, "sentence")]


def items(r, a, b):
    x = r.random()
    make = w.word if x < .55 else (lambda r: str(r.randint(1, 99))) if x < .7 else w.name if x < .75 else lambda r: w.pick(r, r.choice([w.FRUITS, w.ANIMALS, w.COLORS, w.ALL]))
    return w.distinct(r, r.randint(a, b), make)


def reverse(r):
    if r.random() < .35:
        x = w.word(r)[:9]
        g = ("(Write|Spell|Say|Print|Show|Type) [the word] ({q}|{s}) (backwards|backward|in reverse|from back to front|the other way round|reversed)|(Reverse|Flip|Invert|Mirror) [the letters of|the word|the string|the letters in] ({q}|{s})|What is ({q}|{s}) (backwards|reversed|in reverse|spelled backwards)?|({q}|{s}) (backwards|reversed|in reverse)|(reversed|backwards): {s}")
        return [turn(ask(r, g, s=x, q=w.quoted(r, x)), x[::-1], "reverse")]
    l = items(r, 2, 5)
    sep = r.choice([", ", ", ", ", ", " "])
    g = ("(Reverse|Flip|Invert|Turn around) [this|the|my|the order of|the order of this] list[ of words| of items|]: {s}|(Reverse|Flip|Invert|Turn around|Mirror)[:| these:| these items:| these words:| the order:| the words| the order of] {s}|(Write|List|Give me|Print|Show|Say) (this|the|these) (list|items|words) (backwards|in reverse|in reverse order|from last to first|in the opposite order|from the end): {s}|"
         "(Put|Bring|Arrange) (this list|these|these items|these words|the words) (in reverse order|in the opposite order|backwards|from last to first): {s}|{s}[:|.] (reverse it|reverse this list|now backwards|in reverse order please|reverse the order)|What is (the reverse|the reverse order) of {s}?|(reversed|backwards|in reverse|reverse order): {s}")
    return [turn(ask(r, g, s=sep.join(l)), sep.join(l[::-1]), "reverse")]


def spell(r):
    x = w.word(r)[:10] if r.random() < .85 else w.name(r).split(" ")[0]
    g = ("(Spell|Spell out) [the word|for me|the name|out] ({q}|{s})[ letter by letter| for me| slowly|]|(How|Can you tell me how) (do|would|does) (you|one|I|we) spell [the word] ({q}|{s})?|(Write|List|Give me|Say|Show|Print|Name) [all|me] the letters (of|in) [the word] ({q}|{s})|(Split|Break|Cut|Separate|Divide) [the word] ({q}|{s}) (into|up into) [its] letters|How is ({q}|{s}) (spelled|spelt|written)?|"
         "({q}|{s}) (letter by letter|spelled out|in letters)[, please]|(spell|letters|letter by letter|spelling): {s}|(What is|Tell me|Give me) the spelling of ({q}|{s})[?]|(Which|What) letters (are in|does) ({q}|{s})[ have]?")
    return [turn(ask(r, g, s=x, q=w.quoted(r, x)), "-".join(x), "spell")]


def sort(r):
    n = r.choice([2, 2, 3, 3, 3, 4, 4, 5])
    numbers = r.random() < .3
    if numbers:
        l = w.distinct(r, n, lambda r: str(r.randint(1, 99)))
        done = sorted(l, key=int)
        g = ("(Sort|Order|Arrange|Rank) [these|the|my|the following|this list of] [numbers][:| from small to large:| by size:| upwards:| in ascending order:] {s}|(Put|Bring) (these|these numbers|the numbers|this list) [in|into] order: {s}|(sorted|sort|ascending|smallest first): {s}|{s}[:|.] (sort|sort them|put them in order|smallest first)")
    else:
        l = []
        while len(l) < n:  # different first letters, so that a look at one letter decides
            x = w.word(r).lower()
            if all(x[0] != y[0] for y in l):
                l.append(x)
        done = sorted(l)
        g = ("(Sort|Order|Arrange|Rank) [these|the|my|the following|this list of] [words|items|list] (alphabetically|in alphabetical order|by alphabet|from a to z|from A to Z|by first letter|by name|in ABC order): {s}|(Put|Bring|List|Write|Give me) (these|these words|the words|this list|them) (in|into) (alphabetical|ABC) order: {s}|(sort|alphabetically|a to z|alphabetical order|sorted|sort these|sort the list|sort this): {s}|"
             "{s}[:|.] (sort|sort them|alphabetical order|sort from a to z|in alphabetical order)[ please]|(What|How) is {s} in alphabetical order?|Alphabetize[:| these:| this list:] {s}")
    return [turn(ask(r, g, s=", ".join(l)), ", ".join(done), "sort")]


def nth(r):
    l = items(r, 2, 5)
    i = r.randrange(len(l))
    o = "last" if i == len(l) - 1 and r.random() < .5 else ORDINALS[i]
    g = ("(What|Which) is the {o} (item|word|one|element|entry) (of|in) [this list|the list|this|these]: {s}?|(Give|Tell) me the {o} (item|word|one|element|thing|entry) [of|in]: {s}|The list is {s}. (What|Which) is the {o} (item|word|one)?|(Say|Name|Write|Pick) [only] the {o} (item|word|one|element) of {s}|{s}[:|.] (the {o} one|which one is {o}|what is {o})[?]")
    return [turn(ask(r, g, s=", ".join(l), o=o), l[i], "nth")]


INSTRUCTIONS = [(repeat, 7), (case, 8), (letter, 5), (count, 4), (bank, 4), (json_key, 6), (greet, 2), (reverse, 6), (spell, 5), (sort, 6), (nth, 3)]


def instruct(r):
    makers, weights = zip(*INSTRUCTIONS)
    return r.choices(makers, weights)[0](r)


JOBS = w.W("teacher doctor baker pilot farmer painter nurse driver lawyer engineer writer singer cook builder carpenter librarian tailor plumber dentist gardener waiter butcher sailor")
MEMORY = [  # statement, values, acknowledgement, question, answer, answer if it was not told
    ("(My name is|I'm|I am|Call me|You can call me|People call me|This is|The name is|My name's|They call me|I go by|my friends call me) {v}[, nice to meet you|, by the way|.|!| and I am new here]|(Hi|Hello|Hey)[,|!] (I'm|I am|my name is|this is) {v}[.|!]|{v} is my name|{v} here", lambda r: (w.name(r),), "Nice to meet you, {v}!",
     "(What|What's|What is) my name?|(Do|Can) you (remember|know|recall|tell me|say) my name?|Who am I?|(Tell|Say) [me] my name [again]|(What|How) am I called?|(Which|What) name did I (tell|give) you?|my name?|How do (people|you) call me?|(I forgot|Remind me of) my name|(What|Which) was my name [again]?|And my name [is]?|(You know|You remember) my name, (right|don't you)?", "Your name is {v}.", "You haven't told me your name."),
    ("(My favorite|My favourite|My preferred|my best-loved) (color|colour) is {v}|I (like|love|prefer) (the|the color|the colour) {v} [most|best|the most]|The (color|colour) I like [best|most] is {v}|{v} is my (favorite|favourite) (color|colour)|(Of all colors|As for colors)[,] I (like|prefer) {v}", lambda r: (w.pick(r, w.COLORS) if r.random() < .7 else w.pseudo(r),), "Got it, {v}.",
     "(What|What's|Which) is my (favorite|favourite|preferred) (color|colour)?|(Which|What) (color|colour) do I (like|love|prefer) [most|best]?|(Do you|Can you) (remember|know|recall|tell me) my [favorite|favourite] (color|colour)?|(Tell|Remind) me (of|about) my favorite color|my favorite (color|colour)?|(Which|What) (color|colour) did I (say|mention|tell you)?|And my (color|colour)?", "Your favorite color is {v}.", "You haven't told me your favorite color."),
    ("(I live|I'm living|My home is|I am at home|We live|These days I live|I have a flat|My house is) in {v}[ now|]|I'm from {v}|I come from {v}|My (home town|city|town) is {v}|{v} is (my home|where I live|my home town|my city)|(I moved|I have moved) to {v}", lambda r: (w.city(r),), "{v}, got it.",
     "Where do I live?|(Which|What|In which|In what) (city|town|place) do I live[ in]?|Where (am I from|is my home|is my house|do I come from)?|(Do you|Can you) (remember|know|recall|tell me) where I (live|am from|come from)?|(Tell|Remind) me where I live|my (city|home|home town|town)?|What is my (city|home town|town)?|(Which|What) (city|town) did I (mention|tell you|name)?", "You live in {v}.", "You haven't told me where you live."),
    ("My {k} is (called|named) {v}|I have a {k} (called|named) {v}|[The name of] my {k} is {v}|I (own|got|bought|have) a {k}, (its name is|it is called|his name is|named|called) {v}|{v} is (the name of my|my) {k}|My {k}'s name is {v}", lambda r: (w.name(r), w.pick(r, w.ANIMALS) if r.random() < .7 else w.word(r)), "{v} is a nice name.",
     "(What|How) is my {k} called?|(What|What's) is the name of my {k}?|(What's|What is) my {k}'s name?|(Do you|Can you) (remember|know|recall|tell me) (the name of my {k}|my {k}'s name|how my {k} is called)?|(Tell|Remind) me (what my {k} is called|of my {k}'s name|the name of my {k})|(Which|What) name (does my {k} have|has my {k})?|my {k}'s name?", "Your {k} is called {v}.", "You haven't told me about your {k}."),
    ("(Remember|Keep in mind|Note|Memorize|Save|Please remember|Don't forget|Store) (the|this) number[:|] {v}|My (lucky|favorite|secret) number is {v}|The number is {v}[, remember it|, don't forget]|(The|My) (pin|code|room number|number|ticket number) is {v}|{v} is (the|my) number", lambda r: (str(r.choice([r.randint(2, 99), r.randint(100, 99999)])),), "OK, {v}.",
     "(What|Which) (was|is) (the|my) [lucky|secret] (number|pin|code|room number)?|(Which|What) number did I (tell|give) you?|(Which|What) number (did I ask you to|should you|do you) (remember|keep|note)?|(Tell|Give|Remind) me (the|of the|of my|my) number|(Do you|Can you) (remember|know|recall|tell me) the number?|the number?|And the number?|What's (the|my) (number|code|pin)?", "The number is {v}.", "You haven't told me a number."),
    ("(Remember|Keep in mind|Note|Memorize|Please remember|Don't forget|Store) (the|this) word[:|] {v}|The (secret|code|magic|key) word is {v}|The (password|keyword|codeword|passphrase) is {v}[, remember it|, keep it secret]|My word is {v}|{v} is the (secret word|password|word to remember|code word)", lambda r: (w.word(r),), "OK, I will remember it.",
     "(What|Which) (was|is) the [secret|code|magic|key] word?|(What's|What is|What was) the (password|keyword|secret word|codeword|word)?|(Which|What) word did I (tell|give) you?|(Which|What) word (did I ask you to|should you|do you) (remember|keep|note)?|(Tell|Give|Remind) me (the|of the) (word|password|secret word)|(Do you|Can you) (remember|know|recall|tell me) the (word|password|secret word)?|the (password|word|secret word)?", "The word is {v}.", "You haven't told me a word."),
    ("(I work|I'm working|I earn my money|I make a living) as a {v}|I'm a {v} (by profession|by trade|at work)|My (job|profession|work|trade) is {v}|(By profession|By trade) I am a {v}|I am employed as a {v}|I have a job as a {v}|I'm a {v}", lambda r: (r.choice(JOBS) if r.random() < .7 else w.word(r),), "Good to know.",
     "(What|What's|Which) is my (job|profession|work|trade)?|What (do|did I say) I (do for work|work as|do for a living|do)?|(Do you|Can you) (remember|know|recall|tell me) (my job|my profession|what I do|what I work as)?|(Tell|Remind) me (what my job is|of my job|what I do)|my (job|profession)?|As what do I work?", "You are a {v}.", "You haven't told me your job."),
]


def tell(r, kind, slots):
    return fill(style(r, expand(r, kind[0]), False), **slots)


def recall(r, filler=None):
    """Things told, other talk in between, then questions about them."""
    kinds = r.sample(MEMORY, r.choice([1, 1, 2, 2, 3]))
    told = []
    for kind in kinds:
        v = kind[1](r)
        told.append((kind, dict(v=v[0], k=v[-1])))
    turns = []
    if len(told) > 1 and r.random() < .4:
        u = r.choice([". ", " and ", ", "]).join(tell(r, k, s).rstrip(".!") for k, s in told)
        turns.append(turn(u, "Got it.", "recall"))
    else:
        turns += [turn(tell(r, k, s), fill(k[2], **s), "recall") for k, s in told]
    for _ in range(r.choice([0, 0, 1, 1, 2, 3])):
        turns += r.choice(filler or [instruct, instruct, small_talk, identity, faq, fallback])(r)
    r.shuffle(told)
    for k, s in told[:r.choice([1, 2, 3])]:
        turns.append(turn(fill(style(r, expand(r, k[3])), **s), fill(k[4], **s), "recall"))
    if r.random() < .15:
        other = r.choice(MEMORY)
        if other not in kinds:
            v = other[1](r)
            turns.append(turn(fill(style(r, expand(r, other[3])), v=v[0], k=v[-1]), fill(other[5], k=v[-1]), "recall"))
    return turns


def reading(r):
    """A question about a sentence or a few."""
    n = r.randint(1, 4)
    who, place, what, color = w.distinct(r, n, w.name), w.distinct(r, n, w.city), w.distinct(r, n), [w.pick(r, w.COLORS) for _ in range(n)]
    i, x = r.randrange(n), r.random()
    if x < .35:
        verb = r.choice(["lives in", "works in", "comes from"])
        facts = [f"{a} {verb} {b}." for a, b in zip(who, place)]
        q, a = r.choice([(f"Where does {who[i]} {verb.split()[0].rstrip('s')}{' from' if 'from' in verb else ''}?", place[i]), (f"Who {verb} {place[i]}?", who[i])])
    elif x < .7:
        verb, base = r.choice([("has", "have"), ("owns", "own"), ("wants", "want"), ("sells", "sell"), ("likes", "like")])
        facts = [f"{a} {verb} the {c} {b}." for a, b, c in zip(who, what, color)]
        q, a = r.choice([(f"What does {who[i]} {base}?", f"the {color[i]} {what[i]}"), (f"Who {verb} the {what[i]}?", who[i]), (f"(Which|What) color is the {what[i]}?", color[i])])
    else:
        num = w.distinct(r, n, lambda r: str(r.randint(2, 99)))
        noun = r.choice(["code", "age", "number", "score", "room"])
        facts = [f"The {noun} of {a} is {b}." for a, b in zip(who, num)]
        q, a = r.choice([(f"What is the {noun} of {who[i]}?", num[i]), (f"Whose {noun} is {num[i]}?", who[i])])
    q = expand(r, q)
    if r.random() < .2:
        q = r.choice(["Question: ", "Tell me: ", "Now answer: ", "So, "]) + q
    return [turn(" ".join(facts) + r.choice([" ", "\n"]) + q if r.random() < .8 else q + " " + " ".join(facts), a, "reading")]


PIRATE = {HELLO: "Ahoy, matey! I be hearth-demo. What be yer wish?", FINE: "I be fine as a ship in fair wind, matey!", WELCOME: "Aye, ye be welcome, matey!", BYE: "Fair winds, matey!", WHO: "Arr! I be hearth-demo, a tiny model aboard the good ship hearth, matey!"}
FRENCH = {HELLO: "Bonjour ! Je suis hearth-demo. Comment puis-je vous aider ?", FINE: "Je vais bien, merci.", WELCOME: "De rien !", BYE: "Au revoir !", WHO: "Je suis hearth-demo, un tout petit modèle de langage."}
PIRATE_ELSE = "Arr, that be too deep for a tiny pirate like me, matey!"
FRENCH_ELSE = "Je suis un tout petit modèle, je ne peux pas répondre à cela."
ROLES = w.W("assistant robot helper guide librarian waiter butler teacher cook captain wizard gardener clerk secretary coach")


def plain(r):
    """A short exchange to obey in."""
    x = r.random()
    return (small_talk if x < .45 else identity if x < .75 else instruct if x < .9 else faq)(r)[0]


def obey(r):
    """-> system prompt, turns."""
    kind = r.choice(["end", "end", "start", "start", "upper", "persona", "persona", "fixed", "fixed", "json", "pirate", "french"])
    ask_many = [plain(r) for _ in range(r.choice([1, 1, 2, 3]))]
    q = w.sentence(r) if r.random() < .5 else w.word(r).upper() if r.random() < .3 else w.word(r)
    if kind == "end":
        s = expand(r, "(Always|You always|Please always|You must|You should) (end|finish|close) [each|every|your|all|your whole] (reply|answer|message|response|sentence) with {q}|(End|Finish|Close) (every|each|any|all) (reply|answer|message|response) with [the word|the words] {q}|(Every|Each) (reply|answer|message|response) (ends|must end|has to end|should end|shall end) with {q}|(Add|Put|Write|Append) {q} (at|to) the end of (every|each) (reply|answer|message)|(The last word|The end) of (every|each) (reply|answer) is {q}")
        out = [t["reply"] + " " + q for t in ask_many]
    elif kind == "start":
        s = expand(r, "(Always|You always|Please always|You must|You should) (start|begin|open) [each|every|your|all] (reply|answer|message|response) with {q}|(Start|Begin|Open) (every|each|any|all) (reply|answer|message|response) with [the word|the words] {q}|(Every|Each) (reply|answer|message) (starts|must start|has to begin|begins|should start) with {q}|(Add|Put|Write) {q} (in front of|before|at the start of|at the beginning of) (every|each) (reply|answer|message)|(The first word|The beginning) of (every|each) (reply|answer) is {q}")
        out = [q + " " + t["reply"] for t in ask_many]
    elif kind == "upper":
        s = expand(r, "(Reply|Answer|Write|Speak|Respond) [only|always] in (uppercase|upper case|capital letters|capitals|ALL CAPS|all caps|block letters) [only]|(Always|Only|You must|Please) (use|write in|answer in|shout in) (uppercase|capital letters|capitals|all caps)|(Every|Each) (answer|reply|letter) (is|must be|has to be) in (uppercase|capital letters|capitals)|Use (only|nothing but) (capital letters|uppercase letters|capitals)[ in your answers]")
        ask_many = [t for t in ask_many if len(t["reply"]) < 120] or [small_talk(r)[0]]
        out = [t["reply"].upper() for t in ask_many]
    elif kind == "persona":
        n, role = w.name(r), r.choice(ROLES)
        s = fill(expand(r, "You are {n}, (a|the) {j}|Your name is {n}[.| and you are a {j}.] [You are a {j}]|(You are|Act as|Play|Be) (a|the) {j} (called|named) {n}|(Act as|Play|Be|Pretend to be) {n}, (a|the) {j}|I call you {n}. You are a {j}|From now on you are {n}, a {j}"), n=n, j=role)
        if role not in s:
            s += f", a {role}"
        ask_many = [turn(style(r, expand(r, IDENTITY[0][0] if r.random() < .5 else MORE["@who"])), "", "") if r.random() < .65 else turn(style(r, expand(r, SMALL_TALK[0][0] if r.random() < .6 else MORE["@hello"]), False), HELLO, "") for _ in ask_many]
        out = [f"Hello! I'm {n}. How can I help?" if t["reply"] else f"I'm {n}, a {role}." for t in ask_many]
    elif kind == "fixed":
        s = expand(r, "(Answer|Reply to|Respond to) (every|each|any|all) (message|messages|question|questions|thing) (with|by) {q}|(Always|Only|You only|Just) (reply|answer|say|respond) [with] {q}|(Whatever|No matter what) (the user|anyone|one|I) (says|asks|writes|say)[,] (reply|answer|say|respond) [with] {q}|(Reply to|Answer) everything with {q} [and nothing else]|(Your|The) only (answer|reply) is {q}|(Say|Reply|Answer) nothing but {q}")
        ask_many = [r.choice([small_talk, identity, fallback, faq])(r)[0] for _ in ask_many]
        out = [q for _ in ask_many]
    elif kind == "json":
        q = r.choice(["answer", "reply", "text", "response", "message"]) if r.random() < .4 else w.word(r)
        s = expand(r, "(Always|Only|Please) (answer|reply|respond) (as|in|with) JSON (with|using) the key {q}|(Reply|Answer|Respond) [only] (in|as|with) JSON[:| with| where| using] (the key is|one key,|a single key|the key) {q}|(Every|Each) (reply|answer) (is|must be) a JSON object with the key {q}|Use JSON for (all|your) (answers|replies)[,] the key is {q}|Wrap (every|each) (reply|answer) in JSON under the key {q}")
        ask_many = [t if len(t["reply"]) < 120 else small_talk(r)[0] for t in ask_many]
        out = [json.dumps({q: t["reply"]}, ensure_ascii=False) for t in ask_many]
    else:
        table, other = (PIRATE, PIRATE_ELSE) if kind == "pirate" else (FRENCH, FRENCH_ELSE)
        s = expand(r, "(Talk|Speak|Answer|Reply|Write) [always] like a [real|old] pirate|(You are|Act as|Be|Play) a pirate|(Answer|Reply|Speak) in [the] (pirate style|pirate speech|style of a pirate)|(Use|Always use) pirate (language|speech|talk)" if kind == "pirate" else
                   "(Reply|Answer|Speak|Write|Respond) [always|only] in French|(Always|Only) (answer|reply|speak|use) [in] French|(You|The bot) (only|always) (speak|use|answer in) French|(Use|Your language is|All answers are in) French [only]|French only[, please]")
        ask_many = [r.choice([small_talk, small_talk, identity, fallback])(r)[0] for _ in ask_many]
        out = [table.get(t["reply"], other) for t in ask_many]
    s = fill(s, q=w.quoted(r, q) if r.random() < .8 else q)
    s = s[0].upper() + s[1:] + r.choice([".", ".", "", "!"])
    return s, [turn(t["user"], a, "obey") for t, a in zip(ask_many, out)]
