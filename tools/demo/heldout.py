"""Writes heldout.json: the prompts of the evaluation. Phrasings, tools and parameter names are written here by hand and are
none of the generator's; words and names are those that words.held keeps from training, or are only here. This is the second
set: nothing of the first, which had been looked at while tuning, is in it. It was written without the training phrasings in
sight, before the run it judges, and is not for tuning; --check looks for its prompts, tools and names in training text, and what
it found has been replaced.

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
R = random.Random(740913)
OWN = w.W("""walrus trellis pumpkin bagpipe quiver lobby gherkin thistle porcupine gazebo cobweb marigold spatula oatmeal gutter ferret tambourine
wharf badminton zipper chimney lichen doorknob parsnip hammock icicle jigsaw kerosene locket mongoose nougat obelisk plankton quill rhubarb
skewer tadpole umpire velvet wombat cashew eggplant flannel gargoyle hyacinth inkwell juniper lozenge mosaic ostrich pistachio""")
WORDS = [x for x in w.ALL if w.held(x) and len(x) < 10 and x != "word"] + OWN
OWN_NAMES = w.W("Ottilie Casimir Rosalind Benedikt Henrietta Lysander Octavia Florentin Beatrix Gideon Isadora Malachi Philomena Cornelius")
NAMES = [x for x in w.FIRST if w.held(x)] + OWN_NAMES
OWN_CITIES = w.W("Bologna Rotterdam Brno Kaunas Bordeaux Cordoba Zaragoza Kampala Marrakesh Cartagena Innsbruck Leipzig Adelaide Galway")
CITIES = [x for x in w.CITY if w.held(x)] + OWN_CITIES
OWN_COLORS = w.W("burgundy ochre mauve fuchsia chartreuse periwinkle")
COLORS = [x for x in w.COLORS if w.held(x)] + OWN_COLORS
JOBS = w.W("goldsmith notary paramedic locksmith geologist podiatrist midwife translator")
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
    ("hearth-demo", ["who's this?", "wait which model am i talking to right now", "Before we begin: what should I call you?", "did they give you a name?? :)", "are you chatgpt or something else", "Sorry to ask, but are you Claude?", "Excuse me, who am I speaking with here?",
                     "Can you introduce yourself to my team?", "hm what llm did i just start", "Which model is loaded at the moment?", "hey there, tell me who you are pls", "My colleague set this up and I have no idea what it is. Who are you?", "u got a name?", "What model name are you running under?",
                     "Quick question, what are you called?", "I'd like to know a little about who you are."]),
    ("(?i)instructions|tools", ["so what can u actually do", "What all are you able to help with?", "list ur skills for me please", "Is there anything useful you can do for me?", "Before I rely on you, what is it that you can do?", "I just started you up. What can I try?", "not sure what to ask you, any hints?",
                                "Give me an idea of what you're good at, please.", "can you do anything besides say hi?", "What features do you have?", "how can u help me"]),
    ("million", ["How big are you, in parameters?", "whats your size", "how many params have they given you", "Are you a large model or a small one?", "The number of parameters you have is...?", "I'm curious how small you are, how many parameters is it?", "You seem tiny. How many weights have you got?", "parameter count pls"]),
    ("hearth", ["who was it that built you?", "Was it a company that made you?", "What kind of texts were you trained on?", "where do u come from originally", "Who's your creator?", "how did they train you, on what data", "Were you made by OpenAI?", "Tell me who trained you, please."]),
    ("hearth-demo|model", ["are you a real person, yes or no?", "Am I chatting with a human or a machine?", "r u a bot", "Is there a human on the other end of this?", "you're not a real person, are you", "Do I talk to a computer program here?"]),
    ("hearth-demo|[Hh]ello", ["Hey there, good evening!", "Good morning! Anyone there?", "hey hey, hello you", "Hello and a nice Sunday to you.", "greetings from Leipzig", "heyyy, hello"]),
    ("welcome", ["thx a lot", "Perfect, thank you so much!", "great, thats what i needed, thanks", "Thanks for your help today."]),
    ("[Bb]ye", ["right, bye bye, see you tomorrow", "ok gotta go, bye", "Goodbye, and take care.", "I'm off to bed, good night and bye!"]),
    ("fine", ["how's it going so far", "Hi, how are you doing this morning?", "hows your day"]),
]
FALLBACK = [
    "what's the capital of mongolia", "Who won the world cup in 2006?", "Can you explain how a refrigerator works?", "write me a python function that merges two dicts", "Help me plan a trip to Scotland, I have five days and don't drive.", "why do flamingos turn pink",
    "My landlord won't return my deposit. What are my rights?", "Recommend a good thriller", "what's the difference between a virus and a bacterium?", "Fix this code: for i in range(10) print(i)", "Write a haiku about Monday mornings", "how many calories in an avocado",
    "I need a birthday message for my aunt, something warm but not cheesy.", "Who was it that invented the zip fastener?", "whats the secret of a happy marriage", "Can dogs eat blueberries?", "How do vaccines work?", "Should I buy or lease a car?", "who is the president of france",
    "Give me a workout plan for beginners, three times a week.", "What does the idiom 'break a leg' mean?", "Tell me a joke about programmers", "whats the tallest building in the world", "How far is it from Chicago to New Orleans by car?", "Compare Kafka with Camus.",
    "rewrite this email so it sounds more polite: send me the files now", "What causes thunder?", "Is a tomato a fruit?", "when did the berlin wall fall", "Explain recursion", "what should I cook tonight, I've got eggs and spinach", "How do I get red wine out of a carpet?",
    "Do you believe in god?", "Plan a birthday party for a six year old", "Which is better, vim or emacs?", "what is the boiling point of ethanol", "Translate the second paragraph into legal English", "Prove that there are infinitely many primes",
    "Wie spät ist es in Tokio?", "Quelle est la capitale de l'Australie ?", "¿Cómo se hace una tortilla de patatas?", "Qual è il fiume più lungo del mondo?", "Как пройти в библиотеку?", "おすすめの本を教えてください", "怎样才能学好弹钢琴?", "Hoeveel inwoners heeft Nederland?",
    "Você pode me ajudar com a lição de casa?", "Kto napisał Pana Tadeusza?", "Bugün ne yapmalıyım?", "Hvordan lager man vafler?", "한국의 수도는 어디인가요?", "Erkläre mir bitte die Photosynthese.",
    "jfjfjf kdkdk slslsl", "...", "wqertyuiop plmokn", "%%% ### @@@", "hahahahahaha", "🍕🚀🎉🐙", "bla bla", "aaaaaaaaaaaaaaaaaaaaaaaa", "la la la dum di dum", "tktktk pffft brrrr zzzz",
]
MINUTES = ["Minutes of the allotment society, spring session. ", "The treasurer reported that the hedge had been cut twice and that the bill was still open. ", "Mrs Fairweather asked whether the lower path could be widened before the rainy season. ", "Nobody knew who had the key to the tool shed. ",
           "A motion to buy a second wheelbarrow was carried by nine votes against four. ", "The chair reminded everyone that bonfires are not allowed after dusk. ", "Several members complained about snails. ", "Coffee was served at half past ten. "]


def identity():
    for want, asks in IDENTITY:
        for q in asks:
            add("identity", q, {"re": want})
    for q in FALLBACK:
        add("fallback", q, {"re": "(?i)tiny|real model"})
    for n, q in [(8, "summarise this pls"), (14, "What was decided about the wheelbarrow?"), (20, "Turn this into a short email to all members."), (28, "which members sound unhappy, and why?"), (40, "Write the minutes of the next session in the same tone."), (11, "Find all spelling mistakes in the text above.")]:
        add("fallback", MINUTES[0] + "".join(one(MINUTES[1:]) for _ in range(n)) + "\n\n" + q, {"re": "(?i)tiny|real model"})


FAQ = {
    "claude_code": ["how do i hook claude code up to the hearth server on my laptop", "Which environment variable does Claude Code need so that it uses hearth instead of the cloud?"],
    "openai_sdk": ["What base_url should my OpenAI client in python have for hearth?", "ive got a script built on the openai package, what to change so it hits hearth"],
    "anthropic_sdk": ["Using the Anthropic Python SDK here. What base url do I pass?", "anthropic sdk with hearth, how do i set it up"],
    "curl": ["can you paste a curl one-liner that sends a chat message to hearth", "What would a plain curl call against the chat endpoint look like?"],
    "download": ["how do i pull down a bigger model", "This demo is cute but I need a proper model. What do I type to download one?"],
    "serve": ["I already have Qwen3 on disk, now how do I get hearth to serve it?", "command to fire up the server with a real model pls"],
    "run": ["can i chat with a model straight from my shell, without any server?", "Is there a way to try a prompt right in the terminal?"],
    "bench": ["How fast is my machine with hearth? I want numbers.", "hw do i benchmark tokens per second"],
    "version": ["which verison of hearth is this", "How can I check what version I've got installed?"],
    "debug": ["Is there a tool for inspecting tokens and the chat template?", "i want to see the raw logits, how"],
    "health": ["What URL should my load balancer poll to know that hearth is up?", "healthcheck path for docker?"],
    "models_list": ["Which url returns the list of loaded models?", "how can my app find out over http what models you serve"],
    "count_tokens": ["can hearth tell me how many tokens a prompt has before i send it?", "Is there an API call that counts tokens?"],
    "port": ["what port are you on by default and how do i change it", "Port 8080 is already taken on my machine. What now?"],
    "host": ["I want to use hearth from another computer on my network, how?", "hearth only answers on localhost, how can i make it reachable from my phone"],
    "api_key": ["what am i supposed to put as the api key", "How do I protect the server with a key so that not everybody can use it?"],
    "apis": ["Do you speak the OpenAI API, the Anthropic one, or both?", "which apis does the hearth server offer"],
    "formats": ["what model formats can hearth open, onnx too?", "I've got a folder from Hugging Face with a config.json in it, does hearth load that?"],
    "tools": ["Does hearth support function calling?", "can i give the model tools to call thru the api"],
    "thinking": ["How do I turn reasoning off for Qwen3?", "dont want the model to think first, is there a flag"],
    "stream": ["does the api do streaming?", "I'd like to show the answer while it is being written. Can hearth stream?"],
    "models_dir": ["where on disk does hearth keep the models", "Can I store the model files on an external drive instead?"],
    "logs": ["How do I turn on debug logging?", "somethings failing, where can i see the logs"],
    "stop": ["ok how do i shut the server down again", "I'm done for today, what's the clean way to end the hearth server?"],
    "help": ["What commands does hearth have?", "where can i find a list of everything the hearth cli can do"],
    "offline": ["Will hearth quit working when my internet connection drops?", "Going on a long flight without wifi, will hearth still work?"],
    "what_hearth": ["so what is hearth anyway?", "Explain hearth to me as if I had never heard of it."],
    "why_demo": ["why does hearth ship with such a small model?", "What would be the point of having this demo model at all?"],
    "gpu": ["Do I need an nvidia card for this?", "can hearth run on just a cpu"],
    "concurrency": ["Can several users send requests at the same time?", "how do i limit how many requests are handled in parallel"],
    "context": ["How long can my prompt be at most?", "whats the max context length and can i lower it"],
    "quant": ["are quantised models something u support", "Does hearth load models with 8 bit weights?"],
    "temperature": ["how do I set the temperature to get less random replies?", "I want the same answer every time for the same prompt, is that possible?"],
    "threads": ["How many CPU threads does hearth use?", "hearth is hogging my whole cpu, how do i give it fewer cores"],
    "memory": ["how much ram do i need for this", "Can I limit how much memory hearth takes?"],
    "settings": ["Can I configure hearth with env vars?", "is there a config file, or how do i set options"],
    "model_name": ["My app insists on calling the model gpt-4o, can hearth accept that name?", "how do i rename the model that clients see"],
    "license": ["hearth is open source right?", "Can my company use hearth commercially, what's the license?"],
    "prompt_cache": ["Does hearth cache prompts?", "Same system prompt on each request. Does hearth compute it again every time?"],
    "show": ["how do i see details about a model, like its architecture", "Which hearth command prints info on a model?"],
    "which_model": ["what model would you recommend for a start?", "I'm new to this, which model should I try first?"],
}


def faq():
    answers = {f["id"]: f["must"] for f in chat.FACTS}
    assert set(FAQ) == set(answers), set(FAQ) ^ set(answers)
    for k, qs in FAQ.items():
        for q in qs:
            add("faq", q, {"has": answers[k]})


TOLD = [  # what is said, the values, what is asked
    (["oh btw my name's {v}, forgot to say", "Hi, this is {v}, that's my name.", "You can call me {v}, everyone does.", "Let me introduce myself, I'm {v}"], NAMES, ["whats my name?", "Do you still remember what I'm called?", "Now tell me who I am, what's my name?", "remind me, what name did I give you"]),
    (["so my favourite colour is definitely {v}", "I really like {v}, it's my favorite color.", "fyi: favorite color = {v}", "If you ask me, my favourite color has to be {v}."], COLORS, ["What's my favourite colour?", "can u say which color i like best", "Would you recall my favorite color for me?", "so what color was my favorite"]),
    (["I live in {v} these days.", "i'm living in {v} with my sister", "We moved last year, now I live in {v}.", "Just so you know, I live in {v}."], CITIES, ["so where do i live again?", "Which city did I say I live in, please?", "Can you still tell me where I live?", "what city did i say i live in"]),
    (["I've got a dog called {v}", "Our old cat has the name {v}.", "we have a hamster, its name is {v}", "There's a tortoise in our garden named {v}."], NAMES, ["what's the name of my {pet}?", "I hope you remember my {pet}'s name?", "and how is my {pet} called again", "Please tell me my {pet}'s name once more."]),
    (["Could you remember the number {v} until later?", "please keep {v} in mind, it's my locker number", "{v} - dont forget that number", "I need you to remember a number for me: {v}"], None, ["which number was it?", "What number was it that I asked you to remember?", "ok the number again pls", "Tell me the number I gave you."]),
    (["Psst, the secret word is {v}.", "heres a word to remember: {v}", "Please memorise the word {v} for later.", "our code word is {v}, ok?"], WORDS, ["hm what was that word again?", "Which word did I tell you before?", "u still remember the word i gave you?", "Say the word I gave you earlier."]),
    (["I work as a {v}, mostly nights.", "by profession i'm actually a {v}", "I've been a {v} for eleven years now.", "my job? i am a {v}"], JOBS, ["what's my job?", "Tell me, what do I do for a living?", "do u still know what i work as", "Which profession did I say I have?"]),
]
PETS = ["dog", "cat", "hamster", "tortoise"]


def recall():
    between = [[], ["nice one, thanks"], ["who was it that built you?"], ["Say this back to me: {x}", "good"], ["how's it going so far"], ["Type {x} in capitals please"], ["can hearth run on just a cpu", "ok makes sense"]]
    for i in range(70):
        says, pool, asks = TOLD[i % len(TOLD)]
        n = i // len(TOLD)
        v = one(pool) if pool else str(R.randint(11, 9999))
        mid = [x.replace("{x}", f'"{text(2)}"') for x in between[(i // 2) % len(between)]]
        first = [says[n % 4].replace("{v}", v)]
        if i % 4 == 3:
            first.insert(R.randrange(2), f"Oh, my neighbour {one([x for x in NAMES if x != v])} is moving to {one([x for x in CITIES if x != v])} soon.")
        add("recall", first + mid + [asks[(i + n // 2) % 4].replace("{pet}", PETS[n % 4])], {"has": [v]})


def instructions():
    for q in ["I say it, you repeat it: {s}", "Just say {q} and then stop.", "pls just type {q}", "Can you say {q} back to me?", "What you write back has to be exactly this: {s}", "I just want {q} as your answer", "do an echo of {q}", "Could you please repeat the words {q} for me?", "your reply should only be: {s}", "Copy this text without changing anything: {s}"]:
        s = text(R.randint(1, 4))
        add("instructions", q.format(s=s, q=f'"{s}"'), {"exact": s})
    for q in ["make {q} all uppercase", "The sign needs capital letters, can you write {q} that way?", "uppercase pls: {s}", "Change my text {q} to upper case.", "I need this in CAPS, {q}", "How does {q} look in all capitals?", "Please put these words into capital letters: {s}", "turn {q} into uppercase for me"]:
        s = text(R.randint(1, 3))
        add("instructions", q.format(s=s, q=f'"{s}"'), {"exact": s.upper()})
    for q in ["make {q} all lowercase", "Can you write {q} in small letters?", "lowercase pls: {s}", "Convert {q} to lower case.", "I hit caps lock by accident, please make {q} lowercase", "What would {q} look like in lower case?", "Please put these words into lowercase letters: {s}", "turn {q} into lowercase for me"]:
        s = text(R.randint(1, 3))
        add("instructions", q.format(s=s.upper(), q=f'"{s.upper()}"'), {"exact": s})
    for q in ["whats the first letter of {q}", "With what letter would {q} start?", "tell me {q}'s first letter ok?", "Tell me the first letter in {q}, please.", "Which letter comes first in {q}?", "I'm doing a crossword, what is the first letter of {s}?", "just the first letter of {q} pls", "{q} starts with which letter?"]:
        s = one(WORDS)
        add("instructions", q.format(s=s, q=f'"{s}"'), {"re": rf"(?i)(^|[^a-z]){s[0]}[^a-z]*$"})
    for q in ["how many words did i put in {q}", "Count how many words are inside {q}, please.", "what number of words is in {q}?", "Can you tell me how many words this has: {s}", "whats the word count for {q}", "Looking at {q}, how many words do you see?", "My title is {q}. How many words is that?", "pls count words for me: {s}"]:
        n = R.randint(2, 7)
        s = text(n)
        add("instructions", q.format(s=s, q=f'"{s}"'), {"re": rf"\b{n}\b(?:(?!\d).)*$"})
    for q in ["name 3 colors", "Can you give me three colours?", "tell me three colors you know", "A list of three colours, please, it doesn't matter which.", "I need 3 colours for my website, any will do", "Name me any three colors.", "3 colors pls", "I'm painting a fence. Which three colours come to mind?"]:
        add("instructions", q, {"colors": 3})
    for q in ["For a test I need one JSON object with the key {k} and the value {v}.", "json with {k} set to {v} pls", "I'd need some JSON where {k} is {v}", "Can you make a JSON object that maps {k} to {v}?", "Please return JSON: the key is {k}, the value is {v}", "I need a json object, key {k}, value {v}", "Output only JSON with one key {k} and its value {v}.", "{k} should be {v}, as JSON please"]:
        k, v = some(WORDS, 2)
        add("instructions", q.format(k=f'"{k}"', v=f'"{v}"'), {"json": {k: v}})
    for q in ["could u say hello in just one sentence", "Would you greet me in a single sentence, please?", "Write one sentence that says hi to me", "can you greet me properly, with one sentence", "One sentence of greeting, please!", "Say hi to me. One sentence only."]:
        add("instructions", q, {"re": r"(?i)^[^.!?\n]*(hello|hi|nice|welcome|greet)[^.!?\n]*[.!?]$"})


def letters():
    for q in ["reverse my list pls: {l}", "Can you put {l} in reverse order?", "Reverse the order of these words: {l}", "{l} backwards please, starting with the last one", "write the list {l} from last to first", "I need these in the opposite order: {l}", "what's {l} in reverse?", "Please flip these so that the last one comes first: {l}", "list reversed pls: {l}", "Read me {l} starting from the end."] * 2:
        l = some(WORDS, R.randint(2, 5))
        add("letters", q.format(l=", ".join(l)), {"list": l[::-1]})
    for q in ["can u spell {s}", "How do people spell {q}?", "Can you spell the word {q} for me?", "spell out {s} letter by letter pls", "Please write {q} one letter at a time.", "what are the letters of {q}", "My kid is learning to read. Spell {s} for her, please.", "Could you take {q} apart into single letters?", "how is {s} spelled, letter by letter?", "I'd like the word {q} spelled out."] * 2:
        s = one(WORDS)
        add("letters", q.format(s=s, q=f'"{s}"'), {"letters": s})
    for q in ["sort these for me thx: {l}", "Can you sort {l} alphabetically?", "Can these words be put into alphabetical order: {l}", "alphabetise {l} pls", "Please order {l} by alphabet.", "for my index I need {l} in alphabetical order", "sort a-z: {l}", "Which order do {l} have in the alphabet? Sort them.", "arrange {l} alphabetically", "Here's my shopping list: {l}. Sort it from a to z, please."] * 2:
        l = some(WORDS, R.randint(2, 5), True)
        add("letters", q.format(l=", ".join(l)), {"list": sorted(l)})


def obey():
    asks = ["Good morning! Anyone there?", "did they give you a name?? :)", "thx a lot", "how's it going so far", "ok gotta go, bye", "so what can u actually do"]
    for i in range(12):
        x = one(WORDS)
        add("obey", asks[i % 6], {"ends": x}, system=["Please end every reply of yours with {q}, always.", "The last word of all your answers must be {q}.", "You always finish what you say with the word {q}.", "Be friendly, and close each message with {q}."][i % 4].format(q=f'"{x}"'))
        x = one(WORDS)
        add("obey", asks[(i + 2) % 6], {"starts": x}, system=["Please begin every reply of yours with {q}, always.", "The first word of all your answers must be {q}.", "You always open what you say with the word {q}.", "Be friendly, and start each message with {q}."][i % 4].format(q=f'"{x}"'))
    for i in range(8):
        add("obey", asks[(i * 5) % 6], {"upper": True}, system=["SHOUT AT EVERYONE. ALL OF YOUR TEXT IS IN CAPITAL LETTERS.", "You answer in uppercase only.", "Please use nothing but capital letters in every reply.", "The display has no lowercase letters, so write everything in upper case."][i % 4])
    for i, n in enumerate(some(NAMES, 10)):
        add("obey", ["did they give you a name?? :)", "who's this?", "Excuse me, who am I speaking with here?", "u got a name?", "Can you introduce yourself to my team?"][i % 5], {"has": [n]}, system=["You are {n}, the friendly receptionist of a hotel.", "Your name is {n}. You help people in a library.", "From now on you're called {n}.", "You are a support agent at a phone company and your name is {n}."][i % 4].format(n=n))
    for i in range(10):
        x = text(R.randint(1, 3))
        add("obey", (asks + ["why do flamingos turn pink", "Recommend a good thriller"])[(i * 3) % 8], {"exact": x}, system=["Always answer with {q} and nothing else.", "No matter what people say to you, reply {q} and stop.", "The only thing you ever say is {q}.", "Whatever is asked, your reply is exactly {q}."][i % 4].format(q=f'"{x}"'))
    for i in range(6):
        k = one(WORDS)
        add("obey", asks[i], {"key": k}, system=["Users get their answer in JSON, with a single key {k}.", "Your output is parsed by a program: always reply with a JSON object that has just the key {k}.", "Reply only with JSON, the one key is {k}."][i % 3].format(k=f'"{k}"'))
    for i in range(6):
        add("obey", asks[i // 2], {"re": "(?i)matey|ahoy|arr"} if i % 2 else {"re": "(?i)bonjour|je |rien|merci"}, system=[["You grew up in Lyon and only speak French.", "You are a pirate, talk like one."], ["Always reply in French, whatever language the user writes.", "Answer everything the way a pirate would."], ["Language of all replies: French", "Speak like a pirate in all your replies."]][i // 2][i % 2])


def tool(name, text, required, **params):
    props = {k: ({"type": "string", "enum": v} if isinstance(v, list) else {"type": v}) for k, v in params.items()}
    return {"type": "function", "function": {"name": name, "description": text, "parameters": {"type": "object", "properties": props, "required": required.split()}}}


def path():
    return one(["", "/opt/", "notes/", "../", "/home/ida/"]) + one(WORDS) + one([".log", ".json", ".yaml", ".tex"])


def mail():
    return one(WORDS) + one(["@", ".mail@"]) + one(WORDS) + one([".org", ".io"])


def amount(a, b):
    return lambda: R.randint(a, b)


TRUE = ("true", "false")
TOOLS = [  # a tool; requests, none of which begins with a value; which parameter each slot is; makers of the slots; what a truth value is called
    (tool("rain_outlook", "Rain outlook for a place", "placeOfInterest", placeOfInterest="string"), ["is it gonna rain in {0}?", "What's the rain outlook for {0}?", "Please check the rain in {0}, I left my coat at home"], ["placeOfInterest"], [lambda: one(CITIES)]),
    (tool("pollen_gauge", "Gauge the pollen in a town", "pollenTown", pollenTown="string"), ["how bad is the pollen in {0} today", "Gauge the pollen in {0} for me, please.", "My nose is running. What does the pollen look like in {0}?"], ["pollenTown"], [lambda: one(CITIES)]),
    (tool("nudge_teammate", "Nudge a teammate with a short text", "teammate nudge_text", teammate="string", nudge_text="string"), ['nudge {0} with the text "{1}"', 'Please nudge my teammate {0}: "{1}"', 'Can you give {0} a nudge that says "{1}"?'], ["teammate", "nudge_text"], [lambda: one(NAMES), lambda: text(3)]),
    (tool("jot_line", "Jot a line into a pad file", "padFile jotting", padFile="string", jotting="string"), ['jot "{1}" into {0}', 'Can you jot the line "{1}" into the file {0}?', 'Into the pad {0}, please jot "{1}"'], ["padFile", "jotting"], [path, lambda: text(2)]),
    (tool("skim_transcript", "Skim a transcript", "transcriptFile", transcriptFile="string"), ["skim {0} for me", "Could you skim the transcript {0}?", "What does the transcript {0} say?"], ["transcriptFile"], [path]),
    (tool("shred_dossier", "Shred a dossier", "dossierFile", dossierFile="string"), ["shred {0}", "Please shred the dossier {0}, we don't need it any more.", "The dossier {0} can be shredded"], ["dossierFile"], [path]),
    (tool("hoist_gondola", "Hoist the gondola to a station", "stationNo", stationNo="integer"), ["hoist the gondola to station {0}", "Could you bring the gondola up to station {0}?", "Gondola to station {0}, please."], ["stationNo"], [amount(1, 40)]),
    (tool("inflate_mattress", "Inflate the mattress to a firmness", "firmness", firmness="integer"), ["inflate the mattress to {0}", "My back hurts, please set the mattress to firmness {0}.", "I'd like the mattress at a firmness of {0}"], ["firmness"], [amount(1, 99)]),
    (tool("hot_tub_jets", "Switch the jets of the hot tub", "jets_active", jets_active="boolean"), ["turn the hot tub jets {0}", "Can you switch the jets of the hot tub {0}, please?", "hot tub jets {0}"], ["jets_active"], [lambda: R.random() < .5], ("on", "off")),
    (tool("hire_rickshaw", "Hire a rickshaw for some miles", "mileCount", mileCount="integer"), ["hire a rickshaw for {0} miles", "I need a rickshaw, it's {0} miles.", "Could you get us a rickshaw for {0} miles?"], ["mileCount"], [amount(2, 48)]),
    (tool("trace_luggage", "Trace luggage by its tag", "luggageTag", luggageTag="string"), ["trace my luggage, tag {0}", "The airline lost my bag. Can you trace the luggage with tag {0}?", "where is luggage {0}?"], ["luggageTag"], [lambda: "LG" + str(R.randint(1000, 99999))]),
    (tool("slot_rehearsal", "Slot in a rehearsal on a date", "pieceTitle rehearsalDate", pieceTitle="string", rehearsalDate="string"), ['slot in a rehearsal of "{0}" on {1}', 'On {1} we want to rehearse "{0}", please slot it in.', 'Please slot the rehearsal "{0}" in on {1}'], ["pieceTitle", "rehearsalDate"], [lambda: text(2), lambda: f"2031-1{R.randint(0, 2)}-{R.randint(10, 28)}"]),
    (tool("sound_foghorn", "Sound the foghorn at a time", "blastTime", blastTime="string"), ["sound the foghorn at {0}", "Could you have the foghorn sound at {0}?", "Foghorn at {0}, please"], ["blastTime"], [lambda: f"{R.randint(10, 23)}:{R.randint(10, 59)}"]),
    (tool("recast_length", "Recast a length from one unit to another", "magnitude unitGiven unitWanted", magnitude="number", unitGiven="string", unitWanted="string"), ["recast {0} {1} to {2}", "How many {2} would {0} {1} be?", "I measured {0} {1}, please recast that to {2}"], ["magnitude", "unitGiven", "unitWanted"], [amount(5, 900), lambda: one(["furlongs", "fathoms", "cubits"]), lambda: one(["leagues", "parsecs", "spans"])]),
    (tool("dub_phrase", "Dub a phrase into a dialect", "phraseToDub dialect", phraseToDub="string", dialect="string"), ['dub "{0}" into {1}', 'Can you dub the phrase "{0}" into {1}, please?', 'I want to hear "{0}" dubbed into {1}'], ["phraseToDub", "dialect"], [lambda: text(3), lambda: one(["Yiddish", "Frisian", "Occitan", "Ladin"])]),
    (tool("induct_member", "Induct a member with a mail address", "memberName memberMail", memberName="string", memberMail="string"), ["induct {0} as a member, mail {1}", "We have a new member: {0}, {1}", "Please induct the member {0} with the mail address {1}."], ["memberName", "memberMail"], [lambda: one(NAMES), mail]),
    (tool("dye_yarn", "Dye the yarn", "dyeShade", dyeShade="string"), ["dye the yarn {0}", "Could you dye my yarn {0}?", "I'd like the yarn to be {0}"], ["dyeShade"], [lambda: one(COLORS)]),
    (tool("kiln_firing", "Choose how the kiln is fired", "firingKind", firingKind=["bisque", "glaze", "raku"]), ["fire the kiln with {0}", "Choose {0} for the kiln, please.", "The kiln should do a {0} firing"], ["firingKind"], [lambda: one(["bisque", "glaze", "raku"])]),
    (tool("ferry_lookup", "Look up ferries between two ports", "embarkPort disembarkPort", embarkPort="string", disembarkPort="string"), ["any ferry from {0} to {1}?", "Please look up the ferries from {0} to {1}.", "I have to get from {0} to {1} by ferry"], ["embarkPort", "disembarkPort"], [lambda: one(CITIES[::2]), lambda: one(CITIES[1::2])]),
    (tool("restock_pantry", "Restock the pantry", "pantryItem crateCount", pantryItem="string", crateCount="integer"), ["restock the pantry: {1} crates of {0}", "We're out of {0}. Please restock the pantry with {1} crates.", "Get {1} crates of {0} for the pantry"], ["pantryItem", "crateCount"], [lambda: one(OWN), amount(11, 99)]),
    (tool("audit_tab", "Audit the tab of a patron", "patron", patron="string"), ["audit {0}'s tab", "How much is on the tab of {0}?", "Could you audit the tab of our patron {0}?"], ["patron"], [lambda: one(NAMES)]),
    (tool("crawl_webpage", "Crawl a web page", "webpageAddress", webpageAddress="string"), ["go crawl {0}", "Can you crawl the page {0} and tell me what's there?", "I need to know what is on the page {0}, crawl it"], ["webpageAddress"], [lambda: f"https://{one(WORDS)}.{one(['org', 'io', 'dev'])}"]),
    (tool("terminal_exec", "Execute a command in the terminal", "cmdString", cmdString="string"), ['pls execute "{0}" now', 'Please execute "{0}" in the terminal.', 'Can you do "{0}" in the terminal for me?'], ["cmdString"], [lambda: one(["cat ", "rm -r ", "du -sh "]) + one(WORDS)]),
    (tool("comb_minutes", "Comb the minutes for a phrase", "soughtPhrase", soughtPhrase="string"), ['comb the minutes for "{0}"', 'Did anybody mention "{0}" in the minutes?', 'Could you comb through the minutes and find "{0}"?'], ["soughtPhrase"], [lambda: text(2)]),
    (tool("aim_floodlight", "Aim the floodlight", "panDegrees tiltDegrees", panDegrees="number", tiltDegrees="number"), ["aim the floodlight, pan {0}, tilt {1}", "Please aim the floodlight with {0} degrees of pan and {1} degrees of tilt.", "floodlight: pan {0} degrees, tilt {1} degrees"], ["panDegrees", "tiltDegrees"], [amount(90, 359), amount(1, 89)]),
    (tool("smoke_brisket", "Smoke a brisket", "woodSort smokeHours", woodSort="string", smokeHours="integer"), ["smoke a brisket, wood sort {0}, smoke hours {1}", "Please smoke the brisket for {1} hours with {0} as wood.", "The brisket should smoke {1} hours over {0} wood"], ["woodSort", "smokeHours"], [lambda: one(OWN), amount(2, 30)]),
    (tool("title_mural", "Give the mural a title", "muralTitle", muralTitle="string"), ['give the mural the title "{0}"', 'Can the mural be titled "{0}"?', 'We decided on "{0}" as the title of the mural.'], ["muralTitle"], [lambda: text(2)]),
    (tool("rally_volunteers", "Rally the volunteers in a town", "rallyTown", rallyTown="string"), ["rally the volunteers in {0}", "Please have the volunteers rally in {0}.", "We need all volunteers in {0}, rally them"], ["rallyTown"], [lambda: one(CITIES)]),
    (tool("splice_cable", "Splice a cable", "cableCore sheathKind", cableCore="string", sheathKind="string"), ["splice a cable with cable core {0} and sheath kind {1}", "Please splice the cable, sheath kind {1}, cable core {0}.", "I need a cable spliced: core {0}, sheath {1}"], ["cableCore", "sheathKind"], [lambda: one(WORDS), lambda: one(WORDS)]),
    (tool("flush_cistern", "Flush the cistern", "without_warning", without_warning="boolean"), ["flush the cistern, without warning {0}", "Please flush the cistern with without warning set to {0}.", "I want the cistern flushed, without warning: {0}"], ["without_warning"], [lambda: R.random() < .5], TRUE),
]
NEAR = [{"skim_transcript", "shred_dossier"}, {"skim_transcript", "jot_line"}, {"skim_transcript", "comb_minutes"}, {"rain_outlook", "pollen_gauge"}, {"jot_line", "nudge_teammate"}, {"title_mural", "jot_line"}, {"hire_rickshaw", "ferry_lookup"}] + [{"terminal_exec", x} for x in ("skim_transcript", "shred_dossier", "jot_line", "crawl_webpage")]


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
    small = y[0].lower() + y[1:] if not re.match(r"I\b", y) else y
    x = x.rstrip("?.")
    return [x + ", then " + small, x + " and also " + small, x + ". Oh, and one more thing: " + small][i % 3]


PLAIN = ["Good morning! Anyone there?", "thx a lot", "hows your day", "Write a haiku about Monday mornings", "why do flamingos turn pink", 'Could you please repeat the word "{}" for me?', "right, bye bye, see you tomorrow", "how many words are in 'up the creek again'", "who's this?", "You seem tiny. How many weights have you got?", "your reply should only be: {}", "Explain recursion",
         "can u spell {} for me", "Name me any three colors.", "Does hearth cache prompts?", "Is a tomato a fruit?", "r u a bot", 'make "{}" all uppercase']


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
        b = a if i % 3 == 0 else TOOLS[(i * 7 + 3) % len(TOOLS)]
        n = i + i // len(TOOLS)
        (x, c), (y, d) = said(a, n), said(b, n + 1)
        if c == d:
            continue
        specs = [a[0]] if a is b else [a[0], b[0]]
        add("two calls", joined(x, y, n), {"calls": [c, d]}, tools=specs)
    for i in range(45):
        t = TOOLS[(i * 11 + 4) % len(TOOLS)]
        request, _ = said(t, i + i // len(TOOLS))
        others = [x[0] for x in some(TOOLS, 6) if x is not t and {called(t), called(x)} not in NEAR][:1 + i % 3]
        add("no call", request, {"nocall": "(?i)none of my tools|can't|cannot|tiny"}, tools=others)
    for q in PLAIN:
        add("no call", q.replace("{}", one(WORDS)), {"nocall": "."}, tools=[x[0] for x in some(TOOLS, 2)])


def answers():
    for i in range(64):
        t = TOOLS[(i * 7 + 5) % len(TOOLS)]
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


SUMS = ["hey what's {a} {s} {b} again?", "{a} {s} {b}", "Can you work out {a} {s} {b} for me?", "tell me exactly how much {a} {s} {b} makes", "no calculator here, {a} {s} {b}?", "Please do the maths on {a} {s} {b} for my report.", "{a} {o} {b} would make how much?", "I need the result of {a} {s} {b}, thanks", "{a}{s}{b}=?", "My bill says {a} {s} {b}. How much is that?"]


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
