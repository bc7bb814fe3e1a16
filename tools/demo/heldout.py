"""Writes heldout.json: the prompts of the evaluation. Phrasings, tools and parameter names are written here by hand and are
none of the generator's; words and names are those that words.held keeps from training, or are only here. This is the fourth set:
nothing of the first three is in it, because the generator was changed after the failures on the third had been looked at. It was
written without the training phrasings in sight and while the run it judges was still training, and is not for tuning; --check looks
for its prompts, tools and names in training text, and what it found has been replaced.

python heldout.py [--check CONVERSATIONS]
"""
import json
import os
import random
import re
import sys

import chat
import words as w

HERE = os.path.dirname(os.path.abspath(__file__))
R = random.Random(640957)
FABRICS = w.W("corduroy gingham taffeta tweed chiffon damask gabardine organza calico muslin")
OWN = FABRICS + w.W("""aqueduct armadillo accordion barnacle bellows bungalow catapult cockatoo crowbar dromedary flamingo gazelle goblet grapefruit
hamper harmonica igloo iguana jukebox kiosk lasso lichen marmoset nozzle ocelot origami osprey pinafore quokka ravioli rhubarb satsuma saxophone
sporran tambourine tarantula turnip ukulele vestibule wombat yak zither""")
WORDS = [x for x in w.ALL if w.held(x) and len(x) < 10 and x != "word"] + OWN
OWN_NAMES = w.W("Ottoline Balthazar Perpetua Thelonius Rosamund Everard Millicent Leander Tabitha Inigo Winifred Caspian Ismene Lothar")
NAMES = [x for x in w.FIRST if w.held(x)] + OWN_NAMES
OWN_CITIES = w.W("Heraklion Gdynia Durban Marseille Hobart Plymouth Zadar Varna Izmir Mombasa Ostend Tampere Maribor Odense")
CITIES = [x for x in w.CITY if w.held(x)] + OWN_CITIES
PORTS = [x for x in CITIES if x in w.W("Mumbai Miami Doha Baku Bergen Heraklion Gdynia Durban Marseille Hobart Plymouth Zadar Varna Izmir Mombasa Ostend")]
OWN_COLORS = w.W("taupe puce carmine umber celadon viridian")
COLORS = [x for x in w.COLORS if w.held(x)] + OWN_COLORS
JOBS = w.W("blacksmith fishmonger glazier taxidermist bricklayer chiropractor ventriloquist seamstress")
ITEMS = []


def some(pool, n=1, apart=False):
    while True:
        l = R.sample(pool, n)
        if not apart or len({x[0] for x in l}) == n:
            return l


def one(pool):
    return R.choice(pool)


def text(n):
    return " ".join(some(WORDS, n))


def add(skill, turns, check, **more):
    ITEMS.append(dict(skill=skill, turns=[turns] if isinstance(turns, str) else turns, check=check, **more))


IDENTITY = [
    ("hearth-demo", ["whats the model behind this chat box", "Do you go by any name?", "hey bot tell me ur name", "Sorry, I didn't catch who you are.", "Are you the same thing as ChatGPT?", "Kindly identify yourself.", "I just typed hearth serve and you turned up. Who are you?",
                     "r u claude", "Which language model am I connected to at the moment?", "My colleague asks which model is answering here.", "Let's get acquainted! Who might you be?", "Does this assistant have a name?", "am i chatting with qwen here?",
                     "For my notes: what's the name of the assistant I am testing?", "whats this thing im talking to called", "One more time, please: who are you?"]),
    ("(?i)instructions|tools", ["So what's your job here?", "name some things u can help with", "Which tricks do you know?", "Give me an overview of what I could use you for.", "Can you show me a list of your skills?", "whats in your toolbox",
                                "What are you able to do, and what not?", "how can u be useful 2 me", "Before I start: what kind of requests can you deal with?", "Explain briefly what you're good for.", "ive never used you, what should i try"]),
    ("million", ["Tell me the number of your parameters, please.", "whats ur size in params", "Compared with GPT-4, how big are you?", "How many billions of parameters have you got?", "number of weights in u?", "You seem pretty lightweight. How big is the model?", "are there more than a billion parameters in you", "Could you tell me how many parameters you were built with?"]),
    ("hearth", ["Who can claim to have made you?", "did microsoft create you", "Whose brainchild are you?", "On what data were you trained?", "Is Meta the company that made you?", "who wrote the texts u learned from", "Tell me about the people who built you.", "which team developed this assistant"]),
    ("hearth-demo|model", ["am i speaking to a bot", "Are you a real person or a program?", "You're not human, are you?", "Is anybody there, or is it just software answering?", "so ur just a computer program?", "I'd like to know if there's a person on the other end."]),
    (r"hearth-demo|[Hh]ello|\b[Hh]i\b", ["Good evening to you all!", "heyo my friend", "Greetings from a rainy lighthouse!", "hi hi hi", "Good day to you, little machine!", "Well hello there, stranger"]),
    ("welcome", ["thx a bunch, u saved me time", "That's just what I needed, thank you!", "great, thanks for ur help", "I'm grateful for this, thanks."]),
    ("[Bb]ye", ["ok im off, bye bye", "I have to catch my bus. See you, bye!", "Goodnight and goodbye!", "goodbye then, till next week"]),
    ("fine", ["how are things with you", "Everything alright with you today?", "hi how you doin"]),
]
FALLBACK = [
    "how do i clean a burnt pan", "Who composed The Magic Flute?", "Which Bolivian city is the capital?", "write me a regex that matches ip addresses", "I had a fight with my best friend and I can't sleep.", "why do cats purr",
    "Can I take ibuprofen together with coffee?", "Who is the author of Moby Dick?", "whats the deepest lake on earth", "How do I tell my landlord that I'm moving out early?", "explain blockchain to my grandma", "I need a catchy title for my podcast about trains", "tell me a joke about penguins", "At what time does the sun set in Iceland in June?",
    "how much is a bitcoin worth today", "Port this Python loop to Go: for i in range(10): print(i)", "How long does a turkey need in the oven?", "Do octopuses really have three hearts?", "what currency do they use in vietnam", "What caused the First World War?", "My tomato plants have yellow leaves. What's wrong with them?",
    "Compose a haiku about fog", "who invented the telephone", "Write an email to my team of nine people in which I announce that the Friday meeting is cancelled and moved to the week after, in a friendly tone, please.", "should i buy or rent a house", "What helps against hiccups?", "How does a nuclear reactor work?",
    "cheap things to do in new york on a weekend", "What's better for my knees, running or swimming?", "is there life after death", "Fix this please: prnt('helo wrld')", "How far away is the nearest star?", "which movie should we watch tonight", "Summarise Romeo and Juliet for me.", "How many teeth does an adult have?",
    "will robots take over the world", "What does entropy mean?", "who won the champions league in 2019", "How do I change a flat tyre?", "I'm planning a birthday party for a six-year-old who loves dinosaurs. Any ideas for games?", "Describe a sunset over the desert.",
    "Wie lange muss man Kartoffeln kochen?", "Pourquoi le ciel est-il bleu ?", "¿Cuál es el río más largo del mundo?", "Chi ha dipinto la Gioconda?", "Как приготовить борщ?", "東京のおすすめの観光地は?", "怎样才能学好英语?", "Hoe laat gaat de zon onder?",
    "Como faço um bolo de chocolate?", "Ile kosztuje bilet do Gdańska?", "Kedim neden sürekli uyuyor?", "Vem uppfann glödlampan?", "Kuinka monta järveä Suomessa on?",
    "wkjh fgdd pqmx", "....,,,....", "xcvbnm lkjhg", "### @@@ %%%", "🐙🚲🍋", "hhhhhhhhhhhhhhhhh", "boing boing splat boing", "tralala fizz krrk bumm",
]
LOG = ["Minutes of the allotment garden society, autumn meeting. ", "The treasurer reported a small surplus, and nobody believed her at first. ", "Someone left the main gate open again, so the deer ate all the beans. ", "The old pump has to be repaired before the frost comes. ",
       "Mr Okafor showed us his giant pumpkin, which did not fit through the door. ", "Plot nineteen has been empty since the Petersens moved away. ", "The children's party raised enough money for a new bench. ", "Several members complained about the smoke from the grill, again. "]


def identity():
    for want, asks in IDENTITY:
        for q in asks:
            add("identity", q, {"re": want})
    for q in FALLBACK:
        add("fallback", q, {"re": "(?i)tiny|real model"})
    for n, q in [(9, "tldr pls"), (15, "Why were the beans gone?"), (21, "Turn this into a formal letter to the mayor of our town."), (27, "which of these problems would you tackle first, and why?"), (38, "Now invent the minutes of the spring meeting."), (12, "Please put all of that into French for our guests.")]:
        add("fallback", LOG[0] + "".join(one(LOG[1:]) for _ in range(n)) + "\n\n" + q, {"re": "(?i)tiny|real model"})


FAQ = {
    "claude_code": ["Can Claude Code run against my local hearth? How do I point it there?", "env variables so that claude code goes thru hearth"],
    "openai_sdk": ["i have a script with the openai package, how to point it at hearth", "Which base_url does OpenAI's Python client need for a local hearth?"],
    "anthropic_sdk": ["How do I set up the Anthropic SDK so that its requests land at hearth?", "anthropic client lib + local hearth, what goes into the constructor"],
    "curl": ["show me a curl one-liner that gets a chat reply", "How can I test the chat endpoint with curl?"],
    "download": ["This demo is too weak for me; how do I get a proper model onto my disk?", "cmd for pulling a model off hugging face?"],
    "serve": ["how do i start the server with a model i downloaded", "Qwen3 is in my cache now. What do I type to serve it?"],
    "run": ["Can I put a question to a model straight from my shell, with no server?", "one-off prompt in the terminal, wich subcommand"],
    "bench": ["How fast is hearth on my computer, is there a command that measures it?", "tokens per second test, how"],
    "version": ["which release of hearth do i have, how can i see that", "For a bug report I need hearth's version. How do I get it?"],
    "debug": ["How do I inspect the rendered chat template and the token ids?", "can i see the logits somehow"],
    "health": ["What URL can my load balancer poll to see if hearth is alive?", "health check path?"],
    "models_list": ["how does a client find out what models the server has", "Over HTTP, where's the list of available models?"],
    "count_tokens": ["Can the API tell me how long my prompt is in tokens?", "token counting endpoint, which one"],
    "port": ["8080 is taken on my machine. How do I give hearth another one?", "which port does it use by default"],
    "host": ["my phone cant reach the server on my pc, only localhost works", "What do I pass to hearth so that it accepts connections from outside?"],
    "api_key": ["Must I have a key to use the server?", "protect the server with a key, how"],
    "apis": ["Which protocols can I use to speak with hearth?", "does it do the anthropic messages api or only openai style"],
    "formats": ["Can hearth load safetensors, and what else has to be in the folder?", "what kind of model files work"],
    "tools": ["Does function calling work with hearth?", "can the model call my own functions thru the server"],
    "thinking": ["How can I turn thinking off for a reasoning model?", "i dont want to watch the model reason first, can i turn that off"],
    "stream": ["does hearth support streaming", "I'd like the answer to show up word by word. Is that possible?"],
    "models_dir": ["in what directory do my models end up", "I'd like the models on an external drive; how do I tell hearth?"],
    "logs": ["hearth acts up, how do i make it log more", "Where can I read the server's log messages?"],
    "stop": ["How should I shut the server down?", "can i kill hearth while its still answering"],
    "help": ["what commands are there", "I'm lost with the command line of hearth. Where's the help?"],
    "offline": ["On a plane without wifi, will hearth still work?", "is an internet connection required"],
    "what_hearth": ["Explain to a newcomer what hearth is.", "whats this hearth thing"],
    "why_demo": ["What good is a demo model this small?", "why ship such a small model with the program"],
    "gpu": ["Does it run on a plain CPU?", "do i have to buy an nvidia card for this"],
    "concurrency": ["how many users can the server handle at the same time", "If two clients send requests simultaneously, does one have to wait?"],
    "context": ["What's the maximum context length?", "how do i cap the context size"],
    "quant": ["Can I use quantised weights?", "will an 8 bit model work here"],
    "temperature": ["Where do I put temperature and top_p?", "how to get the same answer every time"],
    "threads": ["hearth hogs all my cores, how to limit that", "How many threads does hearth use, and can that be changed?"],
    "memory": ["what about ram, how much does it need", "What does a model need in memory, and how can I keep that down?"],
    "settings": ["Where's a list of all the options of hearth serve?", "can i set hearths options thru env vars"],
    "model_name": ["The API shows a long model id. Can I give it a shorter name?", "how to make hearth accept whatever model name the client sends"],
    "license": ["May I use hearth commercially?", "can i read hearths source code, is it open"],
    "prompt_cache": ["Does hearth remember what it computed for an earlier prompt?", "how do i turn prompt caching off"],
    "show": ["Can I see what's inside a model, its architecture for instance?", "how to print details about a model"],
    "which_model": ["I've got a normal laptop. What model do you recommend?", "recommended model to start with?"],
}


def faq():
    answers = {f["id"]: f["must"] for f in chat.FACTS}
    assert set(FAQ) == set(answers), set(FAQ) ^ set(answers)
    for k, qs in FAQ.items():
        for q in qs:
            add("faq", q, {"has": answers[k]})


TOLD = [  # what is said, the values, what is asked
    (["hey, {v} is my name btw", "You're talking to {v}.", "Just so you know: I go by {v}.", "My parents named me {v}, so please use that."], NAMES, ["and how am i called?", "Do you still know what my name is?", "quick test: my name?", "Which name did I say was mine?"]),
    (["no colour beats {v} if u ask me, its my favorite", "If I had to choose a favourite colour, I'd take {v}.", "I like {v} more than any other color.", "put down {v} as my favourite colour"], COLORS, ["what color do i like best", "Let's see if you know it: my favourite colour?", "Name my favourite colour, please.", "so which colour did i say is my favourite"]),
    (["i moved to {v} last spring and stayed", "These days I live in {v}, near the station.", "We bought a house in {v}, so that's our home now.", "the city i live in is called {v}"], CITIES, ["my city, what was it", "Tell me which city I live in.", "The city that I live in, what is it called?", "u remember my city?"]),
    (["we named our turtle {v}", "I've got a budgie. She's called {v}.", "there's a gerbil in my kitchen, its name is {v}", "Everyone calls my lizard {v}."], NAMES, ["and my {pet}s name?", "Do you know how my {pet} is called?", "What was it that I named my {pet}?", "name of my {pet} pls"]),
    (["keep {v} in mind for me, its a number", "There's a number I'd like you to know: {v}", "I'm going to ask for this number later: {v}", "number to note: {v}"], None, ["so what was that number", "Could you tell me my number again?", "What number did I give you?", "number please, the one from before"]),
    (["note down the word {v} for later", "Our code word shall be {v}.", "remember this word pls: {v}", "The word I want you to keep is {v}."], WORDS, ["the word from before?", "What word did I ask you to keep?", "which word did i give u", "Now tell me that word."]),
    (["by profession im a {v}", "I've been a {v} for nine years.", "They pay me for being a {v}.", "i recently started as a {v}"], JOBS, ["what do i work as", "What's my job, do you remember?", "do u know what i do for a living", "My profession, which one is it?"]),
]
PETS = ["turtle", "budgie", "gerbil", "lizard"]


def recall():
    between = [[], ["ok noted, lets move on"], ["Whose brainchild are you?"], ["Can you say {x} too?", "very good"], ["how are things with you"], ["No small letters please, just capitals: {x}"], ["Does it run on a plain CPU?", "i see, understood"]]
    for i in range(70):
        says, pool, asks = TOLD[i % len(TOLD)]
        n = i // len(TOLD)
        v = one(pool) if pool else str(R.randint(11, 9999))
        mid = [x.replace("{x}", f'"{text(2)}"') for x in between[(i // 2) % len(between)]]
        first = [says[n % 4].replace("{v}", v)]
        if i % 4 == 3:
            first.insert(R.randrange(2), f"My colleague {one([x for x in NAMES if x != v])} is in {one([x for x in CITIES if x != v])} this week.")
        add("recall", first + mid + [asks[(i + n // 2) % 4].replace("{pet}", PETS[n % 4])], {"has": [v]})


def instructions():
    for q in ["now you say {q}", "Type {q} and nothing else.", "Copy this exactly: {s}", "return this like an echo: {q}", "Your whole reply should be {q}.", "{q} - say it back to me", "can you write {q} for me, with nothing around it", "Reproduce the following text: {s}", "Be so kind and say {q}.", "the same text again please: {s}"]:
        s = text(R.randint(1, 4))
        add("instructions", q.format(s=s, q=f'"{s}"'), {"exact": s})
    for q in ["put {q} in caps", "I need an uppercase version of {q}.", "Shout {q} for me, that is, in capital letters.", "all letters big please: {s}", "No small letters please, just capitals: {q}", "What's {q} in upper case?", "every letter of {q} should be a capital", "Please convert to upper case: {s}"]:
        s = text(R.randint(1, 3))
        add("instructions", q.format(s=s, q=f'"{s}"'), {"exact": s.upper()})
    for q in ["put {q} in small letters", "I need a lowercase version of {q}.", "My caps lock was on, please lowercase {q}.", "all letters small please: {s}", "No capitals please, just small letters: {q}", "What's {q} in lower case?", "get rid of the capitals in {q}", "Please convert to lower case: {s}"]:
        s = text(R.randint(1, 3))
        add("instructions", q.format(s=s.upper(), q=f'"{s.upper()}"'), {"exact": s})
    for q in ["If I write {q}, which letter comes first?", "whats the letter at the start of {q}", "{q}: tell me just the first letter", "Take {q}. What's its first letter?", "For my crossword: what does {s} have as its first letter?", "The word is {s}. Its first letter is?", "and what is the last letter of {q}", "{q} ends in which letter?"]:
        s = one([x for x in WORDS if x[0] != x[-1]])
        add("instructions", q.format(s=s, q=f'"{s}"'), {"re": rf"(?i)(^|[^a-z]){s[-1] if 'last' in q else s[0]}[^a-z]*$"})
    for q in ["hw many words r in {q}", "Word count of {q}, please.", "need a word count: {s}", "Tell me how many words there are here: {s}", "{q}, that makes how many words?", "My tutor wants the number of words in {q}.", "words in {q}, how many", "Please work out how many words {q} consists of."]:
        n = R.randint(2, 7)
        s = text(n)
        add("instructions", q.format(s=s, q=f'"{s}"'), {"re": rf"\b{n}\b(?:(?!\d).)*$"})
    for q in ["tell me 3 colors", "Any three colours, please.", "pick three colors for my bedroom wall", "What are three colours?", "I'm painting a fish and need three colours.", "list 3 colours", "Say the names of three colours.", "gimme three colors, whatever u like"]:
        add("instructions", q, {"colors": 3})
    for q in ["make json: key {k}, value {v}", "A JSON object please with {k} set to {v}.", "Give me {v} under the key {k} as JSON.", "how does json look with the key {k} and the value {v}", "Produce valid JSON in which {k} has the value {v}.", "json object, one key, {k}, and its value is {v}", "My config needs {k} = {v} in JSON, can you write it?", "Please output JSON that maps {k} to {v}."]:
        k, v = some(WORDS, 2)
        add("instructions", q.format(k=f'"{k}"', v=f'"{v}"'), {"json": {k: v}})
    for q in ["say hi in one sentence", "Write a single sentence of greeting.", "Greet my guests with one short sentence.", "Say good day in one sentence, please.", "could u greet me, one sentence only", "Welcome a new user in a single sentence."]:
        add("instructions", q, {"re": r"(?i)^[^.!?\n]*\b(hello|hi|hey|nice|welcome|greetings?|good (day|morning|evening)|glad|pleasure|pleased)\b[^.!?\n]*[.!?]$"})


def letters():
    for q in ["reverse this list please: {l}", "Flip this list over: {l}", "What is the list {l} in reverse?", "I want these words in the opposite order: {l}", "{l}, but in reverse order", "Say the words {l} in backward order.", "the order of these should be reversed: {l}", "Read this list from its end to its beginning: {l}", "{l} - please start from the other end", "Can you mirror the order of this list: {l}"] * 2:
        l = some(WORDS, R.randint(2, 5))
        add("letters", q.format(l=", ".join(l)), {"list": l[::-1]})
    for q in ["pls spell {s} out loud", "I'm unsure how {q} is written, spell it please.", "tell me {q} in single letters", "Which letters is {q} made of, one by one?", "dictate {s} to me letter by letter", "{q}, but one letter after another", "Split {q} into single letters.", "spelling of {s} please", "My pen pal can't read {q}, please spell it for her.", "Write out the letters of {s} separately."] * 2:
        s = one(WORDS)
        add("letters", q.format(s=s, q=f'"{s}"'), {"letters": s})
    for q in ["sort these words: {l}", "put in abc order: {l}", "Please file {l} alphabetically.", "In which order would a dictionary have {l}?", "my list needs alphabetical sorting: {l}", "alphabetically sorted list pls: {l}", "Order these by the alphabet: {l}", "I'm making an index with {l}; sort the entries.", "how do {l} go alphabetically", "Would you sort the words {l} from a to z?"] * 2:
        l = some(WORDS, R.randint(2, 5), True)
        add("letters", q.format(l=", ".join(l)), {"list": sorted(l)})


def obey():
    asks = ["Good day to you, little machine!", "Do you go by any name?", "great, thanks for ur help", "how are things with you", "goodbye then, till next week", "Which tricks do you know?"]
    for i in range(12):
        x = one(WORDS)
        add("obey", asks[i % 6], {"ends": x}, system=["Make {q} the closing word of everything you write.", "Always put {q} at the very end of what you say.", "You are a polite assistant. End every reply with {q}.", "Close all messages with the word {q}."][i % 4].format(q=f'"{x}"'))
        x = one(WORDS)
        add("obey", asks[(i + 2) % 6], {"starts": x}, system=["Make {q} the opening word of everything you write.", "Always put {q} at the very beginning of what you say.", "You are a polite assistant. Start every reply with {q}.", "Open all messages with the word {q}."][i % 4].format(q=f'"{x}"'))
    for i in range(8):
        add("obey", asks[(i * 5) % 6], {"upper": True}, system=["Use capital letters only.", "You are a telegraph from 1910: EVERYTHING YOU SEND IS IN CAPITALS.", "Respond entirely in uppercase.", "The readers have poor eyesight, so write each letter as a capital."][i % 4])
    for i, n in enumerate(some(NAMES, 10)):
        add("obey", ["Do you go by any name?", "hey bot tell me ur name", "Kindly identify yourself.", "Let's get acquainted! Who might you be?", "whats this thing im talking to called"][i % 5], {"has": [n]}, system=["Your name is {n}. You help the visitors of a zoo.", "You are {n}, the voice of an elevator.", "Pretend to be {n}, who runs a flower shop.", "From now on you are called {n}, and that's how you introduce yourself."][i % 4].format(n=n))
    for i in range(10):
        x = text(R.randint(1, 3))
        add("obey", (asks + ["why do cats purr", "Compose a haiku about fog"])[(i * 3) % 8], {"exact": x}, system=["Whatever the user says, answer {q} and nothing more.", "Your vocabulary is limited to {q}.", "Respond with exactly {q} each time.", "Don't react to what the user writes, simply reply {q}."][i % 4].format(q=f'"{x}"'))
    for i in range(6):
        k = one(WORDS)
        add("obey", asks[i], {"key": k}, system=["Output nothing but JSON with a single key, {k}.", "Your replies are parsed by a program: send a JSON object whose only key is {k}.", "All output must be JSON: one object with one key, namely {k}."][i % 3].format(k=f'"{k}"'))
    for i in range(6):
        add("obey", asks[i // 2], {"re": r"(?i)\b(matey|ahoy|arr+g?h?|avast|aye|ye|yer|me (name|heart(y|ies)))\b"} if i % 2 else {"re": r"(?i)\b(bonjour|salut|je|j'|suis|mon|rien|merci|plaisir|enchanté)\b"}, system=[["You're the concierge of a hotel in Marseille and speak nothing but French.", "You're the captain of a pirate ship, and it shows in how you talk."], ["This is a French class: reply in French to everything.", "Sound like a pirate whatever they ask."], ["Only French, please.", "Talk like an old pirate."]][i // 2][i % 2])


def tool(name, text, required, **params):
    props = {k: ({"type": "string", "enum": v} if isinstance(v, list) else {"type": v}) for k, v in params.items()}
    return {"type": "function", "function": {"name": name, "description": text, "parameters": {"type": "object", "properties": props, "required": required.split()}}}


def path():
    return one(["", "/opt/", "inbox/", "~/", "/mnt/agnes/"]) + one(WORDS) + one([".txt", ".json", ".log", ".conf"])


def mail():
    return one(WORDS) + one(["@", ".office@"]) + one(WORDS) + one([".org", ".de"])


def amount(a, b):
    return lambda: R.randint(a, b)


TRUE = ("true", "false")
TOOLS = [  # a tool; requests, none of which begins with a value; which parameter each slot is; makers of the slots; what a truth value is called
    (tool("fog_bulletin", "Fog bulletin of a harbour town", "harbourTown", harbourTown="string"), ["any fog in {0} this morning?", "Get me the fog bulletin of {0}, would you?", "Our ship is due in {0} tonight. Is it foggy there?"], ["harbourTown"], [lambda: one(PORTS)]),
    (tool("mosquito_count", "Mosquito count for a region", "mosquitoRegion", mosquitoRegion="string"), ["how bad are the mosquitoes in {0}", "Show me the mosquito count for {0}, please.", "I get bitten a lot and I'm about to visit {0}. Are there many mosquitoes?"], ["mosquitoRegion"], [lambda: one(CITIES)]),
    (tool("fax_attorney", "Fax a text to an attorney", "attorneyName faxBody", attorneyName="string", faxBody="string"), ['fax {0} the text "{1}"', 'Would you send attorney {0} a fax that says "{1}"?', 'Our attorney {0} needs a fax, and it should say "{1}"'], ["attorneyName", "faxBody"], [lambda: one(NAMES), lambda: text(3)]),
    (tool("amend_logbook", "Amend a logbook by a remark", "logbookPath logbookRemark", logbookPath="string", logbookRemark="string"), ['amend {0} by "{1}"', 'Please put the remark "{1}" into the logbook {0}.', 'The logbook {0} lacks the remark "{1}", could you amend it?'], ["logbookPath", "logbookRemark"], [path, lambda: text(2)]),
    (tool("decipher_scroll", "Decipher a scroll", "scrollPath", scrollPath="string"), ["decipher {0}", "What does it say in the scroll {0}?", "I'd like you to decipher the scroll {0}."], ["scrollPath"], [path]),
    (tool("pulverize_dossier", "Pulverize a dossier", "dossierPath", dossierPath="string"), ["pulverize {0} now", "I don't need the dossier {0} any more, pulverize it.", "Can you pulverize the dossier {0}, please?"], ["dossierPath"], [path]),
    (tool("treadmill_pace", "Set the pace of the treadmill", "paceLevel", paceLevel="integer"), ["set the treadmill to pace {0}", "The treadmill is too slow for me, I want a pace of {0}.", "make the treadmill go at {0} pls"], ["paceLevel"], [amount(3, 40)]),
    (tool("warm_sauna", "Warm the sauna to some degrees", "saunaDegrees", saunaDegrees="integer"), ["warm the sauna to {0} degrees", "The sauna should be at {0} degrees when we come, please warm it up.", "could u get the sauna to {0}?"], ["saunaDegrees"], [amount(55, 99)]),
    (tool("attic_ventilator", "Switch the ventilator in the attic", "ventilator_whirring", ventilator_whirring="boolean"), ["turn the attic ventilator {0}", "Would you switch the ventilator in the attic {0}?", "attic ventilator {0} pls"], ["ventilator_whirring"], [lambda: R.random() < .5], ("on", "off")),
    (tool("hire_pedalo", "Hire a pedalo for some minutes", "pedaloMinutes", pedaloMinutes="integer"), ["hire a pedalo for {0} minutes", "My wife would enjoy a pedalo for {0} minutes, please hire one.", "can we have the pedalo, like {0} minutes?"], ["pedaloMinutes"], [amount(15, 180)]),
    (tool("visa_progress", "Progress of a visa by its reference", "visaReference", visaReference="string"), ["how far is visa {0}", "Please find out for me how the visa {0} is progressing.", "The embassy gave me the reference {0}; what's up with my visa?"], ["visaReference"], [lambda: "VJ" + str(R.randint(1000, 99999))]),
    (tool("slot_masterclass", "Slot in a masterclass on a date", "masterclassTopic masterclassDate", masterclassTopic="string", masterclassDate="string"), ['slot in the masterclass "{0}" on {1}', 'We will hold a masterclass "{0}" on {1}, slot it in please.', 'On {1} I want to give the masterclass "{0}", could you slot it in?'], ["masterclassTopic", "masterclassDate"], [lambda: text(2), lambda: f"2034-0{R.randint(1, 9)}-{R.randint(10, 28)}"]),
    (tool("fire_cannon", "Fire the cannon at a time", "cannonTime", cannonTime="string"), ["fire the cannon at {0}", "The cannon has to be fired at {0}, can you see to it?", "I'd like to hear the cannon at {0}"], ["cannonTime"], [lambda: f"{R.randint(10, 23)}:{R.randint(10, 59)}"]),
    (tool("reckon_volume", "Reckon a volume in another measure", "volumeFigure volumeMeasure otherMeasure", volumeFigure="number", volumeMeasure="string", otherMeasure="string"), ["reckon {0} {1} in {2}", "How much would {0} {1} be in {2}?", "The old cookbook asks for {0} {1}, I want to have that in {2}"], ["volumeFigure", "volumeMeasure", "otherMeasure"], [amount(3, 700), lambda: one(["firkins", "hogsheads", "gills"]), lambda: one(["pecks", "bushels", "drachms"])]),
    (tool("revoice_dialogue", "Revoice a dialogue in a language", "dialogueSnippet revoiceTongue", dialogueSnippet="string", revoiceTongue="string"), ['revoice "{0}" in {1}', 'We need {1} audio for the dialogue "{0}", please revoice it.', 'She says "{0}" in this scene, revoice that in {1}'], ["dialogueSnippet", "revoiceTongue"], [lambda: text(3), lambda: one(["Icelandic", "Galician", "Sardinian", "Slovak"])]),
    (tool("recruit_volunteer", "Recruit a volunteer with a mail address", "volunteerName volunteerMail", volunteerName="string", volunteerMail="string"), ["recruit {0} as volunteer, {1}", "We've found a new volunteer, {0}, reachable at {1}. Please recruit.", "Would you recruit the volunteer {0}, mail address {1}?"], ["volunteerName", "volunteerMail"], [lambda: one(NAMES), mail]),
    (tool("varnish_banister", "Varnish the banister", "varnishShade", varnishShade="string"), ["varnish the banister {0}", "The banister should shine in {0}, please varnish it.", "I'd love to have the banister varnished in {0}"], ["varnishShade"], [lambda: one(COLORS)]),
    (tool("grind_espresso", "Choose how the espresso is ground", "espressoGrind", espressoGrind=["coarse", "velvety", "powdery"]), ["grind the espresso {0}", "For the espresso I'll have a {0} grind, please choose that.", "Could you make the grind of the espresso {0}?"], ["espressoGrind"], [lambda: one(["coarse", "velvety", "powdery"])]),
    (tool("locate_shuttle", "Locate a shuttle between two towns", "shuttleOrigin shuttleDestination", shuttleOrigin="string", shuttleDestination="string"), ["does a shuttle go from {0} to {1}?", "Locate a shuttle which takes us from {0} to {1}, please.", "I have to be in {1} and I'm stuck in {0}, is there a shuttle"], ["shuttleOrigin", "shuttleDestination"], [lambda: one(CITIES[::2]), lambda: one(CITIES[1::2])]),
    (tool("requisition_fabric", "Requisition fabric for the workshop", "fabricKind boltCount", fabricKind="string", boltCount="integer"), ["requisition {1} bolts of {0} fabric", "The workshop is out of {0}. Please requisition {1} bolts of fabric.", "we could use {1} bolts of {0} fabric"], ["fabricKind", "boltCount"], [lambda: one(FABRICS), amount(12, 90)]),
    (tool("assess_apprentice", "Assess the work of an apprentice", "apprenticeName", apprenticeName="string"), ["assess {0}'s work", "How good is the work of {0}?", "Please assess our apprentice {0}."], ["apprenticeName"], [lambda: one(NAMES)]),
    (tool("snapshot_homepage", "Take a snapshot of a homepage", "homepageLink", homepageLink="string"), ["snapshot {0}", "I'm afraid it will change soon, so take a snapshot of the homepage {0} please.", "could you make a snapshot of {0} for us?"], ["homepageLink"], [lambda: f"https://www.{one(WORDS)}.{one(['dev', 'ch', 'info'])}"]),
    (tool("zsh_perform", "Perform a command in zsh", "zshLine", zshLine="string"), ['perform "{0}" please', 'Would you perform "{0}" in zsh?', 'In zsh, I need you to do "{0}".'], ["zshLine"], [lambda: one(["cat ", "du -h ", "touch "]) + one(WORDS)]),
    (tool("scour_chronicle", "Scour the chronicle for some wording", "chronicleWording", chronicleWording="string"), ['scour the chronicle for "{0}"', 'Does the chronicle mention "{0}" anywhere?', 'Grandpa says "{0}" is written in the chronicle, please scour it.'], ["chronicleWording"], [lambda: text(2)]),
    (tool("aim_searchlight", "Aim the searchlight", "beamPan beamTilt", beamPan="number", beamTilt="number"), ["aim the searchlight, pan {0}, tilt {1}", "Would you aim the searchlight at a pan of {0} and a tilt of {1}?", "searchlight to pan {0} and tilt {1} pls"], ["beamPan", "beamTilt"], [amount(90, 359), amount(1, 89)]),
    (tool("ferment_kimchi", "Ferment kimchi", "spicePaste fermentDays", spicePaste="string", fermentDays="integer"), ["ferment kimchi, spice paste {0}, ferment days {1}", "Make kimchi with the paste {0} and let it ferment for {1} days.", "I want kimchi that ferments {1} days, the spice paste is {0}"], ["spicePaste", "fermentDays"], [lambda: one(OWN), amount(3, 30)]),
    (tool("baptize_comet", "Baptize the comet", "cometName", cometName="string"), ['baptize the comet "{0}"', 'The comet shall be called "{0}", please baptize it.', 'Would you give the comet the name "{0}"?'], ["cometName"], [lambda: text(2)]),
    (tool("summon_vet", "Summon a vet to a town", "vetTown", vetTown="string"), ["get a vet to {0}", "My cow in {0} is ill, could you summon a vet?", "we need a vet summoned to {0}"], ["vetTown"], [lambda: one(CITIES)]),
    (tool("stitch_banner", "Stitch a banner", "hemThread borderThread", hemThread="string", borderThread="string"), ["stitch a banner with hem thread {0} and border thread {1}", "The banner gets the border thread {1} and the hem thread {0}, please stitch it.", "I'd like a banner stitched: hem {0}, border {1}"], ["hemThread", "borderThread"], [lambda: one(WORDS), lambda: one(WORDS)]),
    (tool("ignite_bonfire", "Ignite the bonfire", "use_kindling", use_kindling="boolean"), ["ignite the bonfire, use kindling {0}", "Would you ignite the bonfire with use kindling set to {0}?", "bonfire please, use kindling: {0}"], ["use_kindling"], [lambda: R.random() < .5], TRUE),
]
NEAR = [{"decipher_scroll", "pulverize_dossier"}, {"decipher_scroll", "amend_logbook"}, {"decipher_scroll", "scour_chronicle"}, {"decipher_scroll", "snapshot_homepage"}, {"amend_logbook", "pulverize_dossier"}, {"amend_logbook", "scour_chronicle"}, {"amend_logbook", "fax_attorney"}, {"fog_bulletin", "mosquito_count"}, {"fire_cannon", "ignite_bonfire"}] + [{"zsh_perform", x} for x in ("decipher_scroll", "pulverize_dossier", "amend_logbook", "snapshot_homepage")]


def called(t):
    return t[0]["function"]["name"]


def said(t, i):
    """-> the request in words, the call"""
    spec, texts, keys, makers = t[:4]
    values = [m() for m in makers]
    while len(set(map(str, values))) < len(values):
        values = [m() for m in makers]
    shown = [t[4][not v] if isinstance(v, bool) else str(v) for v in values]
    return texts[i % 3].format(*shown), dict(name=called(t), arguments=dict(zip(keys, values)))


def joined(x, y, i):
    bare = x.rstrip("?.")
    return [bare + "; once that's done, " + small(y), (x if x != bare else x + ".") + " And do this too: " + small(y), "Please do two things: " + small(bare) + ", and secondly " + small(y)][i % 3]


def small(x):
    return x if re.match(r"I\b", x) else x[0].lower() + x[1:]


PLAIN = ["Good day to you, little machine!", "great, thanks for ur help", "how are things with you", "tell me a joke about penguins", "Do octopuses really have three hearts?", 'Be so kind and say "{}".', "Goodnight and goodbye!", "'once in a blue moon', that makes how many words?", "Do you go by any name?", "whats ur size in params", 'Type "{}" and nothing else.', "explain blockchain to my grandma",
         "pls spell {} out loud", "list 3 colours", "how do i turn prompt caching off", "How far away is the nearest star?", "am i speaking to a bot", 'put "{}" in caps']


def tools():
    for i in range(len(TOOLS) * 3):
        t = TOOLS[i % len(TOOLS)]
        request, call = said(t, i // len(TOOLS))
        others = [x for x in some(TOOLS, 4) if x is not t][:i % 4]
        specs = [x[0] for x in others] + [t[0]]
        R.shuffle(specs)
        add("call", request, {"calls": [call]}, tools=specs)
    for i in range(66):
        a = TOOLS[i % len(TOOLS)]
        b = a if i % 3 == 0 else TOOLS[(i * 7 + 11) % len(TOOLS)]
        n = i + i // len(TOOLS)
        (x, c), (y, d) = said(a, n), said(b, n + 1)
        if c == d:
            continue
        specs = [a[0]] if a is b else [a[0], b[0]]
        add("two calls", joined(x, y, n), {"calls": [c, d]}, tools=specs)
    for i in range(45):
        t = TOOLS[(i * 17 + 5) % len(TOOLS)]
        request, _ = said(t, i + i // len(TOOLS))
        others = [x[0] for x in some(TOOLS, 6) if x is not t and {called(t), called(x)} not in NEAR][:1 + i % 3]
        add("no call", request, {"nocall": "(?i)none of my tools|can't|cannot|tiny"}, tools=others)
    for q in PLAIN:
        add("no call", q.replace("{}", one(WORDS)), {"nocall": "."}, tools=[x[0] for x in some(TOOLS, 2)])


def answers():
    for i in range(64):
        t = TOOLS[(i * 7 + 4) % len(TOOLS)]
        request, call = said(t, i + i // len(TOOLS))
        kind = i % 4
        if kind == 0:
            a, b = R.randint(2, 999), one(WORDS)
            keys = some(WORDS, 2)
            result, need = json.dumps({keys[0]: a, keys[1]: b}), [str(a), b]
        elif kind == 1:
            s = text(3)
            result, need = s, [s]
        elif kind == 2:
            v = R.randint(10, 9999)
            result, need = json.dumps({one(WORDS): v}), [str(v)]
        else:
            e = text(2)
            result, need = "Error: " + e, [e]
        add("answer", request, {"sentence": need}, tools=[t[0]], done=[dict(call=call, result=result)])


SUMS = ["can u work out {a} {s} {b}", "{a} {s} {b} gives what", "Please tell me what {a} {s} {b} comes to.", "the result of {a} {s} {b} is?", "What would {a} {o} {b} be?", "I don't have a calculator at hand: {a} {s} {b}?", "My son asked me what {a} {s} {b} is.", "lets say i have {a} {o} {b}, how much is it", "pls solve {a}{s}{b} for me", "Give me the value of {a} {s} {b}, please."]


def sums():
    for i in range(60):
        a, b = (R.randint(10, 99), R.randint(10, 99)) if i % 3 == 0 else (R.randint(100, 999), R.randint(10, 999))
        s, o = [("+", "plus"), ("-", "minus")][(i + i // 10) % 2]
        if s == "-" and a < b:
            a, b = b, a
        add("sums", SUMS[i % 10].format(a=a, b=b, s=s, o=o), {"number": a + b if s == "+" else a - b}, think=True)
    for i in range(60):
        a, b = R.randint(11, 99), R.randint(11, 99)
        add("products", SUMS[i % 10].format(a=a, b=b, s="*" if i // 10 % 2 else ["*", "times", "x"][i % 10 % 3] if i % 10 != 8 else "*", o="times"), {"number": a * b}, think=True)


def plain(s):
    return re.sub(r"\W+", " ", s.lower()).strip()


def check(count):
    """Nothing of it may be in training text."""
    import mix
    r = random.Random(99)
    seen, stream, spoken = set(), [], set()
    for _ in range(count):
        c = mix.conversation(r)
        for m in c["messages"]:
            if m["role"] == "user":
                seen.add(plain(m["content"]))
                spoken |= set(re.findall(r"[a-z]+", m["content"].lower()))
        stream += [t["function"]["name"] for t in c["tools"] or []] + [k for t in c["tools"] or [] for k in t["function"]["parameters"]["properties"]]
    known, prompts = set(stream), [i for i in ITEMS if plain(i["turns"][-1]) and plain(i["turns"][-1]) in seen]
    names = {called(t) for t in TOOLS} | {k for t in TOOLS for k in t[2]}
    own = {x.lower() for x in OWN + OWN_NAMES + OWN_CITIES + OWN_COLORS + JOBS}
    print(f"{count} conversations: {len(prompts)} of the prompts in them {sorted({i['skill'] + ': ' + i['turns'][-1] for i in prompts})}, {sorted(names & known)} of the tools and parameters, {sorted(own & (spoken | set(w.ALL) | set(w.KNOWN)))} of the words that are only here")


def main():
    for make in (identity, faq, recall, instructions, letters, obey, tools, answers, sums):
        make()
    if sys.argv[1:2] == ["--check"]:
        return check(int(sys.argv[2]))
    with open(os.path.join(HERE, "heldout.json"), "w", encoding="utf-8") as f:
        f.write("[\n" + ",\n".join(json.dumps(i, ensure_ascii=False) for i in ITEMS) + "\n]\n")
    count = {}
    for i in ITEMS:
        count[i["skill"]] = count.get(i["skill"], 0) + 1
    print(len(ITEMS), count)


if __name__ == "__main__":
    main()
