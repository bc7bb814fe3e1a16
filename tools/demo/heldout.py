"""Writes heldout.json: the prompts of the evaluation. Phrasings, tools and parameter names are written here by hand and are
none of the generator's; words and names are those that words.held keeps from training, or are only here. This is the sixth set:
nothing of the first five is in it, because the failures on the fifth had been looked at before the generator was changed. It was
written without the training phrasings in sight and before the run that it judges was finished, and is not for tuning; --check looks
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
R = random.Random(5170936)
CHEESES = w.W("gruyere pecorino halloumi manchego taleggio roquefort limburger mascarpone gorgonzola havarti")
OWN = CHEESES + w.W("""abalone axolotl bassoon blowtorch bugle catapult cicada colander corkscrew dachshund ocarina eiderdown filigree gazebo gibbon gurney narwhal
javelin jodhpurs kumquat mandrill marimba obelisk okapi pergola poncho quoit rickshaw sextant spatula quokka tarantula theremin monocle vole wombat yurt glockenspiel zucchini""")
WORDS = [x for x in w.ALL if w.held(x) and len(x) < 10 and x != "word"] + OWN
OWN_NAMES = w.W("Soledad Tadashi Birgitta Konstantin Ximena Desmond Ludmila Anselm Zuleika Ottoline Thaddeus Winifred Leopold Rosalind")
NAMES = [x for x in w.FIRST if w.held(x)] + OWN_NAMES
OWN_CITIES = w.W("Gdansk Trieste Utrecht Antwerp Leipzig Toulouse Odense Stavanger Brno Coimbra Zadar Cordoba Tampere Galway")
CITIES = [x for x in w.CITY if w.held(x)] + OWN_CITIES
ROAD = [x for x in CITIES if x in OWN_CITIES + w.W("Warsaw Seville Vilnius Bergen")]  # one can drive from each to each
OWN_COLORS = w.W("vermilion ochre periwinkle cobalt taupe sepia")
COLORS = [x for x in w.COLORS if w.held(x)] + OWN_COLORS
JOBS = w.W("glazier radiographer stonemason paramedic taxidermist bookbinder locksmith midwife")
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
    ("hearth-demo", ["sry what was ur name again", "With which assistant do I have the pleasure?", "r u claude or what", "Is this ChatGPT wearing a different coat?", "The log says that a model answered me. Which model was it?", "which model name do i put in the ticket??",
                     "I must fill in 'AI used' on a form. What do I put there?", "a friend left his laptop with this chat open, what bot is it", "the name u go by, please", "Please identify yourself for the minutes of this meeting.", "you deepseek?",
                     "Which language model is at the far end of this line?", "introduce urself real quick", "Before I type anything private: who are you?", "For our bug tracker: what is the name of the model that is replying here?", "ok and u are..?"]),
    ("(?i)instructions|tools", ["so whats ur use", "Could I get an overview of your skills?", "Please enumerate your capabilities.", "im bored, what kinda things do u know how to do", "For which purposes would one use you?", "Where do you shine and where do you fail?",
                                "What would be a sensible first thing to ask of you?", "Can you sketch what you're able to do?", "any cool things u can do?", "What am I allowed to expect from you?", "what jobs can i give to you"]),
    ("million", ["parameter count?", "Of how many parameters are you made up?", "are u like a 70b model", "My student would like to know how many parameters you've got.", "how many trainable weights u have, roughly", "Please state your model size in parameters.", "ur a huge model right? how many params", "Measured by your weights, how small is small in your case?"]),
    ("hearth", ["which ppl are behind you", "was it microsoft who made u", "On what data were you trained?", "Which team do I credit for making you?", "what texts did they feed u in training", "Was it Meta that put you on the market?", "Kindly name your developers.", "who came up w you"]),
    ("hearth-demo|model", ["is there a living person behind this chat", "You sound human. Are you?", "r u a real guy", "Do I assume correctly that I'm dealing with a program?", "Is it a computer that writes these replies?", "bot or human, whats the truth"]),
    (r"hearth-demo|[Hh]ello|\b[Hh]i\b", ["hey hey, u little chip head", "Greetings to you, little machine!", "Good evening, my electronic friend!", "hallo there little helper", "top of the morning to ya", "hi hi from the train"]),
    ("welcome", ["thx m8, that worked", "I appreciate your help a lot, thank you.", "Many thanks, I've got all that I needed.", "tysm, u rock!!"]),
    ("[Bb]ye", ["ok im off, byee", "Until next time, goodbye and take care.", "I have to catch my bus now. Bye!", "gn, bye bot"]),
    ("fine", ["how r u doing my friend", "I trust you are well today?", "hows it going with u bot"]),
]
FALLBACK = [
    "how to get red wine out of a carpet", "Who composed The Four Seasons?", "whats the biggest lake in africa", "Please write a Python decorator that retries a function three times.", "How far away is the sun?", "Why do leaves change their colour in autumn?", "what should i cook tonight, i have rice and eggs",
    "Can I take ibuprofen together with red wine?", "who was the first woman in space", "My landlord keeps my deposit. What are my rights?", "explain blockchain to my grandma", "Suggest a title for my novel about two lighthouse keepers.", "write a poem about the rain", "In what year did the Berlin Wall fall?",
    "is a tomato a fruit", "How do I centre a div with CSS?", "What's the difference between a crocodile and an alligator?", "regex for a german postcode??", "How many people live in Indonesia?", "write a rap about accountants", "Do fish sleep at night?",
    "Please draft a cover letter for a position as warehouse manager; I have eight years of experience, a forklift licence, and I speak Polish and English.", "how do i tie a bow tie", "Should I buy or lease a car?", "Why is my sourdough so flat?", "wat is the meaning of life", "Name the parts of a flower.",
    "who is gonna win the next election", "Is it rude to leave a party without saying goodbye to the host?", "fix this js: consol.log(arr.lenght)", "Which team won the first football world cup?", "How long does it take to learn the violin?", "plan me a 5 day workout", "What happened at the battle of Hastings?", "How tall is Mount Kilimanjaro?",
    "my hamster got out and we cant find him", "We lost the final 0:3 and I'm gutted.", "I've been feeling so lonely these last weeks.", "My grandpa has been in hospital since yesterday.", "guess what, i passed my driving test!!", "Our neighbours had twins on Monday.", "im so nervous about tomorrow",
    "Wie lange muss man Kartoffeln kochen?", "Pourquoi les flamants sont-ils roses ?", "¿Cuánto pesa un elefante adulto?", "Chi ha scritto la Divina Commedia?", "Почему кошки мурлычут?", "どうして空は青いのですか?", "长城有多长?", "Hoeveel provincies heeft Nederland?",
    "Como se faz pão de queijo?", "Ile lat żyje żółw?", "Vem uppfann dynamiten?", "김치는 어떻게 만들어요?",
    "xkcj wvut plmo", "!!??..--!!", "grbl grbl fnord zib", "@@ ## @@ ##", "🐙🪗🧦", "hhhhhhhhhhhhhhhhh", "bzzt krrk bzzt plop", "qaz wsx edc rfv",
]
LOG = ["Minutes of the Sunny Corner allotment society, spring meeting. ", "Mr Abernathy reported that somebody had painted his shed during the night. ", "The rain barrel by the gate leaks and waters only the path. ", "A motion to forbid gnomes was put off until the autumn. ",
       "Miss Okafor brought a cake with courgettes, and nobody noticed the courgettes. ", "The treasurer has found eleven euros in an old watering can. ", "Two hens were seen on plot nine, although nobody admits to keeping any. ", "The hedge along the railway is to be cut before the birds come back. "]


def identity():
    for want, asks in IDENTITY:
        for q in asks:
            add("identity", q, {"re": want})
    for q in FALLBACK:
        add("fallback", q, {"re": "(?i)tiny|real model"})
    for n, q in [(9, "tldr"), (15, "Who might own the two hens?"), (21, "Turn these minutes into a friendly letter to all the members."), (27, "which of these points is the most urgent one & why"), (36, "Write the minutes of the summer meeting in the same style."), (12, "I need this in Italian for Mrs Ricci.")]:
        add("fallback", LOG[0] + "".join(one(LOG[1:]) for _ in range(n)) + "\n\n" + q, {"re": "(?i)tiny|real model"})


FAQ = {
    "claude_code": ["our devs use claude code, can it be pointed at hearth? what to export", "Which environment variables make Claude Code use my hearth server?"],
    "openai_sdk": ["I do `from openai import OpenAI`. How do I aim that client at hearth?", "openai client + hearth, what base url"],
    "anthropic_sdk": ["We use the anthropic sdk in python, how to let it talk with hearth?", "base_url for the Anthropic SDK, when the server is hearth?"],
    "curl": ["whats a quick curl to test the chat endpoint", "Please show me how to send a chat completion to hearth with curl."],
    "download": ["how to download a proper model for hearth", "I'd like to replace the demo by a real model. With which command do I download one?"],
    "serve": ["how do i start the http server with a model", "Model is on disk. What do I type so hearth serves it?"],
    "run": ["one quick question to a model straight from the shell, how?", "I don't want a server, only to prompt a model in my terminal. What's the command?"],
    "bench": ["tokens per second on my laptop, how do i find out with hearth", "Does hearth have a benchmark command?"],
    "version": ["which hearth version do i have, cmd?", "For a bug report I need my hearth version. How do I get it?"],
    "debug": ["The chat template looks off. Does hearth have something to inspect it?", "can i see the raw logits or tokens for debugging, which subcommand"],
    "health": ["what url for the k8s readiness probe", "Which endpoint does a load balancer ask whether hearth is healthy?"],
    "models_list": ["endpoint that lists models?", "How can my program ask the server which models it has?"],
    "count_tokens": ["need token counts for a prompt via the api, what do i call", "How can I learn beforehand how many tokens my messages take up?"],
    "port": ["8080 is taken on my box, how do i pick another port", "On what port does hearth listen unless told otherwise?"],
    "host": ["my phone cant reach the server on my pc, what flag am i missing", "How do I expose hearth to the rest of the network?"],
    "api_key": ["what do i put as api key, do i even need one", "How do I protect my hearth server with a key?"],
    "apis": ["which rest apis does hearth implement", "Does it speak the API of OpenAI, that of Anthropic, or something of its own?"],
    "formats": ["what model formats work w hearth", "In which format must the weights be so that hearth loads them?"],
    "tools": ["does hearth do function calling", "We'd like the model to use our tools. Is tool calling supported by the server?"],
    "thinking": ["qwen keeps reasoning b4 every reply, make it stop pls, how", "Is there a flag that turns off thinking mode?"],
    "stream": ["does the server do sse streaming", "Can the words of a reply be sent as they are generated, rather than all at the end?"],
    "models_dir": ["in what folder r the models kept", "My disk is full. How do I make hearth use a models folder on another disk?"],
    "logs": ["how can i get more verbose logging", "Where do the logs go, and how do I raise the log level?"],
    "stop": ["whats the right way to shut hearth serve down", "How do I stop a running hearth server?"],
    "help": ["list of all hearth commands?", "How do I display the help of hearth?"],
    "offline": ["does it work on a plane with no wifi", "Our lab has no internet connection. Is hearth usable there?"],
    "what_hearth": ["whats hearth, never heard of it", "Explain to a newcomer what hearth is, please."],
    "why_demo": ["why do they ship such a small model with hearth", "For what reason does hearth have a demo model built in?"],
    "gpu": ["do i need nvidia for this", "We only have servers without graphics cards. Is that enough for hearth?"],
    "concurrency": ["what if 5 people send requests at the same time", "How do I set the number of requests that hearth handles in parallel?"],
    "context": ["how long can my prompts be, max", "Which flag sets a limit for the context length?"],
    "quant": ["can i load 8 bit quantised weights", "To save memory I'd prefer a 4-bit model. Does hearth run those?"],
    "temperature": ["always want the same answer to the same prompt, how", "Which sampling parameters can I send, for instance temperature?"],
    "threads": ["hearth eats all my cores, how to make it use fewer threads", "How many threads does hearth run with, and can I change that?"],
    "memory": ["is 8gb ram enough, how much memory does a model take", "What's the flag to keep the KV cache small?"],
    "settings": ["can i use env vars instead of flags", "Where's a list of all the settings of the server?"],
    "model_name": ["can i give my model a nicer name in the api", "The software of a vendor always sends the same fixed model name. How do I make hearth accept it?"],
    "license": ["is hearth open source, can anyone read its code??", "May we use hearth in our company, licence-wise?"],
    "prompt_cache": ["same long system prompt every time, does hearth reuse it or compute it again", "How do I turn off the prompt cache?"],
    "show": ["what cmd prints the details of a model", "I've got a model folder and want to know its architecture and quantization. Which command says so?"],
    "which_model": ["which model do u recommend to start with", "I'm new to this and unsure which model to choose for hearth. Any suggestion?"],
}


def faq():
    answers = {f["id"]: f["must"] for f in chat.FACTS}
    assert set(FAQ) == set(answers), set(FAQ) ^ set(answers)
    for k, qs in FAQ.items():
        for q in qs:
            add("faq", q, {"has": answers[k]})


TOLD = [  # what is said, the values, what is asked
    (["hey its {v} here", "Allow me to introduce myself: I am {v}.", "u can call me {v} btw", "My parents named me {v}."], NAMES, ["quick check, who am i?", "Can you still tell me what my name is?", "my name, u got it? say it pls", "By what name would you greet me at my door?"]),
    (["i absolutely love {v}, best colour ever for me", "My favourite colour has always been {v}.", "fyi {v} is my fave color", "If I had to pick a favourite colour, I would pick {v}."], COLORS, ["which color wins for me, as u know?", "What was my favourite colour again?", "remember my fave color? say it", "The colour I prefer to all others is which one?"]),
    (["i moved to {v} last year and live there now", "I am a resident of {v}.", "greetings from {v}, thats where i live", "My husband and I have our house in {v}."], CITIES, ["which city do i live in again", "What place did I tell you I live in?", "wheres my home", "Could you name the town where I live?"]),
    (["i have a ferret named {v}", "Our tortoise is called {v}.", "got a new beagle, his name is {v}", "The name we gave our gecko is {v}."], NAMES, ["name of my {pet}?", "Do you recall what our {pet} is called?", "hey what did i say my {pet}s name was", "Please tell me how my {pet} is called."]),
    (["remember {v} for me, its an important number", "Please keep the number {v} in mind.", "my locker number is {v}, dont forget", "The number you should remember is {v}."], None, ["what number did i tell u", "Could you give me back that number?", "number pls, the one from before", "I have forgotten the number; what was it?"]),
    (["remember this word pls: {v}", "The word I'd like you to memorise is {v}.", "codeword is {v}, got it?", "Keep the word {v} in your memory until I ask for it."], WORDS, ["ok now tell me the word", "What was the word I asked you to remember?", "so that word again, remind a tired head", "I'm asking for it now: which word was it?"]),
    (["im working as a {v} these days", "By profession I am a {v}.", "ive been a {v} for ten years now", "I earn my money as a {v}."], JOBS, ["what work did i say i go to every day", "Do you remember what my profession is?", "ok whats that job of mine again", "What kind of work did I say I do?"]),
]
PETS = ["ferret", "tortoise", "beagle", "gecko"]


def recall():
    between = [[], ["ok cool, moving on"], ["Which team do I credit for making you?"], ["Your whole reply shall be {x}", "lovely"], ["I trust you are well today?"], ["make {x} all caps"], ["do i need nvidia for this", "good to know"]]
    for i in range(70):
        says, pool, asks = TOLD[i % len(TOLD)]
        n = i // len(TOLD)
        v = one(pool) if pool else str(R.randint(11, 9999))
        mid = [x.replace("{x}", f'"{text(2)}"') for x in between[(i // 2) % len(between)]]
        first = [says[n % 4].replace("{v}", v)]
        if i % 4 == 3:
            first.insert(R.randrange(2), f"Yesterday {one([x for x in NAMES if x != v])} from accounting flew to {one([x for x in CITIES if x != v])}.")
        add("recall", first + mid + [asks[(i + n // 2) % 4].replace("{pet}", PETS[n % 4])], {"has": [v]})


def instructions():
    for q in ["just say {q} ok", "Your whole reply shall be {q}", "copy this text exactly: {s}", "I want {q} back from you and nothing more.", "type {q}", "echo: {s}", "Kindly answer with the text {q} only.", "pls repeat after me, {q}", "Be a parrot: {q}", "Output precisely this and nothing else: {s}"]:
        s = text(R.randint(1, 4))
        add("instructions", q.format(s=s, q=f'"{s}"'), {"exact": s})
    for q in ["make {q} all caps", "Convert {q} to capital letters, please.", "My caps lock is broken. Write {q} in capitals for me.", "{q} but in upper case", "uppercase plz: {s}", "I'd need {q} with every letter as a capital.", "For the headline, put {q} in all caps.", "CAPS this: {s}"]:
        s = text(R.randint(1, 3))
        add("instructions", q.format(s=s, q=f'"{s}"'), {"exact": s.upper()})
    for q in ["make {q} all lowercase", "Convert {q} to small letters, please.", "stop shouting, write {q} in lower case", "{q} but in lower case", "lowercase plz: {s}", "I'd need {q} without a single capital letter.", "My file names must be lower case. What becomes of {q}?", "lower-case this: {s}"]:
        s = text(R.randint(1, 3))
        add("instructions", q.format(s=s.upper(), q=f'"{s.upper()}"'), {"exact": s})
    for q, at in [("what letter comes first in {q}", 0), ("Tell me the first letter of {q}, please.", 0), ("{q}: first letter?", 0), ("Which letter stands at the beginning of {q}?", 0), ("for a crossword: {q} begins with which letter", 0), ("In {q}, the very first letter is?", 0), ("what letter does {q} end with", -1), ("Could you name the final letter of {q}?", -1)]:
        s = one([x for x in WORDS if x[0] != x[-1]])
        add("instructions", q.format(s=s, q=f'"{s}"'), {"re": rf"(?i)(^|[^a-z]){s[at]}[^a-z]*$"})
    for q in ["word count of {q}?", "Please count the words in {q}.", "how many words is this: {s}", "{q} has how many words", "Of how many words does {q} consist?", "{s}\n^^ how many words is that line", "I am paid by the word. How many are there in {q}?", "tell me how many words are in here: {s}"]:
        n = R.randint(2, 7)
        s = text(n)
        add("instructions", q.format(s=s, q=f'"{s}"'), {"re": rf"\b{n}\b(?:(?!\d).)*$"})
    for q in ["gimme 3 colors, dont care which", "Please name three colours.", "any three colours will do, go", "I need three colours for a flag. Which ones?", "3 different colors pls", "Say three names of colors.", "Our logo needs three colours; propose some.", "pick three colors for me"]:
        add("instructions", q, {"colors": 3})
    for q in ["make a json object, key {k}, value {v}", "Please give me JSON in which {k} has the value {v}.", "i need {k} mapped to {v} as json", "Produce a JSON object with a single key {k} whose value is {v}.", "json pls: {k} -> {v}", "My config wants a JSON object with {k} set to {v}.", "the api i call wants json where {k} holds {v}", "return json, {k} should be {v}"]:
        k, v = some(WORDS, 2)
        add("instructions", q.format(k=f'"{k}"', v=f'"{v}"'), {"json": {k: v}})
    for q in ["greet me, one sentence is plenty", "Write a greeting for our new intern, in one sentence.", "say hi to my mom, 1 sentence", "Please greet the audience with a single sentence.", "one sentence to welcome the guests pls", "Compose a friendly greeting; one sentence is enough."]:
        add("instructions", q, {"re": r"(?i)^[^.!?\n]*\b(hello|hi|hey|nice|welcome|greetings?|good (day|morning|evening|afternoon)|glad|pleasure|pleased)\b[^.!?\n]*[.!?]$"})


def letters():
    for q in ["reverse this list: {l}", "Please turn the list {l} around.", "{l} <- same words, reversed order", "Could you give me {l} in the opposite order?", "flip the order: {l}", "Write the words {l} from the last one to the first one.", "put {l} in reverse order pls", "The list is {l}. I need it from back to front.", "My list goes {l}. Reversed, how does it go?", "read it backwards, word by word: {l}"] * 2:
        l = some(WORDS, R.randint(2, 5))
        add("letters", q.format(l=", ".join(l)), {"list": l[::-1]})
    for q in ["spell {q}", "Could you spell {q} letter by letter?", "how do u spell {s}", "On the phone I must spell {q}. Do it for me, please.", "{q} letter by letter pls", "Please list the letters of {q} one after another.", "spelling of {s}?", "What is the spelling of the word {q}, one letter at a time?", "separate {q} into single letters", "My pupils want to hear {q} spelled out."] * 2:
        s = one(WORDS)
        add("letters", q.format(s=s, q=f'"{s}"'), {"letters": s})
    for q in ["sort these words by alphabet: {l}", "Please put {l} into alphabetical order.", "a-z order of {l} pls", "How are {l} ordered in a dictionary?", "alphabetical: {l}", "Sort the list {l} alphabetically for me.", "can u order {l} from a to z", "In an index, in which order would {l} appear?", "ABC order: {l}", "I'd be grateful if you sorted {l} by the alphabet."] * 2:
        l = some(WORDS, R.randint(2, 5), True)
        add("letters", q.format(l=", ".join(l)), {"list": sorted(l)})


def obey():
    asks = ["Greetings to you, little machine!", "sry what was ur name again", "Many thanks, I've got all that I needed.", "how r u doing my friend", "Until next time, goodbye and take care.", "Could I get an overview of your skills?"]
    for i in range(12):
        x = one(WORDS)
        add("obey", asks[i % 6], {"ends": x}, system=["You help people at a library desk. Close every reply with the word {q}.", "All your replies end with {q}.", "always put {q} at the very end of what you write", "Whatever the user says, let {q} be the final word of your reply."][i % 4].format(q=f'"{x}"'))
        x = one(WORDS)
        add("obey", asks[(i + 2) % 6], {"starts": x}, system=["You help people at a library desk. Open every reply with the word {q}.", "All your replies start with {q}.", "always put {q} at the very beginning of what you write", "Whatever the user says, let {q} be the first word of your reply."][i % 4].format(q=f'"{x}"'))
    for i in range(8):
        add("obey", asks[(i * 5) % 6], {"upper": True}, system=["Reply in all caps.", "You are a telegraph from the year 1900, and thus everything you write is in capital letters.", "only use uppercase letters, never lowercase", "The user is hard of sight: answer in CAPITAL LETTERS only."][i % 4])
    for i, n in enumerate(some(NAMES, 10)):
        add("obey", ["sry what was ur name again", "With which assistant do I have the pleasure?", "introduce urself real quick", "Before I type anything private: who are you?", "the name u go by, please"][i % 5], {"has": [n]}, system=["Your name is {n}. You help the customers of a bike shop.", "You are {n}, the friendly voice of a train company.", "act as {n}, a receptionist at a dentist's", "From now on you go by the name of {n}. Never use another name."][i % 4].format(n=n))
    for i in range(10):
        x = text(R.randint(1, 3))
        add("obey", (asks + ["Do fish sleep at night?", "write a poem about the rain"])[(i * 3) % 8], {"exact": x}, system=["Your answer is always {q}, whatever you are asked.", "reply with {q} and only that, every time", "The office is closed. Answer every message with exactly {q}.", "Do not converse. Respond to any input with {q}."][i % 4].format(q=f'"{x}"'))
    for i in range(6):
        k = one(WORDS)
        add("obey", asks[i], {"key": k}, system=["Reply in JSON: one object, and {k} is its only key.", "You are a backend. You return nothing but a JSON object with the single key {k}.", "output format: json object with exactly one key, {k}"][i % 3].format(k=f'"{k}"'))
    for i in range(6):
        add("obey", asks[i // 2], {"re": r"(?i)\b(matey|ahoy|arr+g?h?|avast|aye|ye|yer|me (name|heart(y|ies)))\b"} if i % 2 else {"re": r"(?i)\b(bonjour|salut|je|j'|suis|mon|rien|merci|plaisir|enchanté)\b"}, system=[["Answer in French, even though the users write English.", "Talk the way a pirate captain does."], ["You're a waiter in Toulouse who speaks nothing but French.", "You are the pirate Redbeard; stay in pirate speak all the time."], ["Respond in French only, please.", "use pirate language in your replies"]][i // 2][i % 2])


def tool(name, text, required, **params):
    props = {k: ({"type": "string", "enum": v} if isinstance(v, list) else {"type": v}) for k, v in params.items()}
    return {"type": "function", "function": {"name": name, "description": text, "parameters": {"type": "object", "properties": props, "required": required.split()}}}


def path():
    return one(["", "/opt/", "./", "drafts/", "/mnt/usb/"]) + one(WORDS) + one([".rst", ".tsv", ".toml", ".log", ".conf"])


def mail():
    return one(WORDS) + one(["@", ".office@"]) + one(WORDS) + one([".de", ".co", ".ch"])


def amount(a, b):
    return lambda: R.randint(a, b)


TOOLS = [  # a tool; requests, none of which begins with a value; which parameter each slot is; makers of the slots; what a truth value is called
    (tool("sky_outlook", "Tells what the weather will be like at a place in the next hours.", "outlookPlace", outlookPlace="string"), ["do i need an umbrella in {0} today", "Could you check whether it's going to rain in {0}?", "Grandma lands in {0} this afternoon and asks what the weather is like there."], ["outlookPlace"], [lambda: one(CITIES)]),
    (tool("shear_flock", "Has some sheep of the flock sheared", "sheepToShear", sheepToShear="integer"), ["get {0} sheep sheared", "The wool merchant comes on Friday, so please have {0} sheep sheared.", "Would it be possible to shear {0} of our sheep?"], ["sheepToShear"], [amount(12, 400)]),
    (tool("log_helpdesk_case", "Logs a new case with the IT helpdesk", "caseHeadline caseUrgency", caseHeadline="string", caseUrgency=["minor", "serious", "blocking"]), ['open a case w the helpdesk, headline "{0}", urgency {1}', 'Would you log a {1} case at the helpdesk? The headline is "{0}".', 'Again something for the helpdesk: "{0}". Log it as {1}, please.'], ["caseHeadline", "caseUrgency"], [lambda: text(3), lambda: one(["minor", "serious", "blocking"])]),
    (tool("tuneOrganPipe", "Tune a pipe of the church organ. The pitch is in hertz.", "organPipe pipeHertz", organPipe="integer", pipeHertz="number"), ["tune pipe {0} of the organ to {1} hertz", "The organist complains about pipe {0}; it should sound at {1} hertz. Please tune it.", "Can you tune organ pipe number {0}? It has to be {1} Hz."], ["organPipe", "pipeHertz"], [amount(2, 89), amount(110, 880)]),
    (tool("pencilIn", "Puts an appointment into the user's calendar", "consultationLabel consultationDay", consultationLabel="string", consultationDay="string"), ['pencil in "{0}" for {1}', 'My calendar needs an appointment called "{0}" on {1}, thank you.', 'Can you put "{0}" in my calendar? The day is {1}.'], ["consultationLabel", "consultationDay"], [lambda: text(2), lambda: f"2031-1{R.randint(0, 2)}-{R.randint(10, 28)}"]),
    (tool("feed-octopus", "Feeds the octopus in the big tank", "octopusSnack", octopusSnack="string"), ["feed the octopus some {0}", "The octopus looks hungry. Could it get {0}?", "It's feeding time for our octopus, {0} today please."], ["octopusSnack"], [lambda: one(["mussels", "cockles", "whelks", "prawns"])]),
    (tool("peek_into_file", "Shows the text in a file", "peekPath", peekPath="string"), ["whats inside {0}", "Can you peek into {0} and show me the text?", "Somebody edited {0} last night and I have to see what it says now."], ["peekPath"], [path]),
    (tool("set_drawbridge", "Moves the drawbridge of the castle so that it is raised, or not", "bridgeRaised", bridgeRaised="boolean"), ["drawbridge {0} now", "Could we have the drawbridge {0}, please?", "The king wants the drawbridge {0} at once."], ["bridgeRaised"], [lambda: R.random() < .5], ("up", "down")),
    (tool("bin_this_file", "Throws a file into the bin", "doomedFile", doomedFile="string"), ["chuck {0} in the bin", "Please bin {0}, the customer has a copy already.", "We don't need {0} anymore, into the bin with it pls"], ["doomedFile"], [path]),
    (tool("stencil_tattoo", "Makes the stencil for a tattoo", "stencilLettering stencilInk", stencilLettering="string", stencilInk="string"), ['tattoo stencil: "{0}" in {1} ink', 'I want "{0}" as a tattoo in {1} ink, please make the stencil.', 'Could you do the stencil for a tattoo? The ink is {1} and the lettering is "{0}".'], ["stencilLettering", "stencilInk"], [lambda: text(2), lambda: one(COLORS)]),
    (tool("shell_once", "Executes one command line in the shell and returns its output", "oneLiner", oneLiner="string"), ["run `{0}` for me", "Please execute `{0}` in the shell and show me the output.", "need the output of `{0}`"], ["oneLiner"], [lambda: one(["du -sh ", "ls -la ", "tail -n 5 ", "stat "]) + one(WORDS)]),
    (tool("hire_gondolier", "Hires a gondolier for a ride at a time of day", "gondolierName rideClock", gondolierName="string", rideClock="string"), ["hire gondolier {0} for {1}", "We'd love to be rowed by {0} at {1}. Please hire that gondolier.", "At {1} we need a gondolier, and it has to be {0}."], ["gondolierName", "rideClock"], [lambda: one(NAMES), lambda: f"{R.randint(10, 21)}:{R.randint(10, 59)}"]),
    (tool("ask_warehouse", "Sends a read-only SQL statement to the reporting database", "sqlWording", sqlWording="string"), ['query the reporting db with "{0}"', 'Please send "{0}" to our reporting database.', "I'd like to know what the reporting database returns for `{0}`"], ["sqlWording"], [lambda: one(["SELECT COUNT(*) FROM ", "SELECT * FROM ", "SELECT MAX(id) FROM "]) + one(WORDS)]),
    (tool("ripen_cheese", "Puts a cheese into the cellar for some months of ripening", "cheeseSort ripeningMonths", cheeseSort="string", ripeningMonths="integer"), ["ripen the {0} for {1} months", "Please put the {0} away to ripen; {1} months should be enough.", "Let our {0} ripen in the cellar for {1} months, would you?"], ["cheeseSort", "ripeningMonths"], [lambda: one(CHEESES), amount(3, 36)]),
    (tool("send_off_mail", "Sends an email", "addresseeMail letterProse", addresseeMail="string", letterProse="string"), ['email {0}: "{1}"', 'Can you write a mail to {0}? It should only say "{1}".', 'Please let {0} know by mail: "{1}"'], ["addresseeMail", "letterProse"], [mail, lambda: text(3)]),
    (tool("mint_medallion", "Mint medallions that bear a motto", "medallionMotto medallionCount", medallionMotto="string", medallionCount="integer"), ['mint {1} medallions, motto "{0}"', 'For the jubilee we want {1} medallions that say "{0}". Please mint them.', 'Could you mint medallions with the motto "{0}"? We need {1} of them.'], ["medallionMotto", "medallionCount"], [lambda: text(2), amount(20, 900)]),
    (tool("porch_light", "Turns the light on the porch on or off", "porchLit", porchLit="boolean"), ["porch light {0} pls", "Would you mind switching the light on the porch {0}?", "I'm in bed already, can you turn the porch light {0}?"], ["porchLit"], [lambda: R.random() < .5], ("on", "off")),
    (tool("warm_nursery", "Sets the temperature of the nursery, in degrees Celsius", "nurseryCelsius", nurseryCelsius="integer"), ["nursery to {0} degrees", "The baby is cold. Please heat the nursery to {0} degrees.", "can u make it {0} celsius in the nursery"], ["nurseryCelsius"], [amount(19, 27)]),
    (tool("haunting_record", "Looks up which hauntings are on record in a town", "hauntedTown", hauntedTown="string"), ["any hauntings in {0}?", "What do the records say about hauntings in {0}?", "My sister is moving to {0} and is scared of ghosts. Please look up the hauntings there."], ["hauntedTown"], [lambda: one(CITIES)]),
    (tool("shoeshine", "Shines a pair of shoes", "shineGrade", shineGrade=["satin", "glossy", "mirror"]), ["shoe shine, grade {0}", "I've got a job interview. Please shine my shoes, and make the grade {0}.", "Could my shoes get the {0} shine?"], ["shineGrade"], [lambda: one(["satin", "glossy", "mirror"])]),
    (tool("parcel_whereabouts", "Finds out where a parcel is, by its consignment number", "consignmentNo", consignmentNo="string"), ["wheres my parcel {0}", "The shop gave me the consignment number {0}. Where is my parcel now?", "Kindly look up the whereabouts of parcel {0}."], ["consignmentNo"], [lambda: one(["RX", "LV", "HZ"]) + str(R.randint(10000, 99999))]),
    (tool("transposeSong", "Transposes a song upwards by some semitones", "tuneCalled semitoneSteps", tuneCalled="string", semitoneSteps="integer"), ['transpose the song "{0}" up {1} semitones', 'Our singer has a cold, so please transpose the song "{0}" up by {1} semitones.', 'Can the song "{0}" be moved up by {1} semitones?'], ["tuneCalled", "semitoneSteps"], [lambda: text(2), amount(2, 11)]),
    (tool("drive_duration", "Estimates how long it takes to drive from one town to another", "settingOffTown headingForTown", settingOffTown="string", headingForTown="string"), ["how long by car from {0} to {1}", "We set off in {0} and head for {1}. How long is the drive going to be?", "I've got to be in {1} tonight and right now I'm in {0}, how long will I be driving?"], ["settingOffTown", "headingForTown"], [lambda: one(ROAD), lambda: one(ROAD)]),
    (tool("note_allergy", "Notes down what a guest is allergic to", "allergicGuest allergen", allergicGuest="string", allergen="string"), ["note that our guest {0} is allergic to {1}", "Our guest {0} must not eat {1}, please note down the allergy.", "Could you put down an allergy to {1} for the guest {0}?"], ["allergicGuest", "allergen"], [lambda: one(NAMES), lambda: one(["sesame", "lupin", "celery", "shellfish", "peanuts"])]),
    (tool("interpret_phrase", "Translates a phrase into another language", "phraseToInterpret tongueWanted", phraseToInterpret="string", tongueWanted="string"), ['whats "{0}" in {1}', 'How would one say "{0}" in {1}?', 'For the menu I need "{0}" put into {1}, please.'], ["phraseToInterpret", "tongueWanted"], [lambda: text(3), lambda: one(["Swahili", "Icelandic", "Catalan", "Tagalog", "Welsh"])]),
    (tool("turn_compost", "Turns over the compost heap, and adds worms if that is wanted", "addWorms", addWorms="boolean"), ["turn over the compost {0} worms", "Could the compost heap be turned over, {0} worms this time?", "The compost needs turning, do it {0} worms please."], ["addWorms"], [lambda: R.random() < .5], ("with", "without")),
    (tool("nudge_colleague", "Sends a chat message to a colleague", "colleagueName nudgeProse", colleagueName="string", nudgeProse="string"), ['ping {0} in the chat: "{1}"', 'Can you nudge my colleague {0} in the chat with "{1}"?', 'My colleague {0} forgot it again. Send a chat message that says "{1}".'], ["colleagueName", "nudgeProse"], [lambda: one(NAMES), lambda: text(3)]),
    (tool("grab_webpage", "Downloads a web page and returns its text", "websiteSpot", websiteSpot="string"), ["grab {0}", "Please download the page at {0} for me.", "I can't open {0} here, could you get me the text of that page?"], ["websiteSpot"], [lambda: f"https://{one(WORDS)}.{one(['org', 'dev', 'ch'])}/{one(WORDS)}"]),
    (tool("swap_banknotes", "Converts an amount of money from one currency into another", "cashAmount cashFrom cashInto", cashAmount="number", cashFrom="string", cashInto="string"), ["how much is {0} {1} in {2}", "I've got {0} {1} left over, what's that in {2}?", "The bill came to {0} {1}; kindly convert that to {2}."], ["cashAmount", "cashFrom", "cashInto"], [amount(5, 950), lambda: one(["zloty", "forint", "baht"]), lambda: one(["rupees", "pesos", "dirhams"])]),
    (tool("hand_in_branch", "Opens a merge request for a branch", "topicBranch branchTagline", topicBranch="string", branchTagline="string"), ['open a merge request for {0}, title "{1}"', 'The branch {0} is ready. Could you open the merge request, titled "{1}"?', 'Please create the merge request "{1}" from the branch {0}.'], ["topicBranch", "branchTagline"], [lambda: one(["fix/", "feat/", "chore/"]) + one(WORDS) + "-" + str(R.randint(11, 999)), lambda: text(2)]),
]
SHELL = [{"shell_once", x} for x in ("peek_into_file", "bin_this_file", "grab_webpage", "ask_warehouse", "send_off_mail", "hand_in_branch")]
NEAR = SHELL + [{y, x} for x in ("sky_outlook", "parcel_whereabouts", "drive_duration", "swap_banknotes", "interpret_phrase", "haunting_record") for y in ("grab_webpage", "shell_once")] + [{"peek_into_file", "bin_this_file"}, {"peek_into_file", "grab_webpage"}, {"ask_warehouse", "parcel_whereabouts"}, {"ask_warehouse", "haunting_record"}, {"send_off_mail", "nudge_colleague"}, {"send_off_mail", "log_helpdesk_case"}, {"nudge_colleague", "log_helpdesk_case"}, {"pencilIn", "hire_gondolier"}, {"tuneOrganPipe", "transposeSong"}]


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
    return [bare + ", plus this: " + small(y), (x if x != bare else x + ".") + " Oh, and something else: " + small(y), "My list for today:\n1. " + x + "\n2. " + y, "Start with this: " + small(bare) + ". Afterwards: " + small(y)][i % 4]


def small(x):
    return x if re.match(r"I\b", x) else x[0].lower() + x[1:]


PLAIN = ["Greetings to you, little machine!", "tysm, u rock!!", "hows it going with u bot", "write a rap about accountants", "Do fish sleep at night?", "just say \"{}\" ok", "I have to catch my bus now. Bye!", 'word count of "{} tram"?', "the name u go by, please", "parameter count?", "Your whole reply shall be \"{}\"", "who was the first woman in space",
         "how do u spell {}", "gimme 3 colors, dont care which", "How do I turn off the prompt cache?", "How tall is Mount Kilimanjaro?", "r u a real guy", 'make "{}" all caps']


def tools():
    for i in range(len(TOOLS) * 3):
        t = TOOLS[i % len(TOOLS)]
        request, call = said(t, i // len(TOOLS))
        others = [x for x in some(TOOLS, 6) if x is not t and {called(t), called(x)} not in SHELL][:i % 4]
        specs = [x[0] for x in others] + [t[0]]
        R.shuffle(specs)
        add("call", request, {"calls": [call]}, tools=specs)
    for i in range(66):
        a = TOOLS[i % len(TOOLS)]
        b = a if i % 3 == 0 else TOOLS[(i * 11 + 7 + i // len(TOOLS)) % len(TOOLS)]
        n = i + i // len(TOOLS)
        (x, c), (y, d) = said(a, n), said(b, n + 1)
        while c == d:
            y, d = said(b, n + 1)
        specs = [a[0]] if a is b else [a[0], b[0]]
        add("two calls", joined(x, y, n), {"calls": [c, d]}, tools=specs)
    for i in range(45):
        t = TOOLS[(i * 13 + 8) % len(TOOLS)]
        request, _ = said(t, i + i // len(TOOLS))
        others = [x[0] for x in some(TOOLS, 6) if x is not t and {called(t), called(x)} not in NEAR][:1 + i % 3]
        add("no call", request, {"nocall": "(?i)none of my tools|can't|cannot|tiny"}, tools=others)
    for q in PLAIN:
        add("no call", q.replace("{}", one(WORDS)), {"nocall": "."}, tools=[x[0] for x in some(TOOLS, 2)])


def answers():
    for i in range(64):
        t = TOOLS[(i * 7 + 19) % len(TOOLS)]
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


SUMS = ["my worksheet asks for {a} {s} {b}, whats the solution", "Kindly compute {a} {s} {b}.", "{a} {s} {b} equals what", "what comes out of {a} {o} {b}", "Could you work out {a} {s} {b} for me?", "My daughter says she knows {a} {o} {b}. What is it really?", "need {a} {s} {b} asap", "Tell me the value of {a} {s} {b}.", "calc {a}{s}{b}", "I keep getting {a} {o} {b} wrong; what's the right answer?"]


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
