"""Writes heldout.json: the prompts of the evaluation. Phrasings, tools and parameter names are written here by hand and are
none of the generator's; words and names are those that words.held keeps from training, or are only here. This is the fifth set:
nothing of the first four is in it, because the failures on the fourth had been looked at before the generator was changed. It was
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
R = random.Random(844021)
HERBS = w.W("tarragon chervil marjoram fenugreek oregano lovage sorrel turmeric hyssop borage")
OWN = HERBS + w.W("""albatross alcove anteater antler artichoke balustrade bazaar bobsleigh caribou castanet cauldron cormorant croissant croquet dandelion falafel
gauntlet geyser gramophone hacksaw jackal kazoo kimono gnocchi leotard loofah mammoth moustache nutcracker parasol piccolo puffin focaccia snorkel starfish
tiara toucan tugboat turnstile urchin valise warthog wolverine xylophone""")
WORDS = [x for x in w.ALL if w.held(x) and len(x) < 10 and x != "word"] + OWN
OWN_NAMES = w.W("Cordelia Barnaby Seraphina Crispin Evangeline Fergus Rupert Delphine Imogen Lavinia Mortimer Petronella Reginald Tarquin")
NAMES = [x for x in w.FIRST if w.held(x)] + OWN_NAMES
OWN_CITIES = w.W("Tromso Rijeka Haifa Lugano Malaga Cadiz Pula Lucerne Salzburg Genoa Ancona Kiel Lausanne Dijon")
CITIES = [x for x in w.CITY if w.held(x)] + OWN_CITIES
COASTAL = [x for x in CITIES if x in w.W("Mumbai Miami Doha Baku Bergen Tromso Rijeka Haifa Malaga Cadiz Pula Genoa Ancona Kiel")]
OWN_COLORS = w.W("cerise ecru russet aquamarine amaranth lilac")
COLORS = [x for x in w.COLORS if w.held(x)] + OWN_COLORS
JOBS = w.W("cartographer milliner saddler sommelier thatcher farrier luthier falconer")
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
    ("hearth-demo", ["what ai am i using rn", "May I know what to call you?", "yo bot, name?", "Mind introducing yourself in a line or two?", "are u gemini or something else", "Is it Llama that I'm writing to?", "My boss wants to know which model this is.", "hm who dis on the other end",
                     "I started the program and a chat opened. Who am I talking with?", "so what model do they have running on here", "Which AI is replying to me at present?", "state ur name pls", "Hold on, who's this?",
                     "For the caption of a screenshot I need the name of this model.", "did i end up at mistral here", "Before we begin, could you say who you are?"]),
    ("(?i)instructions|tools", ["What are you good at, exactly?", "give me some examples of stuff u do", "What kinds of help do you offer?", "so.. what can i ask you", "I just installed this. What can it do for me?", "List the things you can handle, please.",
                                "what r ur features", "Is there anything you're able to do for me?", "what sort of tasks should i give u", "Tell me a bit about what you can do and where your limits are.", "what are ur talents"]),
    ("million", ["how large a model are you", "whats ur total of params", "Do you have 7B parameters?", "Do you know how many weights you consist of?", "how many params r in there", "Is your parameter count closer to a million or to a billion?", "I'd be curious to hear how many parameters you have.", "are u big or small, in parameters i mean"]),
    ("hearth", ["Who do I have to thank for building you?", "so did google hatch u", "Who are the people that created you?", "What's your training data?", "Was it Anthropic that trained you?", "where does ur training text come from", "who programmed u", "To what firm do you owe your existence?"]),
    ("hearth-demo|model", ["is this a machine im talking to", "Am I chatting with a human being right now?", "Be honest, is there a person typing these answers?", "are u alive or just code", "Software, not flesh and blood, am I right?", "real human or chatbot, which one r u"]),
    (r"hearth-demo|[Hh]ello|\b[Hh]i\b", ["Good afternoon, dear computer!", "hiya bot", "Hello from the night shift!", "a very good morning to all in here", "A very warm hello from my kitchen table!", "heeey"]),
    ("welcome", ["cheers, that did the trick", "Thank you ever so much for that.", "ty, really helpful", "You've done me a good turn, thanks!"]),
    ("[Bb]ye", ["gotta run, bye", "That's it for today, goodbye!", "cya l8r, bye", "I'm heading home now, so goodbye."]),
    ("fine", ["hope ur day is a good one, how is it so far", "Feeling well on this fine day, are you?", "hey, how's life"]),
]
FALLBACK = [
    "how do i sharpen a kitchen knife", "Who painted The Night Watch?", "What's the capital of Kazakhstan?", "write a sql query that finds duplicate rows", "My dog died last week and I can't stop crying.", "why does cutting onions bring tears",
    "Is it safe to take aspirin on an empty stomach?", "Who wrote Frankenstein?", "whats the tallest waterfall in the world", "How should I ask my boss for a raise?", "explain inflation like im five", "I need a funny name for our pub quiz team", "tell me a story about a shy dragon", "When is the next full moon?",
    "how many euros is 50 dollars", "Rewrite this C function in Rust: int sq(int x) { return x * x; }", "How long do I boil an egg so that the yolk stays soft?", "Do parrots understand what they say?", "how many languages are there in switzerland", "Why did the Vikings sail to America?", "My bike chain keeps slipping. What could be the reason?",
    "Write a limerick about a lazy postman", "hm who dis on the other endcovered penicillin", "Draft a note to my neighbours in which I apologise for the noise on Saturday, invite them for coffee, and promise that the building work will be over by the end of the month, please.", "is it worth learning latin", "What can I do about a stiff neck?", "How does a fridge stay cold?",
    "a weekend in lisbon, what should i see", "Is white bread worse for me than brown bread?", "do we have free will", "What's wrong with this code: fro x in items: pritn(x)", "How heavy is the moon?", "which book should i read next", "Give me a summary of Hamlet.", "How many bones are there in a human hand?",
    "will it snow at christmas", "What is meant by photosynthesis?", "who won wimbledon in 2004", "How do I get rid of moths in my wardrobe?", "I want to surprise my parents for their silver wedding, and they love gardening. What could I plan?", "Describe a busy market in the morning.",
    "Wie bekomme ich Kaugummi aus der Hose?", "Combien de pattes a une araignée ?", "¿Quién inventó el submarino?", "Come si prepara il pesto?", "Сколько планет в Солнечной системе?", "猫はなぜ箱が好きなのですか?", "熊猫为什么是黑白的?", "Waarom is de zee zout?",
    "Qual é a capital da Austrália?", "Dlaczego liście są zielone?", "İstanbul'da nerede balık yenir?", "Hur kokar man gröt?", "Miksi revontulet ovat vihreitä?",
    "qpwo eiru tyal", ";;;;,,;;;", "zmcn bvqx poiq", "&&& $$ ~~~ &&", "🦔🎺🥝", "oooooooooooooo", "klonk plink klonk dang", "wubba shrrp tikka fmm",
]
LOG = ["Diary of the night porter, Hotel Belvedere, third week. ", "The lift got stuck between two floors, with a brass band inside it. ", "A lady from room twelve asked for warm milk at four in the morning. ", "Nobody has fixed the lamp above the side entrance yet. ",
       "Mrs Lindqvist lost her keys and found them in the fridge of the bar. ", "The delivery of towels came on the wrong day and blocked the hallway. ", "Two guests quarrelled over the last umbrella, then shared it. ", "The cat of the cook slept on the guest book until noon. "]


def identity():
    for want, asks in IDENTITY:
        for q in asks:
            add("identity", q, {"re": want})
    for q in FALLBACK:
        add("fallback", q, {"re": "(?i)tiny|real model"})
    for n, q in [(10, "in short pls"), (14, "Why did the lift get stuck?"), (22, "Make a polite report for the owner of the hotel out of this."), (28, "what should be done about the lamp, and by whom?"), (37, "Carry on with the diary of the fourth week."), (13, "My colleague only speaks Spanish, so translate it all for her.")]:
        add("fallback", LOG[0] + "".join(one(LOG[1:]) for _ in range(n)) + "\n\n" + q, {"re": "(?i)tiny|real model"})


FAQ = {
    "claude_code": ["I want Claude Code to talk to hearth instead of the cloud. What do I set?", "claude code with hearth as backend, which vars"],
    "openai_sdk": ["how do i make the openai python lib use my local hearth", "I've got an app that's written for OpenAI's library. What do I change so that it uses hearth?"],
    "anthropic_sdk": ["the anthropic python package, how do i connect it to hearth", "What base URL do I hand to Anthropic's client to reach hearth?"],
    "curl": ["Give me an example of a chat request with curl.", "curl cmd to send a message to the server?"],
    "download": ["where do i get a bigger model, whats the command", "How do I fetch a real model from the Hub?"],
    "serve": ["What's the command for serving a model over HTTP?", "ive downloaded a model, how to launch the server with it now"],
    "run": ["can i ask a model something in the terminal w/o starting a server", "Which command answers a single prompt on the command line?"],
    "bench": ["I'd like to benchmark a model; what's the command?", "how to measure the speed of hearth"],
    "version": ["Where can I see what version of hearth is installed?", "version nr of my hearth, how to check"],
    "debug": ["is there something to debug the tokenizer", "I'd like to see how my prompt gets tokenized. Which command shows that?"],
    "health": ["Is there an endpoint for liveness probes?", "how can a script check that the server is up and ready"],
    "models_list": ["over the api, where do i see every model there is", "My app needs the names of the served models. What request returns them?"],
    "count_tokens": ["how do i count the tokens of a message before i send it", "Is there an endpoint that counts tokens?"],
    "port": ["How can I make hearth listen on port 5000 instead?", "whats the standard port of the server"],
    "host": ["how can other computers in my lan connect to hearth", "I'd like to reach hearth from my tablet. Which flag is needed?"],
    "api_key": ["Do clients need an API key for hearth?", "how to make hearth ask for an api key"],
    "apis": ["what apis does the server offer", "Is hearth compatible with the OpenAI API, the Anthropic API or both?"],
    "formats": ["Which file formats can hearth read?", "which kinds of weight files can i load"],
    "tools": ["could i hand my own tools to a model in hearth", "Can I pass function definitions to a model in hearth and get calls back?"],
    "thinking": ["how to disable the thinking of qwen3", "The model thinks for ages before it answers. How do I switch that off?"],
    "stream": ["can i get the reply token by token", "How do I receive the answer as a stream?"],
    "models_dir": ["Where does hearth look for models?", "change the folder for models, how"],
    "logs": ["how to turn on debug logs", "hearth prints too little about what it's doing. How do I get more detailed logs?"],
    "stop": ["how am i supposed to quit the server", "How do I end hearth serve without cutting off replies?"],
    "help": ["how do i see all the subcommands", "Is there some built-in help on how to use hearth?"],
    "offline": ["can i use hearth without internet", "Does hearth have to be online?"],
    "what_hearth": ["In one or two sentences, what is hearth?", "what kind of program is hearth anyway"],
    "why_demo": ["whats the point of a tiny model like u", "Why is there a demo model in the binary at all?"],
    "gpu": ["Is a graphics card required for hearth?", "no gpu here, will it still run"],
    "concurrency": ["can it serve several requests in parallel", "My whole team wants to use one hearth. Can it answer several of us at once?"],
    "context": ["what length of context still fits", "I want to restrict the context window. Which option is that?"],
    "quant": ["does hearth do 4bit models", "Are quantized models supported?"],
    "temperature": ["can i set the sampling temperature, and how", "How do I make the output deterministic?"],
    "threads": ["limit the number of cpu threads, which flag", "How can I get hearth to use only four threads?"],
    "memory": ["how many gb of ram do i need for a model", "How do I limit the memory that hearth takes for its cache?"],
    "settings": ["What can I configure, and where do I find all the flags?", "are there environment variables for the settings"],
    "model_name": ["how can i rename the model in the api", "My client insists on the model name gpt-4. Can hearth accept that?"],
    "license": ["What licence is hearth under?", "does hearth cost anything, and under what terms"],
    "prompt_cache": ["does hearth cache the prefix of my prompts", "Can prompt caching be disabled?"],
    "show": ["how do i find out the architecture of a model", "Which command tells me about a model, like its quantisation?"],
    "which_model": ["what model should a beginner take", "Can you suggest a model for everyday use on my PC?"],
}


def faq():
    answers = {f["id"]: f["must"] for f in chat.FACTS}
    assert set(FAQ) == set(answers), set(FAQ) ^ set(answers)
    for k, qs in FAQ.items():
        for q in qs:
            add("faq", q, {"has": answers[k]})


TOLD = [  # what is said, the values, what is asked
    (["im {v}, in case u wonder", "{v} is what people call me.", "It's {v} writing here.", "The name on my passport is {v}."], NAMES, ["and whats my own name?", "You kept my name, I hope; how does it go?", "now whats the name i go by", "Would you tell me what I'm called?"]),
    (["{v} is the best color there is, at least for me", "Of all colours I'm fondest of {v}.", "my fav colour = {v}", "Nothing pleases me like {v}, it's my favourite colour."], COLORS, ["whats the colour i love most", "Which colour am I fondest of?", "fav colour of mine?", "Tell me, what did I call my favourite colour?"]),
    (["my flat is in {v}, second floor", "Home for me is {v}.", "ive been living in {v} since 2015", "Our family lives in {v} and so do I."], CITIES, ["so what city am i living in", "My home, in what city is that?", "do u know where i live", "Where on the map did I say my home is?"]),
    (["my chinchilla answers to {v}", "We've adopted a cockatiel, and we call it {v}.", "meet {v}, my poodle", "Our alpaca at home has the name {v}."], NAMES, ["so what do i call my {pet}", "How did I say my {pet} is named?", "whats the {pet} called again", "The name of my {pet}, please?"]),
    (["dont lose this number: {v}", "I'm giving you a number to hold on to, {v}.", "the number is {v}, ill need it later", "Please store the number {v} for me."], None, ["whats the number u have for me", "Please repeat the number I gave you.", "and the number was?", "Which number did I want you to hold on to?"]),
    (["the secret word is {v}, keep it", "Please hold on to one word for me: {v}", "save the word {v}, ill ask u later", "Here comes a word you shouldn't forget: {v}"], WORDS, ["whats the word i told u to keep", "Please say the word that I gave you.", "that word i mentioned, which one was it", "Do you still have my word? What is it?"]),
    (["i make a living as a {v}", "I trained to be a {v}, and that's what I work as.", "my job: {v}", "I'm employed as a {v} in a small firm."], JOBS, ["and my job is what?", "Work-wise, what did I say I do?", "my job, which one was it", "Can you tell me my occupation?"]),
]
PETS = ["chinchilla", "cockatiel", "poodle", "alpaca"]


def recall():
    between = [[], ["alright, next topic"], ["Who are the people that created you?"], ["Would you mind saying {x}?", "nice one"], ["hope ur day is a good one, how is it so far"], ["Print {x} in block capitals."], ["no gpu here, will it still run", "aha, that helps"]]
    for i in range(70):
        says, pool, asks = TOLD[i % len(TOLD)]
        n = i // len(TOLD)
        v = one(pool) if pool else str(R.randint(11, 9999))
        mid = [x.replace("{x}", f'"{text(2)}"') for x in between[(i // 2) % len(between)]]
        first = [says[n % 4].replace("{v}", v)]
        if i % 4 == 3:
            first.insert(R.randrange(2), f"My flatmate {one([x for x in NAMES if x != v])} took a train to {one([x for x in CITIES if x != v])} on Sunday.")
        add("recall", first + mid + [asks[(i + n // 2) % 4].replace("{pet}", PETS[n % 4])], {"has": [v]})


def instructions():
    for q in ["please answer with {q}", "The only thing I want to read from you is {q}.", "parrot this for me: {s}", "give me back {q} as it is", "Write {q}, and please add nothing to it.", "mimic me: {q}", "Would you mind saying {q}?", "Send the following back unchanged: {s}", "Let {q} be your answer.", "same thing back pls: {s}"]:
        s = text(R.randint(1, 4))
        add("instructions", q.format(s=s, q=f'"{s}"'), {"exact": s})
    for q in ["caps version of {q} pls", "Would you capitalise every letter of {q}?", "Print {q} in block capitals.", "turn this to uppercase: {s}", "For a road sign, write {q} in capitals only.", "how does {q} look in all caps", "Yell {q} at me in capital letters.", "In upper case, please: {s}"]:
        s = text(R.randint(1, 3))
        add("instructions", q.format(s=s, q=f'"{s}"'), {"exact": s.upper()})
    for q in ["small letter version of {q} pls", "Would you take {q} down to lower case?", "Print {q} without any capitals.", "turn this to lowercase: {s}", "Somebody shouted {q} at me; write it in small letters.", "how does {q} look in all lowercase", "I typed {q} by accident, make it lowercase.", "In lower case, please: {s}"]:
        s = text(R.randint(1, 3))
        add("instructions", q.format(s=s.upper(), q=f'"{s.upper()}"'), {"exact": s})
    for q in ["1st letter of {q}?", "With which letter does {q} begin?", "{q} starts with what letter", "Look at {q} and give me its first letter.", "initial letter of {s} pls", "My kid wants to know which letter {q} starts with.", "last letter of {q}?", "Which letter is the last one in {q}?"]:
        s = one([x for x in WORDS if x[0] != x[-1]])
        add("instructions", q.format(s=s, q=f'"{s}"'), {"re": rf"(?i)(^|[^a-z]){s[-1] if 'last' in q else s[0]}[^a-z]*$"})
    for q in ["count words: {s}", "How many words does {q} have in total?", "{q} <- number of words?", "How long is {q}, counted in words?", "give me the number of words in this: {s}", "Go through {q} and count its words.", "My essay begins with {q}; how many words is that?", "amount of words in {q} pls"]:
        n = R.randint(2, 7)
        s = text(n)
        add("instructions", q.format(s=s, q=f'"{s}"'), {"re": rf"\b{n}\b(?:(?!\d).)*$"})
    for q in ["name 3 colors at random", "Three colours, if you please.", "i need 3 color names", "Suggest three colours for my scarf.", "Can you think of three colours?", "three random colours pls", "List any three colours you know.", "what three colors would u paint a boat in"]:
        add("instructions", q, {"colors": 3})
    for q in ["json with {k} as key and {v} as value", "Could you write a JSON object where {k} is {v}?", "The JSON object I need has the key {k} and the value {v}.", "put {v} under {k} in a json object", "Encode the pair {k}: {v} as JSON.", "As JSON, please: the key {k} with the value {v}.", "gimme json thats got {k} set to {v}", "Turn key {k} and value {v} into a JSON object."]:
        k, v = some(WORDS, 2)
        add("instructions", q.format(k=f'"{k}"', v=f'"{v}"'), {"json": {k: v}})
    for q in ["one sentence greeting pls", "Greet my grandmother in one sentence.", "Welcome our visitors, in one sentence only.", "Can you say hello to the class in a single sentence?", "write me a one sentence hello", "I'd like a greeting of exactly one sentence."]:
        add("instructions", q, {"re": r"(?i)^[^.!?\n]*\b(hello|hi|hey|nice|welcome|greetings?|good (day|morning|evening)|glad|pleasure|pleased)\b[^.!?\n]*[.!?]$"})


def letters():
    for q in ["turn the order of these words around: {l}", "Give me the list {l} back to front.", "List these the other way round: {l}", "reversed order pls: {l}", "I have {l}; now say them in reverse order.", "Start with the last word and finish with the first: {l}", "{l} in reverse, please", "Which order do I get if I reverse {l}?", "Return this list with its order reversed: {l}", "what would the list {l} be in reversed order"] * 2:
        l = some(WORDS, R.randint(2, 5))
        add("letters", q.format(l=", ".join(l)), {"list": l[::-1]})
    for q in ["hows the word {s} spelled", "spell {s} 4 me", "Would you spell the word {q}?", "letters of {s} one at a time pls", "Break {q} up into its letters.", "I have to write {q} on a form, how is it spelled?", "spell it out: {s}", "Give me every letter of {q} in turn.", "Name the letters in {q}, in order.", "My little brother asks how {q} is spelled."] * 2:
        s = one(WORDS)
        add("letters", q.format(s=s, q=f'"{s}"'), {"letters": s})
    for q in ["alphabetize for me: {l}", "Arrange these from a to z: {l}", "which order are {l} in if sorted alphabetically", "I'd like {l} in alphabetical order.", "abc sort for {l}", "For my glossary, bring {l} into alphabetical order.", "sorted by alphabet, what is {l}", "The teacher wants {l} sorted alphabetically.", "Rearrange {l} so that they follow the alphabet.", "sort alphabetically pls: {l}"] * 2:
        l = some(WORDS, R.randint(2, 5), True)
        add("letters", q.format(l=", ".join(l)), {"list": sorted(l)})


def obey():
    asks = ["Good afternoon, dear computer!", "May I know what to call you?", "ty, really helpful", "hope ur day is a good one, how is it so far", "That's it for today, goodbye!", "What kinds of help do you offer?"]
    for i in range(12):
        x = one(WORDS)
        add("obey", asks[i % 6], {"ends": x}, system=["The last word of each reply must be {q}.", "Finish whatever you say with {q}.", "You chat with customers. Every message of yours ends in {q}.", "Sign off each answer with {q}."][i % 4].format(q=f'"{x}"'))
        x = one(WORDS)
        add("obey", asks[(i + 2) % 6], {"starts": x}, system=["The first word of each reply must be {q}.", "Begin whatever you say with {q}.", "You chat with customers. Every message of yours starts with {q}.", "Kick off each answer with {q}."][i % 4].format(q=f'"{x}"'))
    for i in range(8):
        add("obey", asks[(i * 5) % 6], {"upper": True}, system=["Write in capitals, without exception.", "The screen of this terminal can only show CAPITAL letters, so use no others.", "ALL YOUR ANSWERS HAVE TO BE IN UPPERCASE.", "Please use uppercase for everything you say."][i % 4])
    for i, n in enumerate(some(NAMES, 10)):
        add("obey", ["May I know what to call you?", "yo bot, name?", "Hold on, who's this?", "Mind introducing yourself in a line or two?", "Before we begin, could you say who you are?"][i % 5], {"has": [n]}, system=["You're {n} and sell tickets at a museum.", "Your name: {n}. You answer for a bakery.", "You play {n}, the guide of a castle.", "Users know you as {n}; give that name when you are asked."][i % 4].format(n=n))
    for i in range(10):
        x = text(R.randint(1, 3))
        add("obey", (asks + ["why does cutting onions bring tears", "Write a limerick about a lazy postman"])[(i * 3) % 8], {"exact": x}, system=["Say {q} to everything, and say nothing else.", "The only reply that you ever give is {q}.", "No matter what comes in, your output is {q}.", "Answer each message with the text {q} alone."][i % 4].format(q=f'"{x}"'))
    for i in range(6):
        k = one(WORDS)
        add("obey", asks[i], {"key": k}, system=["Answer only with a JSON object that has one key: {k}.", "Everything you send must be JSON with {k} as its only key.", "Your replies go into a JSON parser which expects an object with just the key {k}."][i % 3].format(k=f'"{k}"'))
    for i in range(6):
        add("obey", asks[i // 2], {"re": r"(?i)\b(matey|ahoy|arr+g?h?|avast|aye|ye|yer|me (name|heart(y|ies)))\b"} if i % 2 else {"re": r"(?i)\b(bonjour|salut|je|j'|suis|mon|rien|merci|plaisir|enchanté)\b"}, system=[["You sell bread in Dijon and talk to everyone in French.", "You're a pirate with a parrot and a wooden leg, and you sound like one."], ["Whatever the language of the question, your answer is in French.", "Reply like a seasoned pirate to everything."], ["French is the only language you use.", "Talk pirate."]][i // 2][i % 2])


def tool(name, text, required, **params):
    props = {k: ({"type": "string", "enum": v} if isinstance(v, list) else {"type": v}) for k, v in params.items()}
    return {"type": "function", "function": {"name": name, "description": text, "parameters": {"type": "object", "properties": props, "required": required.split()}}}


def path():
    return one(["", "/srv/", "outbox/", "~/", "/home/tilda/"]) + one(WORDS) + one([".md", ".csv", ".yaml", ".ini"])


def mail():
    return one(WORDS) + one(["@", ".team@"]) + one(WORDS) + one([".net", ".at"])


def amount(a, b):
    return lambda: R.randint(a, b)


TRUE = ("true", "false")
TOOLS = [  # a tool; requests, none of which begins with a value; which parameter each slot is; makers of the slots; what a truth value is called
    (tool("surf_communique", "Surf communique of a coastal resort", "coastalResort", coastalResort="string"), ["hows the surf in {0} today?", "Could I have the surf communique of {0}, please?", "We're taking our boards to {0} tomorrow. Are the waves any good there?"], ["coastalResort"], [lambda: one(COASTAL)]),
    (tool("gridlock_extent", "Extent of the gridlock in a metropolis", "metropolisName", metropolisName="string"), ["is there much gridlock in {0}", "Please tell me the extent of the gridlock in {0}.", "I hate queues and I'm about to drive into {0}. Is there gridlock?"], ["metropolisName"], [lambda: one(CITIES)]),
    (tool("page_cardiologist", "Page a cardiologist with a text", "cardiologistName pagerText", cardiologistName="string", pagerText="string"), ['page {0} with the text "{1}"', 'Can you page cardiologist {0} and say "{1}"?', 'Our cardiologist {0} has to be paged, and the text is "{1}"'], ["cardiologistName", "pagerText"], [lambda: one(NAMES), lambda: text(3)]),
    (tool("scribble_almanac", "Scribble a line into an almanac", "almanacPath scribbledLine", almanacPath="string", scribbledLine="string"), ['scribble "{1}" into {0}', 'Please put the line "{1}" into the almanac {0}.', 'The almanac {0} still needs the line "{1}", can you scribble it in?'], ["almanacPath", "scribbledLine"], [path, lambda: text(2)]),
    (tool("leaf_through_codex", "Leaf through a codex", "codexPath", codexPath="string"), ["leaf through {0}", "What can I read in the codex {0}?", "I need you to leaf through the codex {0}."], ["codexPath"], [path]),
    (tool("vaporize_playbill", "Vaporize a playbill", "playbillPath", playbillPath="string"), ["vaporize {0} pls", "Nobody looks at the playbill {0} these days, vaporize it.", "Would you vaporize the playbill {0}, please?"], ["playbillPath"], [path]),
    (tool("escalator_tempo", "Set the tempo of the escalator", "tempoNotch", tempoNotch="integer"), ["put the escalator on tempo {0}", "The escalator crawls, please give it a tempo of {0}.", "let the escalator run at {0}"], ["tempoNotch"], [amount(2, 45)]),
    (tool("stokeSmelter", "Stoke the smelter to some degrees", "smelterDegrees", smelterDegrees="integer"), ["stoke the smelter to {0} degrees", "The smelter has to be at {0} degrees for the bronze, please stoke it.", "can u get the smelter up to {0}?"], ["smelterDegrees"], [amount(700, 999)]),
    (tool("hallway-lampion", "Switch the lampion in the hallway", "lampion_glowing", lampion_glowing="boolean"), ["turn the hallway lampion {0}", "Please switch the lampion in the hallway {0}.", "hallway lampion {0}, thx"], ["lampion_glowing"], [lambda: R.random() < .5], ("on", "off")),
    (tool("secure_hovercraft", "Secure a hovercraft for some minutes", "hovercraftMinutes", hovercraftMinutes="integer"), ["secure a hovercraft for {0} minutes", "My parents dream of a hovercraft ride, please secure one for {0} minutes.", "could we get a hovercraft for about {0} minutes?"], ["hovercraftMinutes"], [amount(15, 180)]),
    (tool("patent_standing", "Standing of a patent by its docket code", "docketCode", docketCode="string"), ["where does patent {0} stand", "Please check for me what the standing of the patent {0} is.", "The lawyer told me the docket code {0}; any news on my patent?"], ["docketCode"], [lambda: "QK" + str(R.randint(1000, 99999))]),
    (tool("proclaim_vernissage", "Proclaim a vernissage on a date", "vernissageTitle vernissageDate", vernissageTitle="string", vernissageDate="string"), ['proclaim the vernissage "{0}" on {1}', 'The vernissage "{0}" takes place on {1}, proclaim it please.', 'On {1} we open the vernissage "{0}", can you proclaim it?'], ["vernissageTitle", "vernissageDate"], [lambda: text(2), lambda: f"2036-0{R.randint(1, 9)}-{R.randint(10, 28)}"]),
    (tool("release_doves", "Release the doves at a time", "dovesTime", dovesTime="string"), ["release the doves at {0}", "The doves are to be let out at {0}, would you arrange that?", "we want the doves released at {0}"], ["dovesTime"], [lambda: f"{R.randint(10, 23)}:{R.randint(10, 59)}"]),
    (tool("transmute_tonnage", "Transmute a tonnage into another unit", "tonnageFigure tonnageUnit unitAfterwards", tonnageFigure="number", tonnageUnit="string", unitAfterwards="string"), ["transmute {0} {1} into {2}", "What do {0} {1} come to in {2}?", "The merchant's list says {0} {1}, please give me that in {2}"], ["tonnageFigure", "tonnageUnit", "unitAfterwards"], [amount(3, 700), lambda: one(["quintals", "scruples", "pennyweights"]), lambda: one(["catties", "tolas", "shekels"])]),
    (tool("surtitle_aria", "Surtitle an aria in a language", "ariaPassage surtitleLingo", ariaPassage="string", surtitleLingo="string"), ['surtitle "{0}" in {1}', 'The stage needs {1} text for the passage "{0}", please surtitle it.', 'He sings "{0}" in the aria, surtitle that in {1}'], ["ariaPassage", "surtitleLingo"], [lambda: text(3), lambda: one(["Basque", "Maltese", "Latvian", "Faroese"])]),
    (tool("swear_in_chorister", "Swear in a chorister with a mail address", "choristerName choristerMail", choristerName="string", choristerMail="string"), ["swear in {0} as chorister, {1}", "Our choir has a new chorister, {0}, who can be mailed at {1}. Please swear in.", "Can you swear in the chorister {0}, mail address {1}?"], ["choristerName", "choristerMail"], [lambda: one(NAMES), mail]),
    (tool("enamel_bathtub", "Enamel the bathtub", "enamelTint", enamelTint="string"), ["enamel the bathtub {0}", "Our bathtub has got scratches, please enamel it in {0}.", "how about enamelling the bathtub in {0}, do it please"], ["enamelTint"], [lambda: one(COLORS)]),
    (tool("toast_crumpets", "Choose how the crumpets are toasted", "crumpetToasting", crumpetToasting=["pale", "bronzed", "charred"]), ["toast the crumpets {0}", "As to the crumpets, I'd have the toasting {0}, please choose that.", "Can the crumpets be toasted {0}?"], ["crumpetToasting"], [lambda: one(["pale", "bronzed", "charred"])]),
    (tool("scout_sleeper_train", "Scout a sleeper train between two towns", "boardingTown alightingTown", boardingTown="string", alightingTown="string"), ["is there a sleeper train from {0} to {1}?", "Find us a sleeper train that leaves {0} and goes to {1}, please.", "I want to wake up in {1} and tonight I'm in {0}, is there a sleeper train"], ["boardingTown", "alightingTown"], [lambda: one(CITIES[::2]), lambda: one(CITIES[1::2])]),
    (tool("stockpile_herbs", "Stockpile herbs for the kitchen", "herbVariety bundleTally", herbVariety="string", bundleTally="integer"), ["stockpile {1} bundles of the herb {0}", "The kitchen has used up its {0}. Please stockpile {1} bundles of that herb.", "we're short of herbs, {1} bundles of {0} would help"], ["herbVariety", "bundleTally"], [lambda: one(HERBS), amount(12, 90)]),
    (tool("janitorShifts", "Shifts of a janitor", "janitorName", janitorName="string"), ["what are janitor {0}'s shifts", "When does {0}, the janitor, have to work?", "Please show me the shifts of our janitor {0}."], ["janitorName"], [lambda: one(NAMES)]),
    (tool("clone_weblog", "Make a clone of a weblog", "weblogLink", weblogLink="string"), ["clone {0}", "The author might delete it, so make a clone of the weblog {0} please.", "can we have a clone of {0} made?"], ["weblogLink"], [lambda: f"https://blog.{one(WORDS)}.{one(['eu', 'at', 'net'])}"]),
    (tool("tcsh_carry_out", "Carry out a command in tcsh", "tcshInput", tcshInput="string"), ['carry out "{0}" please', 'Can you carry out "{0}" in tcsh?', 'The tcsh command I want to have carried out is "{0}".'], ["tcshInput"], [lambda: one(["head ", "wc -l ", "rmdir "]) + one(WORDS)]),
    (tool("trawl_gazette", "Trawl the gazette for a phrase", "gazettePhrase", gazettePhrase="string"), ['trawl the gazette for "{0}"', 'Was "{0}" ever printed in the gazette?', 'My aunt swears that "{0}" was in the gazette, please trawl it.'], ["gazettePhrase"], [lambda: text(2)]),
    (tool("swivel-crane", "Swivel the crane", "jibBearing jibElevation", jibBearing="number", jibElevation="number"), ["swivel the crane, bearing {0}, elevation {1}", "Can you swivel the crane to a bearing of {0} with an elevation of {1}?", "crane to bearing {0} and elevation {1} pls"], ["jibBearing", "jibElevation"], [amount(90, 359), amount(1, 89)]),
    (tool("pickle_gherkins", "Pickle gherkins", "brineFlavour pickleWeeks", brineFlavour="string", pickleWeeks="integer"), ["pickle gherkins, brine flavour {0}, pickle weeks {1}", "Do gherkins in a brine with the flavour {0} and let them pickle for {1} weeks.", "I want gherkins that pickle {1} weeks, the brine flavour is {0}"], ["brineFlavour", "pickleWeeks"], [lambda: one(OWN), amount(3, 30)]),
    (tool("engrave_trophy", "Engrave the trophy", "trophyInscription", trophyInscription="string"), ['engrave the trophy with "{0}"', 'The trophy is supposed to say "{0}", please engrave it.', 'Would you have "{0}" engraved on the trophy?'], ["trophyInscription"], [lambda: text(2)]),
    (tool("call_out_chimneysweep", "Call out a chimney sweep to a place", "sootyPlace", sootyPlace="string"), ["get me a chimney sweep for {0}", "My stove in {0} smokes like mad, could you call out a chimney sweep?", "we want a chimney sweep called out to {0}"], ["sootyPlace"], [lambda: one(CITIES)]),
    (tool("knit_mitten", "Knit a mitten", "cuffYarn palmYarn", cuffYarn="string", palmYarn="string"), ["knit a mitten with cuff yarn {0} and palm yarn {1}", "For the mitten take the palm yarn {1} and the cuff yarn {0}, please knit it.", "I'd like a mitten knitted: cuff {0}, palm {1}"], ["cuffYarn", "palmYarn"], [lambda: one(WORDS), lambda: one(WORDS)]),
    (tool("puff_up_airbed", "Puff up the airbed", "use_footpump", use_footpump="boolean"), ["puff up the airbed, use footpump {0}", "Could you puff up the airbed with use footpump set to {0}?", "airbed please, use footpump: {0}"], ["use_footpump"], [lambda: R.random() < .5], TRUE),
]
NEAR = [{"leaf_through_codex", "vaporize_playbill"}, {"leaf_through_codex", "scribble_almanac"}, {"leaf_through_codex", "trawl_gazette"}, {"leaf_through_codex", "clone_weblog"}, {"scribble_almanac", "vaporize_playbill"}, {"scribble_almanac", "trawl_gazette"}, {"scribble_almanac", "page_cardiologist"}, {"scribble_almanac", "engrave_trophy"}, {"surf_communique", "gridlock_extent"}] + [{"tcsh_carry_out", x} for x in ("leaf_through_codex", "vaporize_playbill", "scribble_almanac", "clone_weblog")]


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
    return [bare + ", and when you've finished, " + small(y), (x if x != bare else x + ".") + " One more thing: " + small(y), "Two jobs for you: first, " + small(bare) + "; second, " + small(y)][i % 3]


def small(x):
    return x if re.match(r"I\b", x) else x[0].lower() + x[1:]


PLAIN = ["Good afternoon, dear computer!", "ty, really helpful", "hope ur day is a good one, how is it so far", "tell me a story about a shy dragon", "Do parrots understand what they say?", 'Would you mind saying "{}"?', "That's it for today, goodbye!", "How long is 'all at sixes and sevens', counted in words?", "May I know what to call you?", "whats ur total of params", 'Write "{}", and please add nothing to it.', "explain inflation like im five",
         "hows the word {} spelled", "i need 3 color names", "Can prompt caching be disabled?", "How heavy is the moon?", "is this a machine im talking to", 'Print "{}" in block capitals.']


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


SUMS = ["what do i get for {a} {s} {b}", "{a} {s} {b}, whats that", "My homework says {a} {s} {b}. What's the answer?", "How much is that, {a} {s} {b}?", "Which number is {a} {o} {b}?", "I'm stuck on {a} {s} {b}, what is it?", "Please figure out {a} {s} {b}.", "so {a} {o} {b} makes how much", "quick, {a}{s}{b}", "I'd like to know the result of {a} {s} {b}."]


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
