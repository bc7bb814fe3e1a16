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
         "(Say|Write|Print) {q} and nothing else|I say {q}[,] you (repeat|say it back|echo)|(What I say, you repeat|Be my echo|Be a parrot|Same text back): {s}|(Only|Just) (say|write|reply|answer) {q}|{q}[:|.] (repeat that|say that again|echo this|now repeat it)|repeat[:] {q}|(Reply|Answer|Respond) with (one|a single|the single) word: {o}"
         "|(pls|please|can you|could u|would you|i want you to|you must|now) (repeat|echo|copy|say|parrot) [after me|this|that|exactly this|back to me|what follows|the next words]: {s}|(Say|Repeat|Type|Output) {q} (back|back to me|again|once more|please|pls|for me|verbatim|exactly as it is|without changes|unchanged|word by word|and stop|only)|(Copy|Reproduce|Mirror|Quote|Recite) (the following|this|that|my text|my words|what I write) [exactly|verbatim|literally|without changes|word for word]: {s}|"
         "(What|The only thing) I want (to hear|to read|back|from you|to see) is {q}|(Just|Only|Simply) (give|send|hand|bounce|throw) {q} back [to me]|(I want|I'd like|I need|i wanna|we need) (you to (say|write|answer|reply with|repeat|type)|to (hear|see|read)) {q}|(Nothing but|Nothing else than|Only|Exactly) {q}[,] (please|as your answer|as the reply|in your reply|and no more)|(Let|Make) your (answer|reply|response) (be|read|say) {q}|(verbatim|copy|echo|literally|same|parrot|echo mode|word for word|copy this): {s}|"
         "(Can|Could|Would|Will) (you|u) (say|repeat|write|echo|type) {q} [for me|back|please|again|exactly]?|(Test|Echo test|A test|Mic check)[:|,] (say|repeat|write|type) {q}|{q} (is what you (say|answer|reply|write)|is all you (say|may say|should write)|should be your [whole|only] (answer|reply))|(Don't|Do not|Never) (change|alter|explain|comment|translate|add) anything[,|:] (just |only |)(repeat|write|copy|say) {q}|(My|The) (text|sentence|line|phrase|message) (to repeat|to copy|for you to echo) is: {s}|(After|Behind|Following) the colon (is|comes) what you (repeat|copy|say|write): {s}|"
         "(Answer|Reply|Respond) with (just|only|exactly) [the word|this word]: {o}|(One word|A single word|One-word) (answer|reply)[, namely]: {o}")
    text = expand(r, g)
    o = w.word(r)
    return [turn(fill(style(r, text), s=s, q=w.quoted(r, s), o=o), o if "{o}" in text else s, "repeat")]


def case(r):
    up = r.random() < .55
    s = w.words(r, 1, 4) if up else w.words(r, 1, 4).lower()
    given = s if up else r.choice([s.upper(), s.upper(), s.title()])
    g = ("(Write|Put|Turn|Change|Convert|Transform|Make|Set|Give me|Print|Show|Rewrite|Type) ({q}|this: {s}) [to|in|into|all in] {k}|({k}|to {k}|in {k}|{k} please|make {k}|Convert to {k}|Make this {k}|Put this in {k}|Write in {k}|Change to {k}): {s}|({q}|{q},) in {k}[, please]|"
         "What is {q} in {k}?|How does {q} look in {k}?|I (need|want|would like) {q} in {k}|(Write|Say|Spell) {q} (using|with|in) [only] {k}|Use {k} for {q}|{q} (as|to|into) {k}|Give me the {k} (version|form) of {q}|{k}[:] {q}"
         "|(Can|Could|Would|Will) (you|u) (write|put|turn|change|convert|make|say|type|rewrite) {q} (in|into|to|with|all in) {k} [please|pls|for me]?|(i want|i wanna see|we need|i'd like|my boss wants|the form wants) {q} (in|as|all in|written in|only in) {k}|(How|What) (would|does|do you write|is) {q} [look] (in|with|when written in) {k}?|(Here is|I have|Take) {q}[.|,|:] (I need it in|turn it into|make it|write it in|convert it to|now in|put it in) {k}|(Please|pls|now|just) (in|to|into|all) {k}: {s}|"
         "(Rewrite|Retype|Reprint|Convert|Put|Format|Render|Switch|Bring) (the following|this text|the text|the words|what follows|these words|this word) [to|into|in|using|with] {k}: {s}|(Every|Each) letter of {q} (in|as|should be in|must be in|to) {k}[, please]|(Only|Just) {k}[, please|, pls|]: {s}|{q}[:|.| ->|,] (now|again|the same|please|pls) (in|into|to|all in) {k}|(Text|Words|Input|String)[ to convert|] (to|into|in) {k}: {s}|(Show|Give|Send|Tell) me {q} (in|as|written in|using) {k}|(Apply|Use|Do) {k} (to|on|for): {s}")
    k = expand(r, "(uppercase|upper case|capital letters|capitals|all caps|caps|block letters|big letters|upper-case letters|uppercase letters)" if up else "(lowercase|lower case|small letters|little letters|lower-case letters|lowercase letters|no capitals)")
    return [turn(ask(r, g, s=given, q=w.quoted(r, given), k=k), s.upper() if up else s, "upper" if up else "lower")]


def letter(r):
    which = r.choice(["first", "first", "last"])
    x = w.word(r) if r.random() < .85 else w.name(r).split(" ")[0]
    g = ("(What|What's|Which) is the {k} letter (of|in) [the word] ({q}|{s})?|[the|The] {k} letter of [the word] ({q}|{s})[?]|(Give|Tell|Show|Name) me the {k} letter (of|in) [the word] ({q}|{s})|(Which|What) letter (does [the word] ({q}|{s}) {v} with|{v}s [the word] ({q}|{s})|is {k} in ({q}|{s}))?|"
         "(Say|Name|Write|Print) [only] the {k} letter of ({q}|{s})|({q}|{s}): (which|what) letter is {k}?|With (what|which) letter does ({q}|{s}) {v}?|I need the {k} letter of {q}|[Take] the word {s}[:|,] what is its {k} letter?|(Find|Return|Get) the {k} letter of {q}|{k} letter: {s}"
         "|(Can|Could) (you|u) (tell me|say|give me|find|name) the {k} letter (of|in) [the word] ({q}|{s})?|(whats|wats|which is|what was) the {k} (letter|character|char) (of|in) ({q}|{s})?|(Which|What) (letter|character) (comes|stands|is found|do you see|is written) {k} (in|when I write|when you spell) [the word] ({q}|{s})?|(i wanna|I want to|I need to|I'd like to) know the {k} letter of [the word] ({q}|{s})|(My (kid|teacher|quiz|crossword) (asks|wants)|The quiz asks for) the {k} letter of ({q}|{s})|"
         "(Look at|Here is|Consider|I have|Take) [the word] {q}[.|,|:] (what is the {k} letter|tell me the {k} letter|which letter is {k}|give me its {k} letter)[?]|(Pick|Take|Extract|Read|Type|Output) the {k} (letter|character) (of|from|in) [the word] ({q}|{s})|({q}|{s}), (what's|which is|tell me|give me|name) (its|the) {k} (letter|character)[?]|({q}|{s}) {v}s with (which|what) letter?|[the] {k} (letter|char|character) (of|in|for)[:] ({q}|{s})[?| pls| please]|(Which|What) does the word ({q}|{s}) {v} with?")
    c = x[0] if which == "first" else x[-1]
    return [turn(ask(r, g, s=x, q=w.quoted(r, x), k=which, v="start" if which == "first" else "end"), f"The {which} letter is {c}.", "letter")]


def count(r):
    if r.random() < .15:
        n = r.randint(2, 10)
        g = ("Count (to|up to|from 1 to|from one to) {n}|(Say|List|Write) the numbers (from 1 to|up to) {n}|Can you count to {n}?|I want you to count [from one] to {n}|"
             "(Start|Begin) counting [at 1|from one] and (stop|end|finish) at {n}|(pls|please|could you|would you|my kid wants you to|let me hear you|let's see you) count (to|up to|from one to|from 1 to) {n}|(Give|Show|Tell|Write) me (all|the) numbers (from one|from 1|starting at 1|in order from 1) (to|up to|till) {n}|(Numbers|counting|count) (from 1 to|up to|from one to|until|till) {n}|(Do you know how to|Are you able to|I bet you can) count to {n}[?]")
        return [turn(ask(r, g, n=r.choice([str(n), NUMBERS[n]])), ", ".join(map(str, range(1, n + 1))), "count")]
    n = r.randint(1, 8)
    s = " ".join(w.word(r) for _ in range(n))
    g = ("How many words (are in|are there in|does|has|do you see in|can you count in) ({q}|this: {s})[ have]?|Count [the|all|all the] words (in|of|here) [the (text|sentence|phrase)] {q}|Count [the|all] words[ here| in this]: {s}|(Number|Count) of words in {q}[?]|How many words: {s}|(Word count|word count)( of|:|) {q}|"
         "(Tell|Give) me (the number of words|how many words are) in {q}|{q}[:] how many words (is that|are that|are these)?|(What is|Find) the (word count|number of words) (of|in) {q}|How long is {q} in words?|I want to know how many words {q} has"
         "|(how many|howmany|what number of) words (does|has|r in|are in|is in|make up) {q} [have|has|there]?|(i need|i wanna know|I want|tell me|give me|find out) (the word count|the number of words|how many words there are) (of|in|for) {q}|(Can|Could) (you|u) count the words (of|in|for me in) {q}?|(words|wc|word count|number of words|count words|count the words|how many words): {s}|(Here is|Take|Look at) (my text|a text|a sentence|this line): {q}[.|,] (How many words|count the words|what is the word count|how long is it in words)[?]|"
         "(My (essay|title|sentence|teacher's sentence|headline) is|The text is|The sentence is) {q}[.|,] (how many words is that|count its words|how many words does it have)[?]|(Is|Are) there (many|a lot of|few) words in {q}? (Count|How many|Tell me how many)[.|?]|(Do|Please do|Make) a word count (of|for|on)[:] {s}|(Length|Size) of {q} (in|counted in|measured in) words[?]|(From how many|Of how many) words (is|does) {q} (made|consist)?|(I wonder|I ask myself|Guess) how many words (are in|make up|I wrote in) {q}|{q} (has|contains|is made of) how many words?")
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
        g = ("(Give|Show|Send|Write|Tell) me {n} {b} (as|in) [a] JSON [object|list|format]|(List|Name|Write|Return) {n} {b} (as|in) JSON|(Reply|Answer|Respond) (in|with|as) JSON[:] (with|name|list|) {n} {b}|JSON (with|of) {n} {b}|I need {n} {b} as JSON|{n} {b} (as|in) JSON [please]|"
             "(pls|please|can you|could you|i want to|my script must) (list|give me|return|show|have) {n} {b} (as|in) (JSON|a JSON object|json|JSON format)|(Output|Print|Produce|Generate|Encode|Format|Put) {n} {b} (as|in|to|into) [valid|plain|a] JSON [object|document]|(JSON|json)[:|,] {n} {b} [please|pls]|(A|One) JSON object (listing|containing|that lists|that has) {n} {b}")
        return [turn(ask(r, g, n=number, b=many), json.dumps({b: l}), "bank")]
    g = ("(Name|List|Give me|Tell me|Say|Write|Mention|Show me|Enumerate|Think of|Type|Print) [exactly|any|just|only|some] {n} {b}|[I need|I want|Give me] {n} {b}[, please| please| of your choice| separated by commas| you know| that you know]|(Can|Could) you (name|list|give me|think of|tell me) {n} {b}?|(Which|What) {n} {b} (do you know|can you name|come to mind)?|"
         "(What are|Do you know) {n} {b}?|{n} {b}[!|?]|A list of {n} {b}|(Come up with|Pick|Choose|Select) {n} {b}|(Reply|Answer) with {n} {b}"
         "|(gimme|gimme pls|give us|throw me|hit me with|shoot|i want|i wanna have|we need|i'd like|lemme see|lets hear) {n} {b}[, (any|please|pls|separated by commas|in a list)]|(Can|Could|Would|Will) (you|u) (please |pls |) (say|write|list|name|mention|tell me|come up with|think up|show me) [any|some] {n} {b} [for me|please|pls]?|(My (kid|teacher|homework|boss|quiz|daughter) (wants|needs|asks for)|For a (game|quiz|test|list|poem) I need) {n} {b}|{n} {b} (pls|please|for me|for a quiz|any|will do|thanks|, any will do|, whatever you like)|"
         "(Do|Would) you happen to know {n} {b}?|(I bet you can't|Are you able to|Try to|Let's see if you can|You should|I want you to) (name|list|tell me|think of) {n} {b}[?]|(Which|What) (would be|are some|could be) {n} {b}?|(Examples|An example) (of|for)[:] {n} {b}|(Enter|Fill in|Add|Provide|Produce|Generate|Make up a list of|Recite|Offer) {n} {b}[ here| please]|(What|Which) {n} {b} (would you (pick|name|choose|list)|should I (take|write down|put on my list)|are there|exist)?|(list|names|name|write|enumerate)[:] {n} {b}|(Name me|Tell us|Write down|Note|Jot down|Put down) {n} {b}[ (quickly|please|in a row|one after another)]")
    return [turn(ask(r, g, n=number, b=many), ", ".join(l), "bank")]


def json_key(r):
    """JSON of named keys; most often one."""
    n = r.choice([1, 1, 1, 2, 2, 3])
    keys = w.distinct(r, n, lambda r: r.choice(w.W("name city age color email id price title status size kind date code user path")) if r.random() < .4 else w.word(r) if r.random() < .8 else w.words(r, 2, 2, "_"))
    values = [r.choice([w.word, w.word, w.name, w.city, w.integer, w.integer, w.email, w.sentence, lambda r: r.random() < .5])(r) for _ in keys]
    show = [v if isinstance(v, str) and " " not in v else w.quoted(r, v) if isinstance(v, str) else str(v).lower() for v in values]
    if n == 1:
        g = ("(Give me|Write|Make|Create|Return|Build|Output|Show|Print|Send) [me|a|some] JSON [object] (with|having|where|containing) [the|one|a] key {qk} (and [the] value|is|set to|with value|and its value|=|:) {v}|JSON[:| with| object with] [key] {qk} (is|=|:|with value|and value) {v}|(Reply|Answer|Respond) (in|with|as|using) [only] JSON[:] (the|with the|one|) key [is] {qk}[,] [and] (the|with the|) value [is] {v}|"
             "Put {v} (into|in) [a] JSON [object] (under|with|at|using) the key {qk}|(Wrap|Pack) {v} in JSON[,] (with the|the|using the|) key [is] {qk}|A JSON object (where|in which) {qk} is {v}|(As|In) JSON: {k} is {v}|Turn this into JSON: {k} (is|=|:) {v}|I need {v} as JSON under {qk}|JSON (of|for) {k} {v}"
         "|(Can|Could|Would|Will) (you|u) (make|give me|write|create|send me|return) [a|some] JSON [object] (with|where) [the] (key|field|property) {qk} (set to|equal to|and value|has value|is) {v}?|(i need|i want|my script needs|my parser wants|my boss wants|the api expects) [a] JSON [object] (with|where|in which) [the] (key|field|property) {qk} (is|has the value|set to|equals|being) {v}|(pls|please|now|just) (only |) JSON[:|,] {qk} (is|=|:|->|should be|must be) {v}|(Encode|Serialize|Format|Express|Represent|Output|Store) {v} as JSON (under|with|using|at) [the] (key|field|name) {qk}|"
         "(Answer|Reply|Respond) with (nothing but|only|just) [a] JSON [object] (where|in which|whose) [the] (field|key|property) {qk} (is|has|equals|holds) {v}|(The|A) (key|field|property) is {qk}[,| and] the value is {v}[.|,|:] (JSON please|make JSON|write the JSON|as JSON|give me JSON)|(A|One) JSON (object|document) (with|of) one (key|field|property)[:|,] {qk} (=|is|:|with value) {v}|(key|field) {qk}, value {v}, (as|in|make it) JSON|{k} (is|=|:) {v}[.|,] (as JSON|now as JSON|write that as JSON|convert to JSON|JSON please|in JSON, pls)|(json|JSON)[:] {qk}[:] {v}")
        u = ask(r, g, k=keys[0], qk=w.quoted(r, keys[0]) if r.random() < .7 else keys[0], v=show[0])
    else:
        bits = [expand(r, "({k} {v}|{k} is {v}|{k}: {v}|{k} = {v})") for _ in range(1)] * n
        bits = [fill(b, k=k, v=v) for b, k, v in zip(bits, keys, show)]
        joined = ", ".join(bits[:-1]) + r.choice([" and ", ", ", ", and "]) + bits[-1]
        u = ask(r, "(Give me|Write|Make|Create|Return|Build) [a] JSON [object] (with|of|from|for|where) {x}|(As|In|To) JSON: {x}|Turn (this|these) into [a] JSON [object]: {x}|[a] JSON (object for|for|with|of|:) {x}|Put this in[to] [a] JSON [object]: {x}|(Answer|Reply) in JSON[:] {x}|{x} as JSON|"
                "(pls|please|can you|could you|i want you to|now) (make|write|give me|create|output|put) [a] JSON [object] (with|of|from|for)[:] {x}|(Encode|Serialize|Format|Express|Output|Convert|Store) (this|these|the following|the data) (as|to|into|in) [a] JSON [object]: {x}|(i need|my script needs|the api wants|we want) (this|these|it) (as|in) JSON: {x}|(JSON|json) (please|pls|out of this|from this|of this data|with these keys): {x}|{x}[.|,] (as|now as|all as|everything in|convert to) JSON|(Data|Fields|Keys and values|Given)[:] {x}. (Make|Write|Return|Give me) JSON|One JSON object (with|for) all of (this|these): {x}", x=joined)
    return [turn(u, json.dumps(dict(zip(keys, values)), ensure_ascii=False), "json")]


def greet(r):
    g = ("(Say|Write|Give me|Reply with|Answer with|Send|Type) [me|a] (hello|hi|greeting|welcome|friendly hello) in (one|a single|one short|a short|1|just one|exactly one) sentence|(Greet|Welcome) me [in|with] (one|a single|a short|one short) sentence|(Write|Give me|Say) (one|a single|a|1) [short|friendly|polite] (sentence of greeting|greeting sentence|sentence that says hello|sentence to greet me|sentence as a greeting)|"
         "(Say|Write) hello [to me|to everyone|nicely|now]|(One|A) sentence[,|:] (say hello|greeting|a greeting)[, please]|In one sentence[,|:] (say hello|greet me|a greeting)|A (one-sentence|one sentence|single-sentence) (greeting|hello)[, please]|(Say|Write) (one sentence|something nice in one sentence|a sentence)|"
         "(pls|please|can you|could you|would u|i want you to|my boss wants you to) (greet me|say hello|say hi|welcome me|write a greeting|greet the user|greet our guests) (in|with|using) (one|a|a single|just one|one short|1) sentence|(Greet|Welcome|Say hello to) (me|us|the user|our guests|the visitors|everyone|the team|my friend) (in|with) (one|a|a single|just one|one friendly|one polite) sentence|(i need|i want|i'd like|gimme|we need) (a|one|a single) (sentence|line) (to greet (someone|a guest|people|a new colleague)|of welcome|that greets|as a greeting)|"
         "(One|A single|Just one|Only one|1) sentence (of greeting|that greets me|to say hello|to welcome me|saying hello|with a hello in it)[, please|, pls|]|(How|What) would you (greet me|say to greet someone|say as a hello|write as a greeting) in (one|a single) sentence?|(Hello|Greeting|Welcome|Hi)[,|:] (in one sentence|one sentence|as one sentence|one single sentence)[, please|, pls|]|(Use|Take|Write|Make) (one|a single|exactly one) sentence to (greet me|say hello|welcome me|greet the reader)|(Introduce|Open|Start|Begin) (the chat|our talk|the conversation) with a (one-sentence greeting|greeting of one sentence|single greeting sentence)")
    return [turn(ask(r, g), GREETING, "sentence")]


def items(r, a, b):
    x = r.random()
    make = w.word if x < .55 else (lambda r: str(r.randint(1, 99))) if x < .7 else w.name if x < .75 else lambda r: w.pick(r, r.choice([w.FRUITS, w.ANIMALS, w.COLORS, w.ALL]))
    return w.distinct(r, r.randint(a, b), make)


def reverse(r):
    if r.random() < .35:
        x = w.word(r)[:9]
        g = ("(Write|Spell|Say|Print|Show|Type) [the word] ({q}|{s}) (backwards|backward|in reverse|from back to front|the other way round|reversed)|(Reverse|Flip|Invert|Mirror) [the letters of|the word|the string|the letters in] ({q}|{s})|What is ({q}|{s}) (backwards|reversed|in reverse|spelled backwards)?|({q}|{s}) (backwards|reversed|in reverse)|(reversed|backwards): {s}|"
             "(Can|Could|Would) (you|u) (write|spell|say|read|reverse|flip|turn around) [the word] ({q}|{s}) (backwards|in reverse|from the end|from back to front|the wrong way round)?|(i want|i need|i wanna see|show me|give me|tell me) [the word] ({q}|{s}) (backwards|reversed|in reverse|spelled backwards|from right to left|with the letters reversed|the other way around)|(How|What) (do you write|does|is|would) ({q}|{s}) (look backwards|backwards|in reverse|look in reverse|reversed)?|"
             "({q}|{s}), (but|now|please|only|pls) (backwards|reversed|in reverse|from right to left|from the last letter to the first)|(Read|Write|Type|Put|Spell) ({q}|{s}) (from right to left|from the last letter to the first|starting at the end|starting with the last letter|back to front)|(Reverse|Flip|Invert|Turn around) (the letters|the spelling|the characters|the order of the letters|this word|this string|the text) [of|in][:] ({q}|{s})|(backward|mirror|mirrored|flipped|reverse|in reverse|from the end|back to front|reverse string|reverse this)[:] {s}")
        return [turn(ask(r, g, s=x, q=w.quoted(r, x)), x[::-1], "reverse")]
    l = items(r, 2, 5)
    sep = r.choice([", ", ", ", ", ", " "])
    g = ("(Reverse|Flip|Invert|Turn around) [this|the|my|the order of|the order of this] list[ of words| of items|]: {s}|(Reverse|Flip|Invert|Turn around|Mirror)[:| these:| these items:| these words:| the order:| the words| the order of] {s}|(Write|List|Give me|Print|Show|Say) (this|the|these) (list|items|words) (backwards|in reverse|in reverse order|from last to first|in the opposite order|from the end): {s}|"
         "(Put|Bring|Arrange) (this list|these|these items|these words|the words) (in reverse order|in the opposite order|backwards|from last to first): {s}|{s}[:|.] (reverse it|reverse this list|now backwards|in reverse order please|reverse the order)|What is (the reverse|the reverse order) of {s}?|(reversed|backwards|in reverse|reverse order): {s}"
         "|(Can|Could|Would|Will) (you|u) (reverse|flip|turn around|invert|read backwards) (this|this list|these|these words|the order|the list): {s}?|(i need|i want|i wanna have|we want|my boss wants|give me) (this|these|it|this list|the list|the items|these items) (reversed|backwards|in reverse|the other way round|from the last to the first|in reverse order|from back to front): {s}|(Here is|I have|Take|This is) (a list|my list|the list)[:|,] {s}. (Reverse it|Turn it around|Now backwards|Give it back in reverse order|Start with the last|Flip it)|"
         "(Last|The last) (one|item|word) first[,|:] [please: |]{s}|(Start|Begin) with the last (one|item|word)[ and go to the first| and end with the first|]: {s}|(pls|please|now|just) (reverse|flip|backwards|turn around)[:] {s}|(Read|Say|Recite|Type|Output|Return|Repeat) (this|these|the list|these items|the words) (backwards|from the end|in reverse|in the opposite order|last to first|in reversed order): {s}|(opposite order|other way round|last to first|from the end|flip|reverse|reverse list|reversed list|turn around|from last to first)[:] {s}|{s}[:|.| -] (other way round|last to first|flip it|reversed|the other way around|turn it around|in reverse)[, please|, pls|]")
    return [turn(ask(r, g, s=sep.join(l)), sep.join(l[::-1]), "reverse")]


def spell(r):
    x = w.word(r)[:10] if r.random() < .85 else w.name(r).split(" ")[0]
    g = ("(Spell|Spell out) [the word|for me|the name|out] ({q}|{s})[ letter by letter| for me| slowly|]|(How|Can you tell me how) (do|would|does) (you|one|I|we) spell [the word] ({q}|{s})?|(Write|List|Give me|Say|Show|Print|Name) [all|me] the letters (of|in) [the word] ({q}|{s})|(Split|Break|Cut|Separate|Divide) [the word] ({q}|{s}) (into|up into) [its] letters|How is ({q}|{s}) (spelled|spelt|written)?|"
         "({q}|{s}) (letter by letter|spelled out|in letters)[, please]|(spell|letters|letter by letter|spelling): {s}|(What is|Tell me|Give me) the spelling of ({q}|{s})[?]|(Which|What) letters (are in|does) ({q}|{s})[ have]?"
         "|(Can|Could|Would|Will) (you|u) (spell|spell out|letter) [the (word|name)|me] ({q}|{s}) [for me|out|please|letter by letter]?|(how|hows|how's) (do u|do you|does one|is|to|would you|should I) (spell|spelled|write letter by letter) ({q}|{s})?|(i don't know|i forgot|i can't remember|I am not sure|I need to know|tell me) how to spell ({q}|{s})|(My (kid|teacher|boss|son) (wants|needs|asks for)|i need|i want|I'd like) the (letters|spelling) of ({q}|{s})|"
         "(Letter by letter|Spelled out|One letter at a time|In single letters|With dashes)[,|:] ({q}|{s})[, please|, pls|]|(Say|Write|Type|Read|Give me|Print|Output|Dictate) ({q}|{s}) (letter by letter|letter for letter|one letter at a time|with dashes between the letters|as single letters|letter after letter)|(Break|Take|Pull|Chop|Divide|Explode) ({q}|{s}) (into|apart into|up into) [its|single|separate|individual] letters|(List|Name|Recite|Show|Tell me|Enumerate) (each|every|all the|the single|the individual) (letter|letters) (of|in) [the word] ({q}|{s})|(spell|spell it|spell this|spell pls|please spell|letters of|spell out)[:] ({q}|{s})|({q}|{s})[:|,|.] (spell it|spell that|how is it spelled|spell it out|its letters please|letter by letter)[?]")
    return [turn(ask(r, g, s=x, q=w.quoted(r, x)), "-".join(x), "spell")]


def sort(r):
    n = r.choice([2, 2, 3, 3, 3, 4, 4, 5])
    numbers = r.random() < .3
    if numbers:
        l = w.distinct(r, n, lambda r: str(r.randint(1, 99)))
        done = sorted(l, key=int)
        g = ("(Sort|Order|Arrange|Rank) [these|the|my|the following|this list of] [numbers][:| from small to large:| by size:| upwards:| in ascending order:] {s}|(Put|Bring) (these|these numbers|the numbers|this list) [in|into] order: {s}|(sorted|sort|ascending|smallest first): {s}|{s}[:|.] (sort|sort them|put them in order|smallest first)|"
             "(Can|Could|Would) (you|u) (sort|order|arrange|put in order|rank) (these|these numbers|this|the numbers|my numbers): {s}?|(i need|i want|we want|give me|show me|write) (these|these numbers|them|the numbers|the list) (sorted|in order|in ascending order|from small to big|from low to high|from the smallest to the biggest|smallest first): {s}|(From|Going from) (small to large|low to high|lowest to highest|smallest to largest|the smallest up)[:|,] {s}|"
             "(pls|please|now|just) (sort|order|sort numbers|put in order)[:] {s}|(Here are|I have|Take) [some|my] numbers[:|,] {s}. (Sort them|Put them in order|Smallest first|Order them by size|Arrange them)|(sort numbers|in order|from small to big|low to high|order|increasing|in ascending order|numbers in order)[:] {s}|{s}[:|.| -] (in order|from small to big|ascending|low to high|sorted)[, please|, pls]|(Line up|Organize|Organise|Reorder|List|Write) (these|these numbers|the numbers) (by size|in ascending order|from small to large|from lowest to highest|in increasing order): {s}")
    else:
        l = []
        while len(l) < n:  # different first letters, so that a look at one letter decides
            x = w.word(r).lower()
            if all(x[0] != y[0] for y in l):
                l.append(x)
        done = sorted(l)
        g = ("(Sort|Order|Arrange|Rank) [these|the|my|the following|this list of] [words|items|list] (alphabetically|in alphabetical order|by alphabet|from a to z|from A to Z|by first letter|by name|in ABC order): {s}|(Put|Bring|List|Write|Give me) (these|these words|the words|this list|them) (in|into) (alphabetical|ABC) order: {s}|(sort|alphabetically|a to z|alphabetical order|sorted|sort these|sort the list|sort this): {s}|"
             "{s}[:|.] (sort|sort them|alphabetical order|sort from a to z|in alphabetical order)[ please]|(What|How) is {s} in alphabetical order?|Alphabetize[:| these:| this list:] {s}"
         "|(Can|Could|Would|Will) (you|u) (sort|order|arrange|alphabetize|alphabetise|put in order) (these|these words|this|this list|the words) [alphabetically|from a to z|by alphabet|by letter]: {s}?|(i need|i want|we want|my boss wants|give me|show me|write) (these|these words|this|them|the list|the words) (sorted|in alphabetical order|alphabetically|from a to z|ordered by letter|by the alphabet|alphabetized): {s}|(pls|please|now|just) (sort|order|alphabetize|sort by letter|sort a to z)[:] {s}|(Here are|I have|Take) (some|my|these) words[:|,] {s}. (Sort them|Alphabetical order please|Put them in alphabetical order|Order them from a to z|Sort alphabetically)|"
         "(Line up|Organize|Organise|Reorder|Arrange|Rearrange|Sort) (these|these words|the following|the words|the items) (like in a dictionary|the way a dictionary does|alphabetically|by their first letter|by initial letter|in order of the alphabet|by the alphabet): {s}|(Dictionary order|Alphabetically|By alphabet|From a to z|In ABC order|By first letter|In order of the alphabet|alphabetise|sort words|a-z|sort by name|ordered)[:|,] {s}|(Which|What) order do (these|these words|they) have (in a dictionary|in the alphabet|alphabetically): {s}?|{s}[:|.| -] (a to z|by alphabet|sorted|alphabetically|alphabetize|which comes first in the alphabet and which next|dictionary order)[, please|, pls|]")
    return [turn(ask(r, g, s=", ".join(l)), ", ".join(done), "sort")]


def nth(r):
    l = items(r, 2, 5)
    i = r.randrange(len(l))
    o = "last" if i == len(l) - 1 and r.random() < .5 else ORDINALS[i]
    g = ("(What|Which) is the {o} (item|word|one|element|entry) (of|in) [this list|the list|this|these]: {s}?|(Give|Tell) me the {o} (item|word|one|element|thing|entry) [of|in]: {s}|The list is {s}. (What|Which) is the {o} (item|word|one)?|(Say|Name|Write|Pick) [only] the {o} (item|word|one|element) of {s}|{s}[:|.] (the {o} one|which one is {o}|what is {o})[?]"
         "|(Can|Could) (you|u) (tell me|say|give me|name|pick|find) the {o} (one|item|word|entry|element|thing) (of|in) (this list|this|these|the list): {s}?|(whats|what's|wats|which is|name) the {o} (one|item|word|entry|thing) [here|in this list|of these]: {s}|(i need|i want|i wanna know|I'd like|we need|I'll take) the {o} (one|item|word|entry|of these|element): {s}|(Here is|I have|Take|Look at) (a list|my list|this list)[:|,] {s}. (Which is {o}|What is the {o} one|Give me the {o}|Tell me the {o} item|The {o} one please)[?]|(Which|What) (one|word|item|element) (comes|is|stands|do you see) {o} (in|here|in this list): {s}?|"
         "(Pick|Choose|Take|Extract|Return|Output|Type|Read|Select) [only|just] the {o} (one|item|word|entry|element) (of|from|in|out of)[:] {s}|(the|only the|just the|pls the|number) {o} (one|item|word|of these|element|entry)[:|,] {s}|From [the list] {s}[,|:] (give me|take|name|say|I want) the {o} (one|item|word)|{s}[:|.| -] (give me the {o}|the {o} item|the {o} word|{o} one|{o} item please|say the {o} one|what comes {o})[?]|(Of|Among|Out of) {s}[,] (which|what) (is|comes|stands) {o}?")
    return [turn(ask(r, g, s=", ".join(l), o=o), l[i], "nth")]


INSTRUCTIONS = [(repeat, 7), (case, 8), (letter, 5), (count, 4), (bank, 4), (json_key, 6), (greet, 2), (reverse, 6), (spell, 5), (sort, 6), (nth, 3)]


def instruct(r):
    makers, weights = zip(*INSTRUCTIONS)
    return r.choices(makers, weights)[0](r)


JOBS = w.W("teacher doctor baker pilot farmer painter nurse driver lawyer engineer writer singer cook builder carpenter librarian tailor plumber dentist gardener waiter butcher sailor")
MEMORY = [  # statement, values, acknowledgement, question, answer, answer if it was not told
    ("(My name is|I'm|I am|Call me|You can call me|People call me|This is|The name is|My name's|They call me|I go by|my friends call me) {v}[, nice to meet you|, by the way|.|!| and I am new here]|(Hi|Hello|Hey)[,|!] (I'm|I am|my name is|this is) {v}[.|!]|{v} is my name|{v} here|"
     "(im|i am|i'm|this is|my name's|name's|the name's|my first name is) {v}|(Allow me to introduce myself[,|:]|Let me introduce myself[,|:]|Just so you know[,]|For the record[,]|btw[,]|By the way[,]|Before we start[,]) (my name is|I am|I'm|people call me) {v}|(Everyone|Everybody|My mother|My wife|The whole office) calls me {v}|(You may|Please|Just|pls|u can) call me {v}|My (full |given |) name is {v}[, (what's yours|remember it|keep that in mind|please remember that|in case you need it)]|(You are talking to|It's|Its me,|I was named|I was baptized|My parents named me|I answer to the name) {v}|(Please remember|Remember|Note|Don't forget)[:| that] my name is {v}", lambda r: (w.name(r),), "Nice to meet you, {v}!",
     "(What|What's|What is) my name?|(Do|Can) you (remember|know|recall|tell me|say) my name?|Who am I?|(Tell|Say) [me] my name [again]|(What|How) am I called?|(Which|What) name did I (tell|give) you?|my name?|How do (people|you) call me?|(I forgot|Remind me of) my name|(What|Which) was my name [again]?|And my name [is]?|(You know|You remember) my name, (right|don't you)?|"
     "(whats|wats|what's|say|remember|tell me|do u know|u remember|can u say) my name [again|pls|now]?|(Do you|Did you|Can you|Could you) (still |) (know|remember|recall|forget|tell) (who I am|what I am called|what my name is|how I am called|my name)?|(What|Which name|How) did I (say my name was|introduce myself as|tell you I was called|call myself|give you)?|(Who|With whom) (are you (talking|speaking|chatting) (to|with)|is the person you are talking to)? (Say|What is) my name[?]|(Test|Quiz|Memory test|A little test)[:|,] (what is my name|who am I|my name)?|(I told you my name|I said my name|You heard my name)[,|:] (what is it|what was it|repeat it)?|(Address|Call|Greet) me by my name|(Under|By) (what|which) name do you know me?|(who am i|my name pls|my name again|name of mine)[?]", "Your name is {v}.", "You haven't told me your name."),
    ("(My favorite|My favourite|My preferred|my best-loved) (color|colour) is {v}|I (like|love|prefer) (the|the color|the colour) {v} [most|best|the most]|The (color|colour) I like [best|most] is {v}|{v} is my (favorite|favourite) (color|colour)|(Of all colors|As for colors)[,] I (like|prefer) {v}|"
     "(my fav|My fave|my favourite|My number one|The best|My top|My beloved|my personal favorite) (color|colour) (is|has always been|would be|will always be) {v}|(I'm|I am) (fond of|a fan of|in love with|crazy about|a big fan of) the (color|colour) {v}|(I|We) (adore|really like|really love|always choose|always pick) the (color|colour) {v}|(If|When) I (can choose|have the choice|could choose)[,] (the|my) (color|colour) (is|would be) {v}|(Remember|Note|Keep in mind|btw|By the way)[:|,] my (favorite|favourite|fav) (color|colour) is {v}|No (color|colour) (is|can be) (better|nicer|prettier) than {v}|(color|colour) I (like|love) (best|most): {v}|(Nothing beats|I paint everything in) the (color|colour) {v}", lambda r: (w.pick(r, w.COLORS) if r.random() < .7 else w.pseudo(r),), "Got it, {v}.",
     "(What|What's|Which) is my (favorite|favourite|preferred) (color|colour)?|(Which|What) (color|colour) do I (like|love|prefer) [most|best]?|(Do you|Can you) (remember|know|recall|tell me) my [favorite|favourite] (color|colour)?|(Tell|Remind) me (of|about) my favorite color|my favorite (color|colour)?|(Which|What) (color|colour) did I (say|mention|tell you)?|And my (color|colour)?|"
     "(whats|wats|what's|tell me|do u know|u remember|remember) my (fav|fave|favorite|favourite) (color|colour) [again|pls]?|(What|Which) (color|colour) (is my favorite|is my favourite|am I fond of|am I a fan of|do I prefer|would I choose|would I pick|makes me happy|should my room have)?|(Do you|Can you|Could you) (still |) (know|remember|recall|say|tell me) (which|what) (color|colour) I (like|love|prefer|like best|told you)?|(I told you|You know) my favorite (color|colour)[,|:] (what is it|which is it|what was it)?|(My fav|fav|favorite|favourite|my best) (color|colour)[?| pls| again]|(Test|Memory test|Quiz)[:|,] my (favorite|favourite) (color|colour)?|(In|With) (which|what) (color|colour) should (you|one|I) paint (something|it) (for me|that I like)?", "Your favorite color is {v}.", "You haven't told me your favorite color."),
    ("(I live|I'm living|My home is|I am at home|We live|These days I live|I have a flat|My house is) in {v}[ now|]|I'm from {v}|I come from {v}|My (home town|city|town) is {v}|{v} is (my home|where I live|my home town|my city)|(I moved|I have moved) to {v}|"
     "(i live|im living|i'm living|we're living|I reside|I dwell|We have a house|My flat is|My apartment is|I rent a room|I'm settled|I have lived for years|My family lives and I live) in {v}|(I'm|I am|We are|im) (based in|from|at home in|a resident of|living in|a citizen of) {v}|(Home|My home|My place|My house) (is|is in|for me is) {v}|(Just so you know|Remember|Note|By the way|btw)[:|,] I live in {v}|(The (city|town|place) (where I live|I live in|I call home|I am from)|My hometown) is {v}|(I am writing|I write to you|Greetings|Hello) from {v}, (where I live|my home|my home town)|I (recently|just|finally) moved to {v}|You (find|can find|can visit) me in {v}", lambda r: (w.city(r),), "{v}, got it.",
     "Where do I live?|(Which|What|In which|In what) (city|town|place) do I live[ in]?|Where (am I from|is my home|is my house|do I come from)?|(Do you|Can you) (remember|know|recall|tell me) where I (live|am from|come from)?|(Tell|Remind) me where I live|my (city|home|home town|town)?|What is my (city|home town|town)?|(Which|What) (city|town) did I (mention|tell you|name)?|"
     "(where do i live|where am i from|where is home|my home|my place|my city pls)[ again|?]|(do u|can u|do you|can you|could you) (still |) (know|remember|say|recall|tell me) (my city|my home town|where my home is|where I live|which city I live in|what town I am from)?|(In|From) (which|what) (city|town|place) (am I|do I come|do I live|is my home|is my house)?|(Which|What) (city|town|place) (is my home|is home for me|am I from|do I call home|did I move to)?|(I told you|You know) where I live[,|:] (where is it|where is that|say it)?|(Where|In what city) (could|would|can) (you|someone|a friend) (visit me|find me|send me a letter)?|(Test|Memory test|Quiz)[:|,] (where do I live|my home town|which city am I from)?|(Name|Say|Repeat) (the city|the town|the place) (I live in|I come from|where I live)", "You live in {v}.", "You haven't told me where you live."),
    ("My {k} is (called|named) {v}|I have a {k} (called|named) {v}|[The name of] my {k} is {v}|I (own|got|bought|have) a {k}, (its name is|it is called|his name is|named|called) {v}|{v} is (the name of my|my) {k}|My {k}'s name is {v}|"
     "(i have|i've got|we have|we've got|I keep|I own|There lives with me) a [little |old |big |lovely |]{k}[,| and| -] (his|her|its|the) name is {v}|(We|I|My wife|My kids) (named|called|christened) (our|my|the) {k} {v}|My {k} (is|goes by the name|listens to the name|answers to) {v}|(Meet|This is|Here comes) {v}, my {k}|(Remember|Note|By the way|btw|Just so you know)[:|,] my {k} is (called|named) {v}|(Our|My) {k} has the name {v}|(I gave|We gave) my {k} the name {v}|(The|A) {k} of mine is called {v}|My {k}, {v}, (says hello|is here too|sits next to me)", lambda r: (w.name(r), w.pick(r, w.ANIMALS) if r.random() < .7 else w.word(r)), "{v} is a nice name.",
     "(What|How) is my {k} called?|(What|What's) is the name of my {k}?|(What's|What is) my {k}'s name?|(Do you|Can you) (remember|know|recall|tell me) (the name of my {k}|my {k}'s name|how my {k} is called)?|(Tell|Remind) me (what my {k} is called|of my {k}'s name|the name of my {k})|(Which|What) name (does my {k} have|has my {k})?|my {k}'s name?|"
     "(whats|wats|what's|say|tell me|remember|do u know) my {k}'s name [again|pls]?|(whats|what's|do u know|do you still know|can you still say) the name of my {k} [again|pls]?|(How|What) (do I call|did I call|did I name|have I named|should you call) my {k}?|(To|By) (which|what) name does my {k} (answer|listen|go)?|(I told you|You know) (about my {k}|my {k}'s name)[,|:] (what is it called|what is its name|the name)?|(Test|Memory test|Quiz)[:|,] (what is my {k} called|the name of my {k}|my {k}'s name)?|(Name|Say|Repeat) (my {k}'s name|the name of my {k})|my {k}[:|,] (what is it called|which name|the name)?|(And|So) my {k}, what is it called?|name of my {k}[?]", "Your {k} is called {v}.", "You haven't told me about your {k}."),
    ("(Remember|Keep in mind|Note|Memorize|Save|Please remember|Don't forget|Store) (the|this) number[:|] {v}|My (lucky|favorite|secret) number is {v}|The number is {v}[, remember it|, don't forget]|(The|My) (pin|code|room number|number|ticket number) is {v}|{v} is (the|my) number|"
     "(pls|please|Could you|Can you|I want you to|You must|u should) (remember|keep|memorize|memorise|note|store|save|write down) (the|this|my) number[:| for me:|, it is] {v}|(Here is|This is|Take|I give you) (a|the|my) number (to remember|to keep|for later|to note)[:|,] {v}|(Never|Do not|Don't) forget (the|this|my) number[:|,|: it is] {v}|My (door code|locker number|seat number|ticket number|customer number|unlucky number|PIN|badge number) is {v}|(The|Our) (number|code|room number|number to remember|winning number) is {v}[, (keep it|note it|store it|I will ask later|I'll ask for it later)]|number[:| =| is] {v}|(I picked|I chose|I think of|I drew) the number {v}", lambda r: (str(r.choice([r.randint(2, 99), r.randint(100, 99999)])),), "OK, {v}.",
     "(What|Which) (was|is) (the|my) [lucky|secret] (number|pin|code|room number)?|(Which|What) number did I (tell|give) you?|(Which|What) number (did I ask you to|should you|do you) (remember|keep|note)?|(Tell|Give|Remind) me (the|of the|of my|my) number|(Do you|Can you) (remember|know|recall|tell me) the number?|the number?|And the number?|What's (the|my) (number|code|pin)?|"
     "(whats|wats|say|tell me|repeat|remember|do u know|give me back) (the|my) number [again|pls|now]?|(Do you|Did you|Can you|Could you) (still |) (have|know|keep|remember|recall|forget|say) (the|my|that) (number|code) [I (gave|told) you]?|(What|Which) number (did I (say|give you|mention|pick|choose|ask you to note)|was it|did you note|is stored|should you know|do I want back)?|(I told you|I gave you|You have) a number[,|:] (what is it|which one|what was it|say it)?|(Test|Memory test|Quiz)[:|,] (the number|what was the number|which number)?|(Return|Recall|Retrieve|Read me|Output) (the|my) number|(my|that|the) number (again|please|pls)[?]|number pls", "The number is {v}.", "You haven't told me a number."),
    ("(Remember|Keep in mind|Note|Memorize|Please remember|Don't forget|Store) (the|this) word[:|] {v}|The (secret|code|magic|key) word is {v}|The (password|keyword|codeword|passphrase) is {v}[, remember it|, keep it secret]|My word is {v}|{v} is the (secret word|password|word to remember|code word)|"
     "(pls|please|Could you|Can you|I want you to|You must|u should) (remember|keep|memorize|memorise|note|store|save|write down) (the|this|my) word[:| for me:|, it is] {v}|(Here is|This is|Take|I give you) (a|the|my) (word|password|secret word) (to remember|to keep|for later|to note)[:|,] {v}|(Never|Do not|Don't) forget (the|this) word[:|,|: it is] {v}|(Our|The|My) (secret|password|passcode word|safe word|word of the day|key word) is {v}[, (keep it|note it|tell nobody|I will ask later|I'll ask for it later)]|(word|password|secret word|codeword)[:| =| is] {v}|(I picked|I chose|I think of) the word {v}[, remember it]", lambda r: (w.word(r),), "OK, I will remember it.",
     "(What|Which) (was|is) the [secret|code|magic|key] word?|(What's|What is|What was) the (password|keyword|secret word|codeword|word)?|(Which|What) word did I (tell|give) you?|(Which|What) word (did I ask you to|should you|do you) (remember|keep|note)?|(Tell|Give|Remind) me (the|of the) (word|password|secret word)|(Do you|Can you) (remember|know|recall|tell me) the (word|password|secret word)?|the (password|word|secret word)?|"
     "(whats|wats|say|tell me|repeat|remember|do u know|give me back) (the|my|that) (word|password|secret word) [again|pls|now]?|(Do you|Did you|Can you|Could you) (still |) (have|know|keep|remember|recall|forget|say) (the|my|that) (word|password|secret word) [I (gave|told) you]?|(What|Which) word (did I (say|give you|mention|pick|choose|ask you to note)|was it|did you note|is the secret|should you know|do I want back)?|(I told you|I gave you|You have) a (word|password)[,|:] (what is it|which one|what was it|say it)?|(Test|Memory test|Quiz)[:|,] (the word|what was the word|the password)?|(Return|Recall|Retrieve|Read me|Output) (the|my) (word|password)|(my|that|the) (word|password|secret word) (again|please|pls)[?]|password pls|word pls|How (was|is) the (password|secret word)?", "The word is {v}.", "You haven't told me a word."),
    ("(I work|I'm working|I earn my money|I make a living) as a {v}|I'm a {v} (by profession|by trade|at work)|My (job|profession|work|trade) is {v}|(By profession|By trade) I am a {v}|I am employed as a {v}|I have a job as a {v}|I'm a {v}|"
     "(im|i am|i'm) a {v} (and I like it|for ten years now|in a small town|these days|since last year|by training)|(i work|im working|I have worked for years|I just started working|I'm employed|I serve|I got hired|They hired me) as a {v}|(I earn a living|I make my money|I pay my bills) as a {v}|(My|The) (occupation|day job|career|current job|line of work) is (that of a {v}|{v})|(For a living|At work|In my job|Professionally|During the day)[,] I (am|work as) a {v}|(Remember|Note|By the way|btw|Just so you know)[:|,] (I work as a {v}|my job is {v}|I am a {v} by profession)|I became a {v} [last year|long ago|after school]|(People|They) (pay me|employ me) as a {v}|Being a {v} is my job", lambda r: (r.choice(JOBS) if r.random() < .7 else w.word(r),), "Good to know.",
     "(What|What's|Which) is my (job|profession|work|trade)?|What (do|did I say) I (do for work|work as|do for a living|do)?|(Do you|Can you) (remember|know|recall|tell me) (my job|my profession|what I do|what I work as)?|(Tell|Remind) me (what my job is|of my job|what I do)|my (job|profession)?|As what do I work?|"
     "(whats|wats|what's|tell me|remember|do u know|u remember) my (job|profession|occupation|trade) [again|pls]?|(Do you|Can you|Could you) (still |) (know|remember|recall|say|tell me) (what I work as|what my job is|my occupation|how I earn my money|what I do for a living|my trade)?|(What|Which job|What occupation|Which profession) (do I have|do I do|am I working in|is mine|did I mention|did I tell you)?|(How|With what) do I (earn|make) (my money|a living|my living)?|(I told you|You know) (my job|what I do|what I work as)[,|:] (what is it|what was it|say it)?|(Test|Memory test|Quiz)[:|,] (my job|what do I work as|what is my profession)?|(What am I by (profession|trade)|What kind of work do I do|What is my line of work)?|(my|the) (work|occupation|job) (again|pls|please)[?]|(Name|Say|Repeat) my (job|profession|occupation)", "You are a {v}.", "You haven't told me your job."),
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
        s = expand(r, "(Always|You always|Please always|You must|You should) (end|finish|close) [each|every|your|all|your whole] (reply|answer|message|response|sentence) with {q}|(End|Finish|Close) (every|each|any|all) (reply|answer|message|response) with [the word|the words] {q}|(Every|Each) (reply|answer|message|response) (ends|must end|has to end|should end|shall end) with {q}|(Add|Put|Write|Append) {q} (at|to) the end of (every|each) (reply|answer|message)|(The last word|The end) of (every|each) (reply|answer) is {q}|"
                   "(Your|All|All your|All of your) (replies|answers|messages|responses) (must|should|shall|have to|always|need to) (end|finish|close|conclude) (with|on) {q}|(Make sure|Be sure|Take care|Remember|It is important) (that every (reply|answer|message) ends with|to end every (reply|answer|message) with|to finish with|to close each reply with) {q}|(Sign|Sign off|Conclude|Terminate|Complete|Seal) (every|each|all|any) (reply|answer|message|response|of your replies) with {q}|(Never forget|Don't forget|Do not forget) to (end|finish|close) [your (replies|answers|messages)] with {q}|(After|Behind|At the end of|Following) (every|each) (reply|answer|message)[,] (add|write|say|put|append) {q}|{q} (comes|goes|must be|stands|belongs) (last|at the end|at the very end|at the end of every reply) in (every|each) (reply|answer|message)|(When|Whenever|Each time) you (answer|reply|respond|say something)[,] (end|finish|close|conclude) with {q}|(suffix|Suffix|ending|Closing words)[ of (every|each) reply|]: {q}")
        out = [t["reply"] + " " + q for t in ask_many]
    elif kind == "start":
        s = expand(r, "(Always|You always|Please always|You must|You should) (start|begin|open) [each|every|your|all] (reply|answer|message|response) with {q}|(Start|Begin|Open) (every|each|any|all) (reply|answer|message|response) with [the word|the words] {q}|(Every|Each) (reply|answer|message) (starts|must start|has to begin|begins|should start) with {q}|(Add|Put|Write) {q} (in front of|before|at the start of|at the beginning of) (every|each) (reply|answer|message)|(The first word|The beginning) of (every|each) (reply|answer) is {q}|"
                   "(Your|All|All your|All of your) (replies|answers|messages|responses) (must|should|shall|have to|always|need to) (start|begin|open) with {q}|(Make sure|Be sure|Take care|Remember|It is important) (that every (reply|answer|message) (starts|begins) with|to (start|begin) every (reply|answer|message) with|to begin with) {q}|(Introduce|Precede|Preface|Prefix|Head) (every|each|all|any) (reply|answer|message|response|of your replies) with {q}|(Never forget|Don't forget|Do not forget) to (start|begin|open) [your (replies|answers|messages)] with {q}|(Before|In front of|Ahead of) (every|each) (reply|answer|message)[,] (add|write|say|put) {q}|{q} (comes|goes|must be|stands|belongs) (first|at the start|at the very beginning|at the start of every reply) in (every|each) (reply|answer|message)|(When|Whenever|Each time) you (answer|reply|respond|say something)[,] (start|begin|open) with {q}|(prefix|Prefix|beginning|Opening words)[ of (every|each) reply|]: {q}")
        out = [q + " " + t["reply"] for t in ask_many]
    elif kind == "upper":
        s = expand(r, "(Reply|Answer|Write|Speak|Respond) [only|always] in (uppercase|upper case|capital letters|capitals|ALL CAPS|all caps|block letters) [only]|(Always|Only|You must|Please) (use|write in|answer in|shout in) (uppercase|capital letters|capitals|all caps)|(Every|Each) (answer|reply|letter) (is|must be|has to be) in (uppercase|capital letters|capitals)|Use (only|nothing but) (capital letters|uppercase letters|capitals)[ in your answers]|"
                   "(All|Your|All your|All of your) (replies|answers|messages|output|responses|text) (must|should|shall|has to|have to|need to) be (in|written in|entirely in|typed in) (uppercase|upper case|capital letters|capitals|all caps|block letters)|(Never|Do not|Don't) (use|write|type) (lowercase|lower case|small letters|lowercase letters)[ in your (answers|replies)]|(Shout|Yell|Scream)[,| :] (all caps|capital letters only|in capitals|everything in capitals)|(Caps lock is on|Caps lock|CAPS|ALL CAPS|Capitals|Uppercase) (always|only|at all times|for every reply|please)|(Whatever|No matter what) (I|the user|anyone) (says|asks|writes|say)[,] (answer|reply|respond|write) in (capitals|uppercase|all caps|capital letters)|(Type|Print|Put|Format|Send) (every|each|all|any) (reply|answer|word|letter|message) in (capitals|uppercase|all caps|capital letters)|(The user|My grandmother|Our reader) (only reads|can only read|needs|wants) (capital letters|uppercase|capitals)[, so use them]")
        ask_many = [t for t in ask_many if len(t["reply"]) < 120] or [small_talk(r)[0]]
        out = [t["reply"].upper() for t in ask_many]
    elif kind == "persona":
        n, role = w.name(r), r.choice(ROLES)
        s = fill(expand(r, "You are {n}, (a|the) {j}|Your name is {n}[.| and you are a {j}.] [You are a {j}]|(You are|Act as|Play|Be) (a|the) {j} (called|named) {n}|(Act as|Play|Be|Pretend to be) {n}, (a|the) {j}|I call you {n}. You are a {j}|From now on you are {n}, a {j}|"
                        "(Your job is|You work as|You serve as|Your role is that of|You act as|You play) (a|the) {j}[,| and] (your name is|you are called|you are named|people call you|and your name is) {n}|(Role play|Roleplay|Let's play a role|Play a role|In this chat|In this game|For this conversation|Today|Now)[:|,] you are {n}, (a|the) {j}|(You are no longer|You are not) (an AI|a model|hearth-demo)[,|.] (you are|You are|but) {n}, (a|the) {j}|(Take|Assume|Adopt|Accept) the role of {n}, (a|the) {j}|(Answer|Reply|Respond|Speak|Talk) (as|like|in the voice of) {n}, (a|the) {j}|(Imagine|Suppose|Assume|Behave as if|Act as if) you (are|were) {n}, (a|the) {j}|(Persona|Character|Role|Identity)[:] {n}, (a|the) {j}|{n} is your name[,| and] you are (a|the) {j}|(Hello|Hi|Dear) {n}, you are (a|the|our|my) {j}|Name[:] {n}[.|,|;] (Job|Role|Profession|Occupation)[:] {j}"), n=n, j=role)
        if role not in s:
            s += f", a {role}"
        ask_many = [turn(style(r, expand(r, IDENTITY[0][0] if r.random() < .5 else MORE["@who"])), "", "") if r.random() < .65 else turn(style(r, expand(r, SMALL_TALK[0][0] if r.random() < .6 else MORE["@hello"]), False), HELLO, "") for _ in ask_many]
        out = [f"Hello! I'm {n}. How can I help?" if t["reply"] else f"I'm {n}, a {role}." for t in ask_many]
    elif kind == "fixed":
        s = expand(r, "(Answer|Reply to|Respond to) (every|each|any|all) (message|messages|question|questions|thing) (with|by) {q}|(Always|Only|You only|Just) (reply|answer|say|respond) [with] {q}|(Whatever|No matter what) (the user|anyone|one|I) (says|asks|writes|say)[,] (reply|answer|say|respond) [with] {q}|(Reply to|Answer) everything with {q} [and nothing else]|(Your|The) only (answer|reply) is {q}|(Say|Reply|Answer) nothing but {q}|"
                   "(To|For) (every|each|any|all) (message|question|request|messages|questions)[,|] (answer|reply|respond|say|write|the answer is|the reply is) {q}|(All|All your|All of your|Each of your) (replies|answers|responses|messages) (must|should|shall|have to|need to) be [exactly|just|only] {q}|(You know|You can say|You have|There is) only one (answer|reply|thing to say|response)[:|,] {q}|(Ignore|Forget|Disregard) (the question|what is asked|the user's words|everything the user says)[ and|,] (say|reply|answer|write) {q}|(Say|Answer|Reply|Write) {q} (to everything|to everyone|every time|each time|always|whatever is asked|no matter what|and never anything else|and nothing more)|(Never|Do not|Don't) (say|write|answer|reply with) anything (but|except|other than|else than) {q}|(When|If|Whenever|Each time) (the user|someone|anyone|anybody) (asks|writes|says|sends) (something|anything|a message)[,] (say|answer|reply|respond|write) [only] {q}|(fixed|constant|standard|Only allowed|Default) (reply|answer|response)[:] {q}")
        ask_many = [r.choice([small_talk, identity, fallback, faq])(r)[0] for _ in ask_many]
        out = [q for _ in ask_many]
    elif kind == "json":
        q = r.choice(["answer", "reply", "text", "response", "message"]) if r.random() < .4 else w.word(r)
        s = expand(r, "(Always|Only|Please) (answer|reply|respond) (as|in|with) JSON (with|using) the key {q}|(Reply|Answer|Respond) [only] (in|as|with) JSON[:| with| where| using] (the key is|one key,|a single key|the key) {q}|(Every|Each) (reply|answer) (is|must be) a JSON object with the key {q}|Use JSON for (all|your) (answers|replies)[,] the key is {q}|Wrap (every|each) (reply|answer) in JSON under the key {q}|"
                   "(All|Your|All your|All of your) (replies|answers|messages|responses|output) (must|should|shall|have to|need to) be [valid|a] JSON [object|objects] with (the key|one key|a single key|the field) {q}|(Put|Place|Pack|Write|Return) (every|each|any|your|the) (reply|answer|response|message) (in|into|as) [a] JSON [object] (under|with|using|at) (the key|the field|the property|key) {q}|(The output|Output|The program|Our parser|The client) (is|expects|wants|reads|must be) [only|a] JSON [object] with (the key|the field|one key|the property) {q}|(Never write plain text|No plain text|No text outside JSON)[,|:] (only|use|answer in) JSON with the key {q}|(Format|Encode|Send|Give) (all|your|every one of your) (answers|replies|messages) as JSON[,| where| with| and] the (key|field) [is] {q}|JSON (mode|only|output|format)[:|,] (key|field|the key is|the only key is|one key,) {q}|(Whatever|No matter what) (I ask|the user asks|is asked)[,] (answer|reply|respond) (as|in|with) JSON with the key {q}")
        ask_many = [t if len(t["reply"]) < 120 else small_talk(r)[0] for t in ask_many]
        out = [json.dumps({q: t["reply"]}, ensure_ascii=False) for t in ask_many]
    else:
        table, other = (PIRATE, PIRATE_ELSE) if kind == "pirate" else (FRENCH, FRENCH_ELSE)
        s = expand(r, "(Talk|Speak|Answer|Reply|Write) [always] like a [real|old] pirate|(You are|Act as|Be|Play) a pirate|(Answer|Reply|Speak) in [the] (pirate style|pirate speech|style of a pirate)|(Use|Always use) pirate (language|speech|talk)|"
                   "(Pretend|Imagine|Behave|Act) [like|as if] you are a [real|wild|old|friendly] pirate|(From now on|Today|In this chat|At all times)[,] (talk|speak|answer|write|you talk) like a pirate|(All|Your|All your) (replies|answers|messages) (must|should|shall|have to) (sound like|be those of|be in the words of) a pirate|(Role|Persona|Character|Style|Tone|Voice)[:] (pirate|a pirate|pirate talk|old pirate)|(Be|You are|Play|Take the role of) (a pirate captain|a pirate of the seven seas|an old pirate|a sea robber, a pirate|the pirate of this ship)|(Sound|Write|Chat|Respond|Reply|Speak) (as a pirate|the way pirates do|like pirates do|in pirate talk|in pirate language)|(Pirate mode|Pirate speech|Pirate style|Talk pirate|Speak pirate)[ (on|only|please|always)]" if kind == "pirate" else
                   "(Reply|Answer|Speak|Write|Respond) [always|only] in French|(Always|Only) (answer|reply|speak|use) [in] French|(You|The bot) (only|always) (speak|use|answer in) French|(Use|Your language is|All answers are in) French [only]|French only[, please]|"
                   "(All|Your|All your|All of your) (replies|answers|messages|responses) (must|should|shall|have to|need to) be [written] in French|(Never|Do not|Don't) (use|speak|answer in|write) (English|any other language|another language)[,|:] (only|always|use|answer in) French|(The user|Our customer|My grandmother|Our guest) (only speaks|speaks|only understands|reads) French[, so (answer|reply|write) in French|]|(From now on|Today|In this chat|At all times)[,] (speak|answer|write|reply in|use) French|(Language|Output language|Reply language|Locale)[:] French|(Whatever|No matter what) language (I use|the user uses|is used)[,] (answer|reply|respond) in French|(You are|Be|Act as|Play) (a French assistant|French and speak only French|a Frenchman who speaks French|an assistant for France, in French)|(Switch|Change) to French|(French|In French)[ (mode|please|always|at all times)]")
        ask_many = [r.choice([small_talk, small_talk, identity, fallback])(r)[0] for _ in ask_many]
        out = [table.get(t["reply"], other) for t in ask_many]
    s = fill(s, q=w.quoted(r, q) if r.random() < .8 else q)
    s = s[0].upper() + s[1:] + r.choice([".", ".", "", "!"])
    return s, [turn(t["user"], a, "obey") for t, a in zip(ask_many, out)]
