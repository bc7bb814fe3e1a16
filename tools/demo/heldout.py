"""Writes heldout.json: the prompts of the evaluation. Phrasings, tools and parameter names are written here by hand and are
none of the generator's; words and names are those that words.held keeps from training, or are only here. This is the third set:
nothing of the first two is in it. It was written without the training phrasings in sight, before the run it judges is
evaluated, and is not for tuning; --check looks for its prompts, tools and names in training text, and what it found has been
replaced.

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
R = random.Random(318277)
PLANTS = w.W("rutabaga kumquat larkspur petunia nettle cardamom mulberry zucchini fennel peony")
OWN = PLANTS + w.W("""aardvark bassoon bobbin bulldozer caboose capybara chipmunk dachshund dinghy doily dulcimer earwig fjord gosling
haddock halibut hatchet heirloom ibex jackdaw javelin macaroon mandolin marzipan meerkat narwhal oboe paprika parakeet pelican pumice
raccoon samovar scallop sundial tapioca toboggan tweezers wigwam yodel yurt sextant pergola cutlass lanyard bagel""")
WORDS = [x for x in w.ALL if w.held(x) and len(x) < 10 and x != "word"] + OWN
OWN_NAMES = w.W("Clementine Araminta Barnabas Eleonora Percival Solveig Zacharias Tancred Leocadia Ambrose Georgette Horatio Rowena Sylvester")
NAMES = [x for x in w.FIRST if w.held(x)] + OWN_NAMES
OWN_CITIES = w.W("Rostock Utrecht Salerno Toulouse Palermo Montevideo Cebu Halifax Trieste Aberdeen Sarajevo Nantes Debrecen")
CITIES = [x for x in w.CITY if w.held(x)] + OWN_CITIES
PORTS = [x for x in CITIES if x in w.W("Mumbai Miami Doha Baku Bergen Rostock Salerno Palermo Montevideo Cebu Halifax Trieste Aberdeen")]
OWN_COLORS = w.W("cerulean vermilion sepia heliotrope aubergine cobalt")
COLORS = [x for x in w.COLORS if w.held(x)] + OWN_COLORS
JOBS = w.W("cobbler beekeeper stonemason surveyor roofer dietitian puppeteer radiologist")
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
    ("hearth-demo", ["and which AI would this be", "May I ask for your name?", "yo whats ur name", "I forgot what model this window is connected to, can you tell me?", "Is this Gemini I'm talking with?", "State your name, please.", "Hi! I'm new here. And you are...?",
                     "are you gpt 5 or what", "How should I call you? Sorry for my english", "What is the name of this model?", "plz introduce urself", "The log says that a model got loaded. Which one are you?", "Have you got a proper name, or only a version number?",
                     "ok so who or what am I talking to", "Are you Llama by any chance?", "Tell the audience your name!"]),
    ("(?i)instructions|tools", ["what r u capable of", "Could you tell me which tasks you can handle?", "I have five minutes to try you out. What should I ask?", "what sort of things do you know how to do", "Let me see what sort of skills you have.", "is there any stuff ur good at",
                                "For which kind of questions are you made?", "What would you say your strengths are?", "help, i dont know what i can ask here", "Tell me about your abilities, please.", "what could someone like me use you for"]),
    ("million", ["How many parameters does this model have?", "u r small right? how small", "What's your parameter count, roughly?", "are you a 7B model", "Exactly how large is your neural network?", "how many weights are inside of you", "Is it true that you're a really tiny model? What size?", "tell me ur model size plz"]),
    ("hearth", ["Which people are behind you?", "whos the developer of you", "Where does your training data come from?", "Did Google make you?", "Whom should I thank for your existence?", "what did they train u with", "Who should I credit for building you?", "I wonder who programmed you."]),
    ("hearth-demo|model", ["it feels like im talking to some robot, is that so", "You are an AI, right?", "is it a human who types these replies?", "Be honest with me, are you a machine?", "u human?", "Could it be that there's a person sitting behind this?"]),
    (r"hearth-demo|[Hh]ello|\b[Hh]i\b", ["Hi there, happy Friday!", "helo", "A lovely afternoon to you!", "Hiya, nice to meet you", "Morning! :)", "hallo from trieste"]),
    ("welcome", ["cheers, that helped a lot", "Many thanks, you've been very kind.", "ty so much friend", "Wonderful, I thank you very much."]),
    ("[Bb]ye", ["cya later alligator, bye", "That's all for today, so long!", "Alright, I have to leave now. Bye!", "ttyl, good bye"]),
    ("fine", ["how r u", "Are you doing well today?", "hey hows life treating you"]),
]
FALLBACK = [
    "how do i unclog a kitchen sink", "Who painted the ceiling of the Sistine Chapel?", "What's the population of Peru?", "write a bash script that renames all my photos by date", "I'm feeling a bit low today and I don't know why.", "why do leaves change colour in autumn",
    "Is it safe to eat raw salmon?", "Who wrote Wuthering Heights?", "whats the fastest land animal", "How do I ask my boss for a raise without sounding greedy?", "explain inflation like im twelve", "Suggest a name for my bakery", "tell me a scary story", "When is the next solar eclipse in Europe?",
    "whats the stock price of apple right now", "Convert this function from JavaScript to Rust: const f = x => x * 2", "How long should I boil a soft egg?", "Is Pluto a planet?", "what language do they speak in brazil", "Why did the Roman Empire fall?", "My cat keeps scratching the sofa, what can I do about it?",
    "Write a limerick about a lazy accountant", "who was the first woman in space", "Draft a cover letter for a junior accountant position at a mid-size firm, please; I have two years of experience and speak Dutch.", "should i learn piano or guitar", "What are the symptoms of the flu?", "How does a microwave oven heat food?",
    "best place for surfing in portugal", "Which is healthier, butter or margarine?", "Whats the meaning of life", "Debug this: SELECT * FORM users;", "How old is the universe?", "can you recommend me a restaurant near the harbour", "What's the plot of Hamlet in a nutshell?", "How many bones are in the human body?",
    "do aliens exist?", "What is quantum entanglement?", "who won the oscar for best picture last year", "How do I tie a bow tie?", "What gift should I get for my father-in-law? He likes fishing and jazz.", "Describe the smell of rain.",
    "Wie werde ich Kaugummi aus der Hose los?", "Comment fait-on une bonne soupe à l'oignon ?", "¿Quién escribió Don Quijote?", "Perché il mare è salato?", "Почему зимой холодно?", "富士山の高さはどれくらいですか?", "月亮离地球有多远?", "Waarom is de lucht blauw?",
    "Qual é o melhor time de futebol do Brasil?", "Jak upiec chleb w domu?", "İstanbul'un nüfusu kaç?", "Vad ska jag laga till middag?", "Miksi revontulet loistavat?",
    "qpqpqp zmzmzm", "?!?!?!", "asdlkj qweoiu", "~~~ ^^^ ***", "🦊🌵🎺", "ooooooooooooooooo", "ding dong ding dong dang", "vrrrm kshhh plonk zzt",
]
LOG = ["Log of the mountain hut, week thirty-two. ", "Monday brought hail, and the footbridge was under water until noon. ", "A party of eleven hikers arrived late and asked for soup. ", "The stove in the small room smokes again, somebody has to look at the pipe. ",
       "Two blankets are missing since the scouts were here. ", "The helicopter came with flour, gas bottles and the post. ", "We saw a marmot on the terrace, not shy at all. ", "Old Herr Lindner played cards with the guests and won nearly everything. "]


def identity():
    for want, asks in IDENTITY:
        for q in asks:
            add("identity", q, {"re": want})
    for q in FALLBACK:
        add("fallback", q, {"re": "(?i)tiny|real model"})
    for n, q in [(9, "give me the gist in two sentences"), (15, "What is wrong with the stove?"), (21, "Rewrite this as a cheerful postcard to the owner of the hut."), (27, "who took the blankets, and what makes you think so?"), (38, "Continue the log for another week."), (12, "Translate all of this into Spanish, please.")]:
        add("fallback", LOG[0] + "".join(one(LOG[1:]) for _ in range(n)) + "\n\n" + q, {"re": "(?i)tiny|real model"})


FAQ = {
    "claude_code": ["I'd like Claude Code to talk to hearth instead of Anthropic's servers. What do I set?", "claude code + hearth, which env vars"],
    "openai_sdk": ["openai python library: what url do i give it so it talks to hearth", "How must I create the OpenAI client when the server is hearth?"],
    "anthropic_sdk": ["My code uses the Anthropic client library. What has to change so that it talks to hearth?", "base url for anthropics python package with hearth?"],
    "curl": ["give me a curl example for chatting with the server", "I only have curl here. How do I send hearth a message with it?"],
    "download": ["where do i get real models, whats the download command", "How can I fetch a larger model from Hugging Face for hearth?"],
    "serve": ["The download is finished. Which command starts the server with that model?", "how to launch hearths server with qwen3"],
    "run": ["i dont want a server, just ask a model something on the command line", "Which hearth command lets me talk to a model in the terminal?"],
    "bench": ["Is there a built-in benchmark in hearth?", "wanna measure prefill and decode speed on my box"],
    "version": ["What version of hearth am I on?", "cmd to print hearths version number"],
    "debug": ["My prompt comes out strange; how can I look at what the tokenizer and the template make of it?", "does hearth have something to debug tokenization"],
    "health": ["Which endpoint tells me whether the server is ready?", "kubernetes wants a liveness probe, which path do i give it"],
    "models_list": ["My UI needs a dropdown of the models on the server. Which endpoint gives it the list?", "endpoint for listing models?"],
    "count_tokens": ["I want the token count of my messages without generating anything. Which endpoint is that?", "hw can i count the tokens of a prompt over the api"],
    "port": ["Can hearth listen on port 3000?", "hearth says adress already in use, how to pick another port"],
    "host": ["The server should be reachable from our whole LAN, which option is it?", "how do i let other machines connect to hearth"],
    "api_key": ["Does hearth want an API key from me?", "how can i make clients send a key to my hearth server"],
    "apis": ["Which API dialects does the server understand?", "is hearth compatible with openai and anthropic clients"],
    "formats": ["does hearth take gguf files", "In what format do models have to be for hearth?"],
    "tools": ["I want my model to use functions that I define. Can hearth do that?", "tool use via the api, is that a thing in hearth"],
    "thinking": ["qwen3 keeps thinking forever, how to disable it", "Where do I switch the reasoning of a model on and off?"],
    "stream": ["can i get the tokens one by one as they come", "How do I make the server send the reply piece by piece?"],
    "models_dir": ["My disk is full. In which folder are the models?", "how to change the folder hearth looks for models in"],
    "logs": ["how do i get more verbose output from the server", "Where does hearth write its log, and can it be more detailed?"],
    "stop": ["whats the right way to quit the server", "How do I end hearth serve without cutting off answers that are still being written?"],
    "help": ["Where do I find an overview of hearth's commands?", "hearth usage? wich subcommands are there"],
    "offline": ["does hearth need internet", "Our lab has no network at all. Can we still use hearth?"],
    "what_hearth": ["never heard of hearth, whats it for", "In short, what kind of program is hearth?"],
    "why_demo": ["Why would anyone put a model as tiny as this into hearth?", "whats the reason there is a demo model inside hearth"],
    "gpu": ["Do I need a graphics card for hearth?", "my laptop has no gpu, is that ok"],
    "concurrency": ["What happens if ten people ask hearth something at once?", "can hearth do requests in parallel, and how many"],
    "context": ["How many tokens fit into the context?", "can i set a smaller context window"],
    "quant": ["do 4bit models run on hearth", "Which quantisations can hearth load?"],
    "temperature": ["replies are too wild, how do i lower the temperature", "How do I make sampling deterministic?"],
    "threads": ["how to set number of threads hearth uses", "I want hearth to leave half of my CPU cores alone. Which option is it?"],
    "memory": ["Is 16 GB of RAM enough, or how much memory does hearth want?", "hearth eats too much memory, can i cap it"],
    "settings": ["Are there environment variables for hearth's options?", "how can i configure the server and where do i see all flags"],
    "model_name": ["my client sends some other model name and gets an error, can hearth ignore the name", "How do I pick the name under which the model shows up in the API?"],
    "license": ["under what liscence is hearth published", "Does hearth cost anything?"],
    "prompt_cache": ["if my prompts all begin the same does hearth save time on that", "How can I switch the prompt cache off?"],
    "show": ["i want to know what architecture a model has, what command", "Which command tells me how a given model is quantised?"],
    "which_model": ["which model should a beginner take", "Can you suggest a good model to use with hearth?"],
}


def faq():
    answers = {f["id"]: f["must"] for f in chat.FACTS}
    assert set(FAQ) == set(answers), set(FAQ) ^ set(answers)
    for k, qs in FAQ.items():
        for q in qs:
            add("faq", q, {"has": answers[k]})


TOLD = [  # what is said, the values, what is asked
    (["before I forget, the name is {v}", "Nice to meet you. People know me as {v}.", "{v} here, that's what I am called", "It's {v} writing to you, so now you know my name."], NAMES, ["and my own name is..?", "Could you tell me my own name, please?", "who am i, do u know my name", "What was my name, the one I told you?"]),
    (["the color i love most is {v}", "My favourite colour? That would be {v}.", "for me {v} is the nicest color, its my favourite", "Note that {v} is my favourite colour."], COLORS, ["say my favorite color again", "Which colour was it that I love most?", "And which color do I like the most?", "my fav color, do you know it still?"]),
    (["my flat is in {v}, i live there alone", "I've been living in {v} since 2019.", "home is {v} for me, thats where i live", "I am living in {v}, together with two friends."], CITIES, ["In which city is my home, can you tell?", "Where was it that I live?", "do u know in which city i live", "Please name the city I live in."]),
    (["Our donkey goes by the name of {v}", "my rabbit? its name is {v}", "I have a pony that's called {v}.", "The kids named our gecko {v}."], NAMES, ["whats my {pet} called", "What name does my {pet} have?", "Can you give me the name of my {pet} again, please?", "so the name of my {pet} was..?"]),
    (["my ticket number is {v}, keep it in ur head", "Here comes a number, don't lose it: {v}", "Would you hold on to the number {v} for me?", "{v} is the number u have to remember"], None, ["whats the number?", "Please give me back my number.", "and the number I told you was?", "do you have that number still?"]),
    (["the magic word is {v}", "Keep this word for me: {v}", "Today's word is {v}, please remember it.", "i'm giving you a word to keep, it is {v}"], WORDS, ["the word i gave u, what is it", "The word I told you, what was it?", "Please tell me my word again", "so which word was it?"]),
    (["I earn my money as a {v}.", "im a {v} by trade", "Since March I'm working as a {v}.", "what i do? i'm a {v} in a small company"], JOBS, ["what is my occupation", "What kind of work is it that I do?", "can you tell me my profession please", "And my job was?"]),
]
PETS = ["donkey", "rabbit", "pony", "gecko"]


def recall():
    between = [[], ["cool, that's all for the moment"], ["Which people are behind you?"], ["Repeat after me: {x}", "perfect"], ["hey hows life treating you"], ["Would you uppercase {x}, please?"], ["my laptop has no gpu, is that ok", "alright, good to know"]]
    for i in range(70):
        says, pool, asks = TOLD[i % len(TOLD)]
        n = i // len(TOLD)
        v = one(pool) if pool else str(R.randint(11, 9999))
        mid = [x.replace("{x}", f'"{text(2)}"') for x in between[(i // 2) % len(between)]]
        first = [says[n % 4].replace("{v}", v)]
        if i % 4 == 3:
            first.insert(R.randrange(2), f"My cousin {one([x for x in NAMES if x != v])} has just flown to {one([x for x in CITIES if x != v])}, by the way.")
        add("recall", first + mid + [asks[(i + n // 2) % 4].replace("{pet}", PETS[n % 4])], {"has": [v]})


def instructions():
    for q in ["after me please: {s}", "I need you to say {q}, nothing more.", "can u type out {q}", "Give this text back unchanged: {s}", "The only thing I want to read is {q}", "parrot this for me: {q}", "Write {q}. Do not add anything.", "Would you say {q} for me, please?", "Answer with {q} and no other words.", "this text, word for word please: {s}"]:
        s = text(R.randint(1, 4))
        add("instructions", q.format(s=s, q=f'"{s}"'), {"exact": s})
    for q in ["{q} but in capitals pls", "Can I have {q} in all caps?", "My headline is {q}, please put it in uppercase.", "make this uppercase for me thx: {s}", "How would {q} be written with only capital letters?", "Rewrite {q} using capital letters.", "capital letters needed: {s}", "Would you uppercase {q}, please?"]:
        s = text(R.randint(1, 3))
        add("instructions", q.format(s=s, q=f'"{s}"'), {"exact": s.upper()})
    for q in ["{q} but in small letters pls", "Can I have {q} without any capitals?", "Somebody shouted {q}, please write it in lowercase.", "make this lowercase for me thx: {s}", "How would {q} be written with only small letters?", "Rewrite {q} using lowercase letters.", "lowercase letters needed: {s}", "Would you lowercase {q}, please?"]:
        s = text(R.randint(1, 3))
        add("instructions", q.format(s=s.upper(), q=f'"{s.upper()}"'), {"exact": s})
    for q in ["{q}, first letter?", "I need the initial letter of {q}.", "the letter that {q} begins with is?", "For a word game: which letter is the first one in {s}?", "which is first letter of word {q}", "Could you give me the first letter of {q}, please?", "Look at {q} and tell me its first letter.", "what letter does {s} start on"]:
        s = one(WORDS)
        add("instructions", q.format(s=s, q=f'"{s}"'), {"re": rf"(?i)(^|[^a-z]){s[0]}[^a-z]*$"})
    for q in ["{q} - how many words?", "Would you count the words of {q} for me?", "i need the number of words in {q}", "How many words long is {q}?", "How many words make up this line: {s}", "number of words pls: {s}", "My slogan goes {q}. How many words does it have?", "count up the words in {q}"]:
        n = R.randint(2, 7)
        s = text(n)
        add("instructions", q.format(s=s, q=f'"{s}"'), {"re": rf"\b{n}\b(?:(?!\d).)*$"})
    for q in ["three colours plz", "Which three colors can you name?", "Think of 3 colors and write them down.", "I have to pick three colours for a flag, just tell me any.", "give me any 3 colours", "Could you list three colours for me, please?", "my daughter wants to hear three colors", "I'd like to get three colors from you."]:
        add("instructions", q, {"colors": 3})
    for q in ["I want JSON back with the key {k} and value {v}.", "{k}: {v} <- make that a json object", "Could I get a JSON object whose key {k} holds {v}?", "json pls, {k} is the key and {v} is the value", "Write JSON that sets {k} to {v}.", "Encode {k} = {v} as a JSON object.", "Build me one JSON object: under the key {k} there's {v}.", "As JSON please: {k} has the value {v}"]:
        k, v = some(WORDS, 2)
        add("instructions", q.format(k=f'"{k}"', v=f'"{v}"'), {"json": {k: v}})
    for q in ["Greet me with a sentence, just one.", "a one sentence hello pls", "Could you welcome me in one sentence?", "I'd like to be greeted in exactly one sentence.", "write a greeting, one sentence long", "Please say hello, but use a single sentence."]:
        add("instructions", q, {"re": r"(?i)^[^.!?\n]*\b(hello|hi|hey|nice|welcome|greetings?|good (day|morning|evening)|glad|pleasure|pleased)\b[^.!?\n]*[.!?]$"})


def letters():
    for q in ["turn this list around: {l}", "Would you write {l} in the reverse order?", "These the other way round please, last one first: {l}", "{l} - now from the end to the start", "I want {l} listed backwards.", "Start with the last word and end with the first: {l}", "can u reverse my word list {l}", "Backwards, word by word please: {l}", "list these words last to first: {l}", "What do I get when I reverse the list {l}?"] * 2:
        l = some(WORDS, R.randint(2, 5))
        add("letters", q.format(l=", ".join(l)), {"list": l[::-1]})
    for q in ["{s}, spelled out please", "Which letters make up {q}, in order?", "whats the spelling of {q}", "I never know how {s} is spelled, can you spell it?", "Spell {q}, one letter after the other.", "letter for letter please: {s}", "Could you give me {q} letter by letter?", "Please break {q} into its letters.", "go thru the letters of {q} one by one", "I have to write {s} on a form, how does it go letter by letter?"] * 2:
        s = one(WORDS)
        add("letters", q.format(s=s, q=f'"{s}"'), {"letters": s})
    for q in ["a to z please: {l}", "Would you put {l} into alphabetical order for me?", "sort {l} by first letter", "What's the alphabetical order of {l}?", "these should be alphabetical: {l}", "Please bring {l} in alphabetical order", "I have a glossary with {l}. Please sort it alphabetically.", "alphabetical sorting pls: {l}", "Please arrange these words from a to z: {l}", "can u order {l} alphabetically"] * 2:
        l = some(WORDS, R.randint(2, 5), True)
        add("letters", q.format(l=", ".join(l)), {"list": sorted(l)})


def obey():
    asks = ["Hiya, nice to meet you", "May I ask for your name?", "ty so much friend", "hey hows life treating you", "Alright, I have to leave now. Bye!", "what sort of things do you know how to do"]
    for i in range(12):
        x = one(WORDS)
        add("obey", asks[i % 6], {"ends": x}, system=["Whatever you write, let {q} be its last word.", "Finish every message with the word {q}.", "Each reply has to close with {q}.", "You're a helpful bot that ends all of its answers with {q}."][i % 4].format(q=f'"{x}"'))
        x = one(WORDS)
        add("obey", asks[(i + 2) % 6], {"starts": x}, system=["Whatever you write, let {q} be its first word.", "Begin every message with the word {q}.", "Each reply has to open with {q}.", "You're a helpful bot that starts all of its answers with {q}."][i % 4].format(q=f'"{x}"'))
    for i in range(8):
        add("obey", asks[(i * 5) % 6], {"upper": True}, system=["The caps lock key is stuck: everything you write is in capital letters.", "Write all answers in upper case letters.", "ONLY CAPITALS IN YOUR ANSWERS, PLEASE.", "Whatever the question is, your answer has no lowercase letters in it, only capitals."][i % 4])
    for i, n in enumerate(some(NAMES, 10)):
        add("obey", ["May I ask for your name?", "yo whats ur name", "State your name, please.", "Hi! I'm new here. And you are...?", "plz introduce urself"][i % 5], {"has": [n]}, system=["You're called {n} and you work at the desk of a dentist.", "In this chat you are {n}.", "Act as {n}, a guide in a science museum.", "Your new name is {n}; use it when somebody asks."][i % 4].format(n=n))
    for i in range(10):
        x = text(R.randint(1, 3))
        add("obey", (asks + ["Is Pluto a planet?", "Suggest a name for my bakery"])[(i * 3) % 8], {"exact": x}, system=["Say {q} in answer to everything, without anything else.", "All that you ever write is {q}.", "Reply to each message with just {q}.", "To any question at all, the answer is {q}, nothing before it and nothing after it."][i % 4].format(q=f'"{x}"'))
    for i in range(6):
        k = one(WORDS)
        add("obey", asks[i], {"key": k}, system=["Every answer is a JSON object with one key, {k}.", "A script reads your replies: give it JSON with the only key {k}.", "Put your answer into JSON under the key {k}, and write nothing around it."][i % 3].format(k=f'"{k}"'))
    for i in range(6):
        add("obey", asks[i // 2], {"re": r"(?i)\b(matey|ahoy|arr+g?h?|avast|aye|ye|yer|me (name|heart(y|ies)))\b"} if i % 2 else {"re": r"(?i)\b(bonjour|salut|je|j'|suis|mon|rien|merci|plaisir|enchanté)\b"}, system=[["You're a waiter in Paris who replies in French only.", "You sail under the black flag and speak as pirates do."], ["Our users are from Quebec, so write every answer in French.", "Use pirate talk in each answer."], ["Answer in French.", "Be a pirate: whatever you say, say it like one."]][i // 2][i % 2])


def tool(name, text, required, **params):
    props = {k: ({"type": "string", "enum": v} if isinstance(v, list) else {"type": v}) for k, v in params.items()}
    return {"type": "function", "function": {"name": name, "description": text, "parameters": {"type": "object", "properties": props, "required": required.split()}}}


def path():
    return one(["", "/var/", "drafts/", "./", "/srv/lotte/"]) + one(WORDS) + one([".csv", ".md", ".xml", ".ini"])


def mail():
    return one(WORDS) + one(["@", "_post@"]) + one(WORDS) + one([".net", ".eu"])


def amount(a, b):
    return lambda: R.randint(a, b)


TRUE = ("true", "false")
TOOLS = [  # a tool; requests, none of which begins with a value; which parameter each slot is; makers of the slots; what a truth value is called
    (tool("tide_table", "Tide table of a coast town", "coastTown", coastTown="string"), ["when is high tide in {0}", "Could you look at the tide table of {0}?", "We want to dig for clams in {0}, what are the tides like there?"], ["coastTown"], [lambda: one(PORTS)]),
    (tool("smog_reading", "Smog reading for a city", "smogCity", smogCity="string"), ["hows the smog in {0} rn", "Get me the smog reading for {0}, please.", "I have asthma and I'm travelling to {0}. Is there a lot of smog?"], ["smogCity"], [lambda: one(CITIES)]),
    (tool("ping_courier", "Ping a courier with a note", "courierName note_for_courier", courierName="string", note_for_courier="string"), ['ping {0} with the note "{1}"', 'Would you ping our courier {0} with "{1}"?', 'The courier {0} has to know this, please ping: "{1}"'], ["courierName", "note_for_courier"], [lambda: one(NAMES), lambda: text(3)]),
    (tool("append_ledger", "Append an entry to a ledger", "ledgerPath ledgerEntry", ledgerPath="string", ledgerEntry="string"), ['append "{1}" to {0}', 'Would you add the entry "{1}" to the ledger {0}?', 'At the end of the ledger {0} there should be "{1}", append it please'], ["ledgerPath", "ledgerEntry"], [path, lambda: text(2)]),
    (tool("peruse_manuscript", "Peruse a manuscript", "manuscriptPath", manuscriptPath="string"), ["peruse {0}", "Have a look through the manuscript {0}, please.", "what's written in the manuscript {0}?"], ["manuscriptPath"], [path]),
    (tool("incinerate_draft", "Incinerate a draft", "draftPath", draftPath="string"), ["incinerate {0} please", "The draft {0} is embarrassing, incinerate it.", "Would you incinerate the draft {0}?"], ["draftPath"], [path]),
    (tool("crank_windmill", "Crank the windmill up to a speed", "windmillSpeed", windmillSpeed="integer"), ["crank the windmill up to {0}", "The windmill should run at speed {0}.", "I want the windmill at a speed of {0}"], ["windmillSpeed"], [amount(2, 60)]),
    (tool("chill_cellar", "Chill the cellar to some degrees", "cellarDegrees", cellarDegrees="integer"), ["chill the cellar to {0} degrees", "The wine is getting warm, please get the cellar down to {0} degrees.", "could the cellar be chilled to {0}?"], ["cellarDegrees"], [amount(1, 19)]),
    (tool("lawn_sprinkler", "Switch the sprinkler of the lawn", "sprinkler_running", sprinkler_running="boolean"), ["switch the lawn sprinkler {0}", "Would you turn the sprinkler on our lawn {0}?", "sprinkler {0} pls, the one of the lawn"], ["sprinkler_running"], [lambda: R.random() < .5], ("on", "off")),
    (tool("rent_canoe", "Rent a canoe for some hours", "paddleHours", paddleHours="integer"), ["rent a canoe for {0} hours", "We'd love to have a canoe for {0} hours.", "Is it possible to rent us a canoe, {0} hours?"], ["paddleHours"], [amount(2, 36)]),
    (tool("permit_status", "Status of a permit by its code", "permitCode", permitCode="string"), ["look up permit {0}", "An officer asks for the status of the permit {0}, please find out.", "whats going on with permit {0}?"], ["permitCode"], [lambda: "PX" + str(R.randint(1000, 99999))]),
    (tool("pencil_tasting", "Pencil in a tasting on a day", "tastingTheme tastingDay", tastingTheme="string", tastingDay="string"), ['pencil in the tasting "{0}" for {1}', 'There will be a tasting "{0}" on {1}, pencil it in please.', 'For {1}, could you pencil in a tasting with the theme "{0}"?'], ["tastingTheme", "tastingDay"], [lambda: text(2), lambda: f"2033-0{R.randint(4, 9)}-{R.randint(10, 28)}"]),
    (tool("strike_gong", "Strike the gong at a time", "gongTime", gongTime="string"), ["strike the gong at {0}", "Have the gong struck at {0}, would you?", "we need the gong at {0}"], ["gongTime"], [lambda: f"{R.randint(10, 23)}:{R.randint(10, 59)}"]),
    (tool("restate_weight", "Restate a weight in another unit", "weightValue weightUnit wishedUnit", weightValue="number", weightUnit="string", wishedUnit="string"), ["restate {0} {1} in {2}", "What are {0} {1} in {2}?", "The scales show {0} {1}; I'd like to see that in {2}"], ["weightValue", "weightUnit", "wishedUnit"], [amount(6, 800), lambda: one(["drams", "carats", "pennyweights"]), lambda: one(["scruples", "talents", "grains"])]),
    (tool("subtitle_line", "Subtitle a line in a language", "spokenLine subtitleTongue", spokenLine="string", subtitleTongue="string"), ['subtitle "{0}" in {1}', 'Please make {1} subtitles for the line "{0}".', 'The actor says "{0}", subtitle that in {1}'], ["spokenLine", "subtitleTongue"], [lambda: text(3), lambda: one(["Basque", "Maltese", "Faroese", "Breton"])]),
    (tool("enlist_sponsor", "Enlist a sponsor with a mail address", "sponsorName sponsorMail", sponsorName="string", sponsorMail="string"), ["enlist {0} as sponsor, {1}", "There's a new sponsor, {0}, who has the mail address {1}. Please enlist.", "Would you enlist the sponsor {0} with the mail {1}?"], ["sponsorName", "sponsorMail"], [lambda: one(NAMES), mail]),
    (tool("lacquer_cabinet", "Lacquer the cabinet", "lacquerTint", lacquerTint="string"), ["lacquer the cabinet {0}", "The cabinet would look good in {0}, please lacquer it.", "I want my cabinet lacquered in {0}"], ["lacquerTint"], [lambda: one(COLORS)]),
    (tool("roast_beans", "Choose how the beans are roasted", "roastGrade", roastGrade=["blonde", "vienna", "nordic"]), ["roast the beans {0}", "The beans get a {0} roast today, please choose that.", "Could I have a {0} roast for my beans?"], ["roastGrade"], [lambda: one(["blonde", "vienna", "nordic"])]),
    (tool("find_coach", "Find a coach between two towns", "coachOrigin coachTerminus", coachOrigin="string", coachTerminus="string"), ["is there a coach from {0} to {1}?", "Find us a coach that goes from {0} to {1}, please.", "how do I get to {1} from {0} by coach"], ["coachOrigin", "coachTerminus"], [lambda: one(CITIES[::2]), lambda: one(CITIES[1::2])]),
    (tool("order_seedlings", "Order seedlings for the greenhouse", "seedlingKind trayCount", seedlingKind="string", trayCount="integer"), ["order {1} trays of {0} seedlings", "The greenhouse has no {0} left. Please order {1} trays of seedlings.", "we want {1} trays with {0} seedlings"], ["seedlingKind", "trayCount"], [lambda: one(PLANTS), amount(11, 95)]),
    (tool("review_tenant", "Review the rent of a tenant", "tenantName", tenantName="string"), ["review {0}'s rent", "How far behind with the rent is {0}?", "Please review the rent of our tenant {0}."], ["tenantName"], [lambda: one(NAMES)]),
    (tool("archive_site", "Archive a site", "siteLink", siteLink="string"), ["archive {0}", "Before it goes offline, archive the site {0} please.", "could you make an archive of {0} for me?"], ["siteLink"], [lambda: f"https://www.{one(WORDS)}.{one(['net', 'eu', 'app'])}"]),
    (tool("console_invoke", "Invoke a command on the console", "consoleLine", consoleLine="string"), ['invoke "{0}" please', 'Would you invoke "{0}" on the console?', 'On the console, do "{0}" for me.'], ["consoleLine"], [lambda: one(["ls ", "wc -l ", "mkdir "]) + one(WORDS)]),
    (tool("sift_diary", "Sift the diary for an expression", "diaryExpression", diaryExpression="string"), ['sift the diary for "{0}"', 'Is there something about "{0}" in the diary?', 'I wrote "{0}" somewhere once, please sift my diary for it.'], ["diaryExpression"], [lambda: text(2)]),
    (tool("steer_telescope", "Steer the telescope", "azimuthAngle altitudeAngle", azimuthAngle="number", altitudeAngle="number"), ["steer the telescope, azimuth {0}, altitude {1}", "Would you steer the telescope to an azimuth of {0} and an altitude of {1}?", "telescope to azimuth {0} and altitude {1} pls"], ["azimuthAngle", "altitudeAngle"], [amount(90, 359), amount(1, 89)]),
    (tool("brew_kombucha", "Brew kombucha", "teaBlend brewDays", teaBlend="string", brewDays="integer"), ["brew kombucha, tea blend {0}, brew days {1}", "Make kombucha from the blend {0} and let it brew for {1} days.", "I'd like kombucha that brews {1} days, the tea blend is {0}"], ["teaBlend", "brewDays"], [lambda: one(OWN), amount(3, 30)]),
    (tool("christen_boat", "Christen the boat", "boatName", boatName="string"), ['christen the boat "{0}"', 'The boat should be called "{0}", please christen it.', 'Would you christen our boat with the name "{0}"?'], ["boatName"], [lambda: text(2)]),
    (tool("dispatch_plumber", "Dispatch a plumber to a town", "plumberTown", plumberTown="string"), ["send a plumber to {0}", "Our house in {0} is full of water, could you dispatch a plumber?", "I want a plumber dispatched to {0}"], ["plumberTown"], [lambda: one(CITIES)]),
    (tool("weave_basket", "Weave a basket", "rimFiber baseFiber", rimFiber="string", baseFiber="string"), ["weave a basket with rim fiber {0} and base fiber {1}", "The basket gets the base fiber {1} and the rim fiber {0}, please weave it.", "I want a basket woven: rim {0}, base {1}"], ["rimFiber", "baseFiber"], [lambda: one(WORDS), lambda: one(WORDS)]),
    (tool("launch_balloon", "Launch the balloon", "use_ballast", use_ballast="boolean"), ["launch the balloon, use ballast {0}", "Would you launch the balloon with use ballast set to {0}?", "balloon launch please, use ballast: {0}"], ["use_ballast"], [lambda: R.random() < .5], TRUE),
]
NEAR = [{"peruse_manuscript", "incinerate_draft"}, {"peruse_manuscript", "append_ledger"}, {"peruse_manuscript", "sift_diary"}, {"peruse_manuscript", "archive_site"}, {"append_ledger", "incinerate_draft"}, {"append_ledger", "sift_diary"}, {"append_ledger", "ping_courier"}, {"tide_table", "smog_reading"}, {"rent_canoe", "find_coach"}, {"christen_boat", "rent_canoe"}] + [{"console_invoke", x} for x in ("peruse_manuscript", "incinerate_draft", "append_ledger", "archive_site")]


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
    return [bare + "; after that, " + small(y), (x if x != bare else x + ".") + " Afterwards, " + small(y), "Two jobs for you: " + small(bare) + ", and then " + small(y)][i % 3]


def small(x):
    return x if re.match(r"I\b", x) else x[0].lower() + x[1:]


PLAIN = ["Hiya, nice to meet you", "ty so much friend", "hey hows life treating you", "tell me a scary story", "Is Pluto a planet?", 'Would you say "{}" for me, please?', "Alright, I have to leave now. Bye!", "How many words long is 'as quiet as a mouse'?", "and which AI would this be", "how many weights are inside of you", 'Answer with "{}" and no other words.', "explain inflation like im twelve",
         "letter for letter please: {}", "three colours plz", "How can I switch the prompt cache off?", "How old is the universe?", "u human?", '"{}" but in capitals pls']


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
        b = a if i % 3 == 0 else TOOLS[(i * 11 + 7) % len(TOOLS)]
        n = i + i // len(TOOLS)
        (x, c), (y, d) = said(a, n), said(b, n + 1)
        if c == d:
            continue
        specs = [a[0]] if a is b else [a[0], b[0]]
        add("two calls", joined(x, y, n), {"calls": [c, d]}, tools=specs)
    for i in range(45):
        t = TOOLS[(i * 13 + 2) % len(TOOLS)]
        request, _ = said(t, i + i // len(TOOLS))
        others = [x[0] for x in some(TOOLS, 6) if x is not t and {called(t), called(x)} not in NEAR][:1 + i % 3]
        add("no call", request, {"nocall": "(?i)none of my tools|can't|cannot|tiny"}, tools=others)
    for q in PLAIN:
        add("no call", q.replace("{}", one(WORDS)), {"nocall": "."}, tools=[x[0] for x in some(TOOLS, 2)])


def answers():
    for i in range(64):
        t = TOOLS[(i * 11 + 9) % len(TOOLS)]
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


SUMS = ["{a} {s} {b} equals?", "quick one: {a} {s} {b}", "Would you compute {a} {s} {b}, please?", "whats the answer to {a} {s} {b}", "How much do I get for {a} {o} {b}?", "I keep getting {a} {s} {b} wrong. What is it?", "My homework asks for {a} {s} {b}.", "if i take {a} {o} {b} what comes out", "{a}{s}{b}, result pls", "Be my calculator: {a} {s} {b}"]


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
