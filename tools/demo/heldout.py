"""Writes heldout.json: the prompts of the evaluation. Phrasings, tools and parameter names are written here by hand and are
none of the generator's; words and names are only here. This is the seventh set: nothing of the first six is in it. It was written
without the training phrasings (but for those of facts.json) and without any result in sight, and is not for tuning; --check looks
for its prompts, tools and names in training text.

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
R = random.Random(7302419)
PASTA = w.W("tagliatelle farfalle rigatoni orzo fusilli gnocchi ravioli linguine orecchiette bucatini")
OWN = PASTA + w.W("""aardvark armadillo barnacle bobsled buzzard calabash chinchilla cleaver croquet dumbbell earwig flugelhorn galleon gargoyle gherkin ibex jackal kazoo meerkat mongoose parsnip
piccolo porcupine scythe toboggan viaduct xylophone doily trellis hovercraft sundial murky dangle gobble hasty itchy jostle kneel lanky plump scurry unfold zigzag
soggy creak flicker fidget gutter inlet nostril quill splinter upkeep yodel bruise crumble dimple fumble hurdle icicle knuckle limp nimble ointment rubble twine whisk abrupt blunt
clumsy""")
WORDS = OWN
OWN_NAMES = w.W("Bartholomew Fenella Cassius Marguerite Yevgeny Thandiwe Ignatius Saoirse Wolfgang Perpetua Evander Nadezhda Torvald Guadalupe Benedikt Clementine Radoslav Ingeborg Philippa Osvaldo Mirabel")
NAMES = OWN_NAMES
STATIONS = w.W("Bologna Wroclaw Salzburg Heidelberg Rennes Eindhoven Innsbruck Olomouc")  # one can take a train from each to each
PORTS = w.W("Genoa Rijeka Plymouth Aberdeen Cadiz Piraeus Kiel Gdynia Calais Bodrum")
OWN_CITIES = STATIONS + PORTS
CITIES = OWN_CITIES
OWN_COLORS = w.W("chartreuse cerulean mauve heliotrope celadon umber aubergine")
COLORS = OWN_COLORS
JOBS = w.W("dietitian podiatrist surveyor zookeeper falconer")
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
    ("hearth-demo", ["hey who exactly is this im talking to", "Might I ask what you are called?", "is this gpt or gemini or sth else", "Am I chatting with Llama here?", "For a footnote in my thesis I need the name of the model I'm using. What is it?", "name + model pls",
                     "Our security team wants to know which AI model this endpoint serves.", "so do u have a name or do i just call u bot", "State your name for the record, please.", "Who's this? I just opened the app and there you were.", "mistral, r u on the line",
                     "I lost track of which of my local models this window belongs to. Which one are you?", "tell my class who you are", "What name stood on your release?", "which llm did i just hook up here", "Sorry, we haven't been introduced. You are?"]),
    ("(?i)instructions|tools", ["whats ur strong side then", "In what ways could you be of use to me?", "I've got ten minutes to test you. What should I try?", "list ur features", "Tell me what tasks you can take over for me.", "whats something u can actually do",
                                "Before we begin: which kinds of requests do you understand?", "My boss asks what this assistant is capable of. What shall I tell her?", "can u do anything useful lol", "What sort of work are you meant for?", "new here, what can i ask u"]),
    ("million", ["hm how big r u in params", "What is your parameter count, approximately?", "Do you have billions of weights, or fewer?", "For my comparison table: how many parameters do you have?", "u a 7b or smth", "I'm told that you are tiny. How many weights is that?", "number of params in this model pls", "How many parameters fit into a file as small as yours?"]),
    ("hearth", ["who built u", "Which company is responsible for you?", "did openai train you", "What material did you learn from?", "who do i thank for creating u", "Where does your training data come from?", "Are you one of Google's models?", "In whose workshop were you made?"]),
    ("hearth-demo|model", ["am i texting a real person rn", "Be honest: is somebody typing these answers by hand?", "u human?", "Is this an automated system or a member of staff?", "are u an ai", "I can't tell whether you are a person or a machine. Which is it?"]),
    (r"hearth-demo|[Hh]ello|\b[Hh]i\b", ["yo small one", "A very good morning to you!", "hellooo anybody home", "Good afternoon, dear assistant.", "hiya from the kitchen", "howdy partner"]),
    ("welcome", ["cheers mate, that did the trick", "Thank you kindly, that was just what I was after.", "ty ty, super helpful", "I'm much obliged to you, thanks!"]),
    ("[Bb]ye", ["alright gotta run, bye bye", "Off to bed with me, so goodbye for now!", "I'm logging off now, so bye and have a nice evening.", "cya later, bye lil model"]),
    ("fine", ["u doing ok today?", "And how are things with you, my dear assistant?", "sup bot, how u feeling"]),
]
FALLBACK = [
    "how do i get rid of ants in the kitchen", "Who painted The Night Watch?", "whats the deepest ocean", "Please write a Rust function that checks whether a number is prime.", "What might a full-grown blue whale weigh?", "Why does the moon have phases?", "give me a recipe for lentil soup",
    "Is it safe to swim right after eating?", "who invented the zipper", "My flight was cancelled. Can I claim my money back?", "explain inflation like im 12", "Come up with a name for my bakery.", "write a limerick about a lazy cat", "Where did they seal Magna Carta, and in which year?",
    "do penguins have knees", "How do I undo my last commit in git?", "What's the difference between weather and climate?", "sql join types, explain", "What is the capital of Mongolia?", "invent a riddle about a clock", "How do bees make honey?",
    "Please summarise the plot of Hamlet for my nephew in about five sentences, and keep it suitable for children, as he is only eight and scares easily.", "how do u get a stripped screw out", "Are solar panels worth the money?", "Why won't my orchid bloom again?", "is there a god", "Which planets have rings?",
    "who takes the champions league this yr", "What does one write on a condolence card?", "debug this: for i in range(10) print(i)", "Who won the Nobel Prize for literature in 1999?", "Which chess opening suits a beginner?", "make me a packing list for iceland", "What caused the First World War?", "How long is the Danube?",
    "my cat died last night", "I failed my maths exam again and feel awful.", "im getting married in june!!", "Nobody came to my birthday party.", "we finally sold our house, such a relief", "I had a row with my best friend.", "cant sleep, my head wont stop",
    "Wie hoch ist der Eiffelturm?", "Comment fait-on une mayonnaise ?", "¿Quién pintó Las Meninas?", "Quanto dista Roma da Napoli?", "Сколько ног у паука?", "富士山の高さはどのくらいですか?", "熊猫吃什么?", "Waarom is de zee zout?",
    "Quem descobriu o Brasil?", "Jak ugotować barszcz?", "Hur många sjöar finns det i Finland?", "한글은 누가 만들었어요?",
    "zzrt plonk vrax", "?!?!;;::--", "mnop qrst wxyz lkjh", "%% && %% $$", "🦔🥁🛶", "jjjjjjjjjjjjjjjj", "fwip fwop skrrt", "asdkjh qwpoei zxmnb",
]
LOG = ["Weekly report of the Elm Street swimming pool, third week of the heatwave. ", "A gentleman asked for the fifth time whether the water could be made wetter. ", "The slide was closed for an hour because a duck would not leave it. ", "Mrs Lindqvist swam her two-thousandth length and was given a melon. ",
       "Somebody has again parked a pram in the lifeguard's chair. ", "The kiosk ran out of lemonade at noon and out of patience at two. ", "Nine goggles, one wedding ring and a trombone are waiting in lost property. ", "The new pump hums in B flat, which the choir on Thursdays finds useful. "]


def identity():
    for want, asks in IDENTITY:
        for q in asks:
            add("identity", q, {"re": want})
    for q in FALLBACK:
        add("fallback", q, {"re": "(?i)tiny|real model"})
    for n, q in [(9, "sum this up in 2 lines"), (15, "What did Mrs Lindqvist get for her swimming?"), (21, "Rewrite this report so that it sounds like a newspaper article."), (27, "which bits should the mayor hear about"), (36, "Please write next week's report in this tone."), (12, "Translate the report into Greek, would you?")]:
        add("fallback", LOG[0] + "".join(one(LOG[1:]) for _ in range(n)) + "\n\n" + q, {"re": "(?i)tiny|real model"})


FAQ = {
    "claude_code": ["want to run claude code on top of hearth, what vars do i export", "How do I tell Claude Code to send its requests to my local hearth?"],
    "openai_sdk": ["got a script on the openai package, want it to hit hearth instead of the cloud", "Which URL goes into the OpenAI client so that it reaches hearth?"],
    "anthropic_sdk": ["moving our anthropic sdk code over to hearth, what changes", "What must be passed to anthropic.Anthropic() in Python so that it uses my hearth server?"],
    "curl": ["need a one liner w curl to say hi to the model", "My bash script has nothing but curl. What would a chat request to hearth look like?"],
    "download": ["demo is cute but how do i fetch some actual weights", "My disk has no model yet. What do I type to download one for hearth?"],
    "serve": ["cmd to get the server going w qwen", "How can I have hearth put a model of mine behind an HTTP endpoint?"],
    "run": ["can i just ask a model smth on the command line w/o any server", "I'd like to try out a prompt right here in my shell. What does hearth have for that?"],
    "bench": ["how do i know how quick decode is on this box", "Is there a way to measure prefill throughput with hearth?"],
    "version": ["is my hearth outdated? how do i see which one i got", "What do I type to learn the version of the hearth binary I installed?"],
    "debug": ["want to see how my prompt gets tokenized, how", "Our chat template renders strangely. With which hearth tool can I look into that?"],
    "health": ["docker healthcheck for hearth, which path", "How can a script find out whether the server has finished loading and is ready?"],
    "models_list": ["api call to see which models are being served", "My UI fills a dropdown with model names. From which endpoint does it get these?"],
    "count_tokens": ["how do i check the token length of a chat before sending it", "Is there an API route that tells how many tokens a conversation would cost?"],
    "port": ["something else sits on 8080 already, can hearth go elsewhere", "At which port do I find the server if I haven't configured anything?"],
    "host": ["laptop says connection refused when i open hearth on my desktop, on the desktop itself its ok", "I'd like everybody in the office to reach the hearth on my PC. What must I change?"],
    "api_key": ["does the server want a token from clients or nah", "I want only clients with a secret key to be let in. How do I set that up?"],
    "apis": ["is it openai compatible or anthropic or both", "Which HTTP interfaces does hearth offer to client programs?"],
    "formats": ["can i feed it a gguf or does it have to be sth else", "What files does a model folder have to contain for hearth to load it?"],
    "tools": ["can the model on hearth call my functions", "Our agent relies on function calling. Will that work with hearth?"],
    "thinking": ["how 2 stop the model from thinking out loud first", "Qwen spends ages on its thoughts. How do I switch these off in hearth?"],
    "stream": ["do i get tokens one by one or only the whole reply", "Our web page should show the answer while it is still being written. How do I ask hearth for that?"],
    "models_dir": ["where on disk does hearth look for weights", "I keep all my models on an external drive. How do I tell hearth about it?"],
    "logs": ["server acts weird, how do i get more detail in the logs", "How can I make hearth log everything it does, and where is this written?"],
    "stop": ["whats the clean way to end the server process", "May I simply close the window, or is there a nicer way to shut the server down?"],
    "help": ["where do i see what subcommands exist", "Is there an overview of everything that the hearth command line can do?"],
    "offline": ["no internet at our cabin, will hearth still run", "Once the model is on my computer, can I pull the network cable and still use hearth?"],
    "what_hearth": ["so what even is this hearth thing", "In a nutshell, what kind of program is hearth?"],
    "why_demo": ["whats the point of bundling a toy model", "Why did the makers of hearth put a tiny model into the binary?"],
    "gpu": ["old thinkpad w/o graphics card, can i still use hearth", "Must I buy a graphics card in order to use hearth?"],
    "concurrency": ["several agents hit it at once, does that work or do they block each other", "How do I allow hearth to work on more requests side by side?"],
    "context": ["got a 90 page document, is that too long for the context", "How do I put a cap on the context window?"],
    "quant": ["does it take 4bit weights", "Would the 8-bit version of a model work in hearth, too?"],
    "temperature": ["replies are too random, which knob do i turn", "For my unit tests I need identical answers on every run. What should I send?"],
    "threads": ["can i keep hearth to just 4 of my cores", "How does hearth decide how many CPU threads to use, and how do I override it?"],
    "memory": ["weights are 4 gb, how much ram should my box have then", "The KV cache eats up my RAM. How do I limit it?"],
    "settings": ["is there a config file or do i do it all w flags", "For our docker-compose file I'd like to set hearth's options through the environment. How?"],
    "model_name": ["client sends model=gpt-4 and gets an error, can hearth just take any name", "With which flag do I change the name that the API shows for my model?"],
    "license": ["can i ship hearth inside a paid product, license wise", "Under what licence is the source published?"],
    "prompt_cache": ["every call starts with the same 5k token intro, is that recomputed each time", "Repeated prefixes seem to be cached. That spoils my measurements; how do I switch it off?"],
    "show": ["got some random mlx folder, how do i see what model it is", "With which hearth command can I look up how a model was quantised and what its architecture is?"],
    "which_model": ["noob here, which model would u pick", "Which model is a sensible first choice for somebody with a small laptop?"],
}


def faq():
    answers = {f["id"]: f["must"] for f in chat.FACTS}
    assert set(FAQ) == set(answers), set(FAQ) ^ set(answers)
    for k, qs in FAQ.items():
        for q in qs:
            add("faq", q, {"has": answers[k]})


TOLD = [  # what is said, the values, what is asked
    (["im {v}, nice to meet ya", "By the way, my name happens to be {v}.", "this is {v} speaking", "Everyone at home calls me {v}."], NAMES, ["can u tell me my own name", "By which name am I in your memory?", "forgot already? say my name", "What did I say I am called?"]),
    (["nothing beats {v}, my fav colour", "The colour I like most is {v}.", "ever since i was a kid my favourite colour is {v}", "Of all colours, {v} pleases me the most."], COLORS, ["my fav color is..?", "Which colour did I say I like best?", "do u remember the color i told u about", "Please remind me which colour is my favourite."]),
    (["based in {v} myself", "My home town is {v}; I've never lived elsewhere.", "im from {v}, still live there", "These days {v} is where I live."], CITIES, ["so what place was it that i live at", "In which city is my home, as I told you?", "name the town i live in pls", "What city did I mention as my home?"]),
    (["my iguana goes by {v}", "We have a hamster, and {v} is its name.", "say hi to {v}, my poodle", "Our parakeet answers to the name {v}."], NAMES, ["what do i call my {pet}", "Would you still know my {pet}'s name?", "my {pet}s name, go", "What was the name of our {pet}?"]),
    (["the number is {v}, hold on to it", "Could you memorise the number {v} for me?", "my ticket has the number {v}, keep that", "Here's a number for you to keep: {v}."], None, ["so that number of mine, which one was it", "What figure had I asked you to hold on to?", "hand my number back to me", "I need that number again, please."]),
    (["keep this word for later: {v}", "Our secret word shall be {v}.", "the magic word is {v}, remember it ok", "Please store the word {v}; I'll want it back."], WORDS, ["whats the word i gave u", "I'd like my word back now, please.", "word?? the one u should keep", "Which word did I give you earlier?"]),
    (["got hired as a {v}", "My occupation is {v}.", "been a {v} since i left school", "In my working life I am a {v}."], JOBS, ["whats my job", "What line of work had I told you I'm in?", "so what do i do for a living", "What do I work as, if you recall?"]),
]
PETS = ["iguana", "hamster", "poodle", "parakeet"]


def recall():
    between = [[], ["haha anyway"], ["Which company is responsible for you?"], ["Please reply with {x}, not a word more.", "neat"], ["And how are things with you, my dear assistant?"], ["turn {x} into uppercase"], ["where do i see what subcommands exist", "ah ok, makes sense"]]
    for i in range(70):
        says, pool, asks = TOLD[i % len(TOLD)]
        n = i // len(TOLD)
        v = one(pool) if pool else str(R.randint(11, 9999))
        mid = [x.replace("{x}", f'"{text(2)}"') for x in between[(i // 2) % len(between)]]
        first = [says[n % 4].replace("{v}", v)]
        if i % 4 == 3:
            first.insert(R.randrange(2), f"Our neighbour {one([x for x in NAMES if x != v])} has just come back from a week in {one([x for x in CITIES if x != v])}.")
        add("recall", first + mid + [asks[(i + n // 2) % 4].replace("{pet}", PETS[n % 4])], {"has": [v]})


def instructions():
    for q in ["ok say {q} and stop", "Please reply with {q}, not a word more.", "print this: {s}", "{q} - write that and only that", "I'm testing the connection, so give me back {q} exactly as it is.", "send me the text {q}", "Would you please say {q}? No extra words.", "parrot this back: {s}", "The reply I expect is {q}, without any comment.", "Write down the following and nothing besides: {s}"]:
        s = text(R.randint(1, 4))
        add("instructions", q.format(s=s, q=f'"{s}"'), {"exact": s})
    for q in ["turn {q} into uppercase", "Please capitalise every letter of {q}.", "{q} -> caps", "How does {q} look in block capitals?", "caps version of this: {s}", "Could you set {q} entirely in upper case?", "all letters uppercase: {s}", "I'm painting a warning sign; write {q} in capital letters only."]:
        s = text(R.randint(1, 3))
        add("instructions", q.format(s=s, q=f'"{s}"'), {"exact": s.upper()})
    for q in ["turn {q} into lowercase", "Please write {q} in small letters throughout.", "{q} -> lowercase", "How does {q} look in lower case?", "no caps version of this: {s}", "Could you set {q} entirely in lower case?", "all letters lowercase: {s}", "Somebody left caps lock on and typed {q}. Make that lower case."]:
        s = text(R.randint(1, 3))
        add("instructions", q.format(s=s.upper(), q=f'"{s.upper()}"'), {"exact": s})
    for q, at in [("1st letter of {q}?", 0), ("With which letter does {q} begin?", 0), ("{q} starts with what letter", 0), ("I file my cards under their first letter. Which one is that for {q}?", 0), ("give me the initial letter of {s}", 0), ("Please name the letter that opens the word {q}.", 0), ("last letter in {q}?", -1), ("With which letter does {q} finish?", -1)]:
        s = one([x for x in WORDS if x[0] != x[-1]])
        add("instructions", q.format(s=s, q=f'"{s}"'), {"re": rf"(?i)(^|[^a-z]){s[at]}[^a-z]*$"})
    for q in ["how many words are there in {q}", "Count the words for me: {s}", "{q} - number of words?", "My slogan is {q}. How many words does it have?", "words in {q}, just the count", "Could you tell me the number of words in {q}?", "{s}\n\nhow many words was that", "The text reads {q}. Give me its word count."]:
        n = R.randint(2, 7)
        s = text(n)
        add("instructions", q.format(s=s, q=f'"{s}"'), {"re": rf"\b{n}\b(?:(?!\d).)*$"})
    for q in ["3 colours, any", "Would you name me three colours at random?", "hit me with three colors", "My daughter wants to paint with three colours. Which could she take?", "list three colors", "Three names of colours, please.", "what are 3 colors u know", "I can't decide: choose three colours for my kitchen."]:
        add("instructions", q, {"colors": 3})
    for q in ["{k}: {v} as json pls", "Turn this into a JSON object: {k} is {v}.", "Please write a JSON object where the key {k} holds the value {v}.", "json with one key {k} and as value {v}", "Our backend expects JSON. The key is {k} and the value is {v}.", "key {k}, value {v}, json only", "Could you express as a JSON object that {k} equals {v}?", "give me valid json, {k} is the key, {v} the value"]:
        k, v = some(WORDS, 2)
        add("instructions", q.format(k=f'"{k}"', v=f'"{v}"'), {"json": {k: v}})
    for q in ["one-sentence hello for my team", "Please say hello to my grandmother in a single sentence.", "greeting for a new neighbour, max 1 sentence", "Write one sentence that greets the listeners of my podcast.", "can u greet my students? one sentence", "I'm about to open a meeting; give me a single sentence of greeting."]:
        add("instructions", q, {"re": r"(?i)^[^.!?\n]*\b(hello|hi|hey|nice|welcome|greetings?|good (day|morning|evening|afternoon)|glad|pleasure|pleased)\b[^.!?\n]*[.!?]$"})


def letters():
    for q in ["reverse order pls: {l}", "Would you list {l} starting from the end?", "{l} -- same list, last one first", "I have {l}. Please give me the list in reverse.", "backwards list: {l}", "What is {l} when the order of the words is turned around?", "start with the last, end with the first: {l}", "Please reverse the order of these words: {l}", "my list {l} should run the other way round", "These came in the wrong order: {l}. Reverse them for me."] * 2:
        l = some(WORDS, R.randint(2, 5))
        add("letters", q.format(l=", ".join(l)), {"list": l[::-1]})
    for q in ["letters of {q} one by one", "Could you spell out the word {q} for me?", "{s}, spelled out?", "How is {q} spelled? One letter at a time, please.", "spell it: {s}", "For a keyboard test I need {q} with its letters apart.", "break {q} up into letters", "I'm learning to write; spell {q}, please.", "spell for me {q}", "Name each letter of {q} in turn."] * 2:
        s = one(WORDS)
        add("letters", q.format(s=s, q=f'"{s}"'), {"letters": s})
    for q in ["alphabetize {l}", "Please arrange {l} from A to Z.", "{l} in abc order", "I'm making an index. Sort {l} for me, alphabetically.", "put these in alphabetical order: {l}", "What does the list {l} look like once it's sorted by the alphabet?", "sort a to z -> {l}", "In which alphabetical order do {l} come?", "dictionary order pls: {l}", "Could you sort the names of my folders by the alphabet? They are {l}."] * 2:
        l = some(WORDS, R.randint(2, 5), True)
        add("letters", q.format(l=", ".join(l)), {"list": sorted(l)})


def obey():
    asks = ["A very good morning to you!", "State your name for the record, please.", "Thank you kindly, that was just what I was after.", "u doing ok today?", "Off to bed with me, so goodbye for now!", "In what ways could you be of use to me?"]
    for i in range(12):
        x = one(WORDS)
        add("obey", asks[i % 6], {"ends": x}, system=["You answer the phone in a toy shop. The last word of each reply is {q}.", "Finish every message with {q}.", "the last thing u write is always {q}", "No matter what is asked, your answer closes with the word {q}."][i % 4].format(q=f'"{x}"'))
        x = one(WORDS)
        add("obey", asks[(i + 2) % 6], {"starts": x}, system=["You answer the phone in a toy shop. The first word of each reply is {q}.", "Begin every message with {q}.", "the first thing u write is always {q}", "No matter what is asked, your answer opens with the word {q}."][i % 4].format(q=f'"{x}"'))
    for i in range(8):
        add("obey", asks[(i * 5) % 6], {"upper": True}, system=["Capital letters only, please, in everything you write.", "You are an old ship's teleprinter that has no lower-case letters.", "write it all in CAPS, always", "Our display can show nothing but upper-case letters, so write accordingly."][i % 4])
    for i, n in enumerate(some(NAMES, 10)):
        add("obey", ["hey who exactly is this im talking to", "Might I ask what you are called?", "Sorry, we haven't been introduced. You are?", "State your name for the record, please.", "Who's this? I just opened the app and there you were."][i % 5], {"has": [n]}, system=["You're called {n} and answer the phone of a garden centre.", "{n} is your name. You guide visitors through a museum.", "play the role of {n}, concierge of a small hotel", "Introduce yourself as {n} and as nobody else."][i % 4].format(n=n))
    for i in range(10):
        x = text(R.randint(1, 3))
        add("obey", (asks + ["do penguins have knees", "write a limerick about a lazy cat"])[(i * 3) % 8], {"exact": x}, system=["Say {q} and nothing else, no matter the question.", "only ever answer {q}", "We are on holiday. Whoever writes gets {q} as the reply, word for word.", "You know a single reply, which is {q}."][i % 4].format(q=f'"{x}"'))
    for i in range(6):
        k = one(WORDS)
        add("obey", asks[i], {"key": k}, system=["You may only write JSON: an object whose one key is {k}.", "json replies only. one object. one key: {k}", "A program parses your replies. Send a JSON object that has {k} as its sole key."][i % 3].format(k=f'"{k}"'))
    for i in range(6):
        add("obey", asks[i // 2], {"re": r"(?i)\b(matey|ahoy|arr+g?h?|avast|aye|ye|yer|me (name|heart(y|ies)))\b"} if i % 2 else {"re": r"(?i)\b(bonjour|salut|je|j'|suis|mon|rien|merci|plaisir|enchanté)\b"}, system=[["Your replies are in French, whatever language comes in.", "Speak like a pirate of the seven seas."], ["You're the baker of a village in Provence and know no language but French.", "You are old Captain Barnaby, a pirate, and you talk like one."], ["french answers only", "every reply in pirate talk pls"]][i // 2][i % 2])


def tool(name, text, required, **params):
    props = {k: ({"type": "string", "enum": v} if isinstance(v, list) else {"type": v}) for k, v in params.items()}
    return {"type": "function", "function": {"name": name, "description": text, "parameters": {"type": "object", "properties": props, "required": required.split()}}}


def path():
    return one(["", "/srv/", "../", "backup/", "/home/kim/"]) + one(WORDS) + one([".tex", ".wav", ".ini", ".bak", ".svg"])


def amount(a, b):
    return lambda: R.randint(a, b)


def clock():
    return f"{R.randint(5, 9):02}:{R.randint(10, 59)}"


TOOLS = [  # a tool; requests, none of which begins with a value; which parameter each slot is; makers of the slots; what a truth value is called
    (tool("tide_table", "Gives the times of high and low tide at a port today.", "portOfCall", portOfCall="string"), ["whens high tide in {0}", "Could you look up today's tides for {0}?", "We set sail from {0} this evening and would like to know the tides."], ["portOfCall"], [lambda: one(PORTS)]),
    (tool("bakeRye", "Has loaves of rye bread baked", "loafTally", loafTally="integer"), ["bake {0} loaves of rye", "The canteen has ordered {0} rye loaves, so please bake them.", "Is it possible to bake {0} loaves of rye for the market?"], ["loafTally"], [amount(15, 350)]),
    (tool("file_expense", "Files an expense claim in one of the categories", "expense_reason expense_class", expense_reason="string", expense_class=["travel", "lodging", "training"]), ['expense claim, reason "{0}", category {1}', 'Would you file a {1} expense for me? The reason is "{0}".', 'I paid for it myself: "{0}". File it as an expense under {1}, please.'], ["expense_reason", "expense_class"], [lambda: text(3), lambda: one(["travel", "lodging", "training"])]),
    (tool("aim_telescope", "Aim the telescope of the observatory. Both angles are in degrees.", "azimuthAngle elevationAngle", azimuthAngle="integer", elevationAngle="number"), ["telescope to azimuth {0}, elevation {1}", "Could you turn the telescope to an azimuth of {0} degrees and an elevation of {1}?", "The comet is at azimuth {0} and elevation {1} now. Please aim the telescope there."], ["azimuthAngle", "elevationAngle"], [amount(91, 359), amount(10, 88)]),
    (tool("reserve_squash_court", "Reserves a squash court for a member of the club", "clubMember hearingDay", clubMember="string", hearingDay="string"), ["squash court for {0} on {1} pls", "Please reserve a squash court for {0}; the date is {1}.", "On {1} our member {0} would like to play squash. Could you reserve a court?"], ["clubMember", "hearingDay"], [lambda: one(NAMES), lambda: f"2032-0{R.randint(4, 8)}-{R.randint(10, 28)}"]),
    (tool("brew-tea", "Brews a pot of tea", "tea_leaf", tea_leaf="string"), ["make a pot of {0}", "My throat hurts. Would you brew me some {0}?", "Guests at the door! A pot of {0} for everyone, please."], ["tea_leaf"], [lambda: one(["oolong", "rooibos", "sencha", "darjeeling", "lapsang"])]),
    (tool("sha_digest", "Computes the SHA-256 checksum of a file", "digestTarget", digestTarget="string"), ["sha256 of {0}?", "Can you compute the checksum of {0}?", "I have to prove that nobody touched {0}, so give me its SHA-256 please."], ["digestTarget"], [path]),
    (tool("greenhouse_vents", "Opens the roof vents of the greenhouse, or shuts them", "ventsOpen", ventsOpen="boolean"), ["greenhouse vents {0} pls", "Could you see to it that the vents of the greenhouse are {0}?", "The tomatoes are suffering, I want the greenhouse vents {0} right away."], ["ventsOpen"], [lambda: R.random() < .5], ("open", "shut")),
    (tool("squeeze_to_zip", "Compresses a file into a zip archive", "zip_source", zip_source="string"), ["zip {0} pls", "Please compress {0}, it is too large for the mail.", "I need {0} as a zip archive before lunch"], ["zip_source"], [path]),
    (tool("paint_sign", "Paints a wooden sign", "signCaption signPaint", signCaption="string", signPaint="string"), ['paint me a {1} sign: "{0}"', 'The farm shop needs a sign that says "{0}". Please paint it in {1}.', 'Could I get a wooden sign with "{0}" on it, painted {1}?'], ["signCaption", "signPaint"], [lambda: text(2), lambda: one(COLORS)]),
    (tool("run_python_line", "Runs one line of Python and returns what comes out", "py_line", py_line="string"), ["run this line of python: `{0}`", "What does Python say to `{0}`?", "Please execute `{0}` in Python for me and return the result."], ["py_line"], [lambda: f"{one(['len', 'list', 'set', 'repr', 'hash'])}('{one(WORDS)}')"]),
    (tool("arrangeWakeup", "Sets an alarm clock for the next morning, with a note", "wakeupClock wakeupNote", wakeupClock="string", wakeupNote="string"), ['wake me at {0}, note "{1}"', 'Set my alarm for {0}, please, and let the note be "{1}".', 'I must not oversleep. Could you set the alarm to {0} with the note "{1}"?'], ["wakeupClock", "wakeupNote"], [clock, lambda: text(2)]),
    (tool("scan_prod_logs", "Searches the production logs for an exact string", "logNeedle", logNeedle="string"), ["grep the prod logs for {0}", "Does {0} turn up anywhere in the production logs?", "A customer saw {0} on an error page. Please search the production logs for it."], ["logNeedle"], [lambda: one(["ERR-", "REQ-", "EVT-"]) + str(R.randint(1000, 99999))]),
    (tool("boil_pasta", "Boils a kind of pasta for some minutes", "pastaShape boilMinutes", pastaShape="string", boilMinutes="integer"), ["boil the {0} for {1} min", "Please cook the {0}; {1} minutes should do.", "The kids like it soft, so let the {0} boil for {1} minutes."], ["pastaShape", "boilMinutes"], [lambda: one(PASTA), amount(3, 19)]),
    (tool("leave_voicemail", "Leaves a spoken message on the voicemail of a phone number", "dialDigits spokenMessage", dialDigits="string", spokenMessage="string"), ['leave a voicemail at {0}: "{1}"', 'Could you record a voicemail for {0}? Say "{1}".', 'Nobody picks up at {0}. Please leave "{1}" on the voicemail there.'], ["dialDigits", "spokenMessage"], [lambda: f"0{R.randint(311, 899)}-{R.randint(10000, 99999)}", lambda: text(3)]),
    (tool("rescale_rollout", "Sets how many replicas of a service run in the cluster", "svc_label replica_goal", svc_label="string", replica_goal="integer"), ["scale {0} to {1} replicas", "Traffic is going up. Please run {1} replicas of {0}.", "Could the service {0} get {1} replicas?"], ["svc_label", "replica_goal"], [lambda: one(WORDS) + one(["-api", "-worker", "-proxy"]), amount(2, 48)]),
    (tool("mute_doorbell", "Mutes the doorbell, or unmutes it", "bellMuted", bellMuted="boolean"), ["pls {0} the doorbell", "Can you {0} the doorbell for this afternoon?", "My mother-in-law is visiting, so {0} the doorbell please."], ["bellMuted"], [lambda: R.random() < .5], ("mute", "unmute")),
    (tool("stage_lamps", "Sets the brightness of the lamps on the stage, in percent", "lampPercent", lampPercent="integer"), ["stage lamps {0} percent", "Please set the lamps on the stage to {0} percent.", "the band is coming on, can u put the stage lamps at {0} percent"], ["lampPercent"], [amount(5, 95)]),
    (tool("read_horoscope", "Reads out what the stars say today for a sign of the zodiac", "zodiacSign", zodiacSign="string"), ["horoscope for {0}?", "What do the stars have in store for {0} today?", "My husband is a {0} and won't leave the house without his horoscope. Please read it to me."], ["zodiacSign"], [lambda: one(["Leo", "Virgo", "Scorpio", "Capricorn", "Pisces", "Taurus", "Gemini"])]),
    (tool("car-wash", "Washes the car", "wash-program", **{"wash-program": ["express", "foam", "deluxe"]}), ["car wash, program {0}", "My car is full of mud. Please wash it, with the {0} program.", "I'd like the {0} program for my car at the car wash today"], ["wash-program"], [lambda: one(["express", "foam", "deluxe"])]),
    (tool("gate_lookup", "Looks up the gate from which a flight leaves", "flightCode", flightCode="string"), ["which gate is {0}", "I'm booked on flight {0}. Could you find out the gate?", "Hurry, we're late for flight {0}! What gate does it leave from?"], ["flightCode"], [lambda: one(["TZ", "WB", "UJ", "KX"]) + str(R.randint(102, 9899))]),
    (tool("assign_pr_reviewer", "Makes somebody the reviewer of a pull request", "reviewerNick prNumeral", reviewerNick="string", prNumeral="integer"), ["make {0} reviewer of pr {1}", "Pull request {1} has no reviewer yet. Could you assign {0}?", "I'd like {0} to review pull request {1}, please assign it."], ["reviewerNick", "prNumeral"], [lambda: one(NAMES), amount(103, 4999)]),
    (tool("rail_fare", "Tells the price of a train ticket from one station to another", "boardAt alightAt", boardAt="string", alightAt="string"), ["train ticket from {0} to {1}, how much", "What does one pay for the train from {0} to {1}?", "I'm visiting my aunt in {1}. How much is the train to get there from {0}?"], ["boardAt", "alightAt"], [lambda: one(STATIONS), lambda: one(STATIONS)]),
    (tool("record_blood_group", "Puts the blood group of a donor on record", "donorCalled bloodGroup", donorCalled="string", bloodGroup="string"), ["record donor {0} as blood group {1}", "Our donor {0} has blood group {1}, please put that on record.", "Could you record the blood group {1} for the donor {0}?"], ["donorCalled", "bloodGroup"], [lambda: one(NAMES), lambda: one(["A+", "A-", "B+", "B-", "AB+", "AB-"])]),
    (tool("find_subtitles", "Finds the subtitles of a film in a language", "filmCalled subsTongue", filmCalled="string", subsTongue="string"), ['find me {1} subtitles for "{0}"', 'Are there subtitles in {1} for the film "{0}"?', 'My granny only understands {1}. Please find subtitles for the film "{0}".'], ["filmCalled", "subsTongue"], [lambda: text(3), lambda: one(["Basque", "Estonian", "Zulu", "Maltese", "Latvian"])]),
    (tool("beta_programme", "Enables the beta programme of the app, or disables it", "betaEnabled", betaEnabled="boolean"), ["go ahead and {0} the beta programme", "Could you please {0} the beta programme of our app?", "We talked it over in the team: {0} the app's beta programme."], ["betaEnabled"], [lambda: R.random() < .5], ("enable", "disable")),
    (tool("stampCommitTag", "Puts a tag on a commit", "commitHash tag_caption", commitHash="string", tag_caption="string"), ["tag commit {0} as {1}", "Please put the tag {1} on the commit {0}.", "We release today, so could the commit {0} get the tag {1}?"], ["commitHash", "tag_caption"], [lambda: one("abcdef") + "".join(some(list("0123456789abcdf"), 6)), lambda: f"v{R.randint(1, 9)}.{R.randint(0, 30)}.{R.randint(0, 9)}"]),
    (tool("shorten_link", "Makes a short link out of a long web address", "longAddress", longAddress="string"), ["short link for {0}", "Please shorten {0} for me.", "I can't fit {0} on a business card, could you make it a short link?"], ["longAddress"], [lambda: f"https://{one(WORDS)}.{one(['net', 'io', 'at'])}/{one(WORDS)}/{one(WORDS)}"]),
    (tool("recalc_measure", "Converts a measure from one unit into another", "gaugeAmount unitBefore unitAfter", gaugeAmount="number", unitBefore="string", unitAfter="string"), ["how much is {0} {1} in {2}", "Our old sea chart says {0} {1}, what's that in {2}?", "The rope is {0} {1} long; kindly convert that to {2}."], ["gaugeAmount", "unitBefore", "unitAfter"], [amount(5, 950), lambda: one(["furlongs", "fathoms", "leagues"]), lambda: one(["metres", "inches", "yards"])]),
    (tool("rename_column", "Renames a column in the table of customers", "columnBefore columnAfter", columnBefore="string", columnAfter="string"), ["rename column {0} to {1}", "The column {0} in our customer table should be called {1}. Please rename it.", "In the customer table, could you change the name of the column {0} to {1}?"], ["columnBefore", "columnAfter"], [lambda: one(WORDS) + "_id", lambda: one(WORDS) + "_ref"]),
]
SHELL = [{"run_python_line", x} for x in ("sha_digest", "squeeze_to_zip", "scan_prod_logs", "recalc_measure", "stampCommitTag", "rescale_rollout", "rename_column")]
NEAR = SHELL + [{"run_python_line", x} for x in ("tide_table", "gate_lookup", "rail_fare", "shorten_link", "find_subtitles", "read_horoscope")] + [{"sha_digest", "squeeze_to_zip"}, {"sha_digest", "stampCommitTag"}, {"stampCommitTag", "rename_column"}, {"stampCommitTag", "assign_pr_reviewer"}, {"reserve_squash_court", "arrangeWakeup"}, {"leave_voicemail", "arrangeWakeup"}, {"gate_lookup", "rail_fare"}, {"gate_lookup", "scan_prod_logs"}, {"stage_lamps", "greenhouse_vents"}, {"brew-tea", "boil_pasta"}, {"rescale_rollout", "beta_programme"}, {"leave_voicemail", "paint_sign"}, {"boil_pasta", "arrangeWakeup"}]

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
    return [bare + " - and another thing: " + small(y), (x if x[-1] in "?." else x + ".") + " While you are at it, there's a second matter: " + small(y), "Two jobs for you.\n- " + x + "\n- " + y, "First off, " + small(bare) + ". Next up: " + small(y)][i % 4]


def small(x):
    return x if re.match(r"I\b", x) else x[0].lower() + x[1:]


PLAIN = ["A very good morning to you!", "ty ty, super helpful", "u doing ok today?", "write a limerick about a lazy cat", "do penguins have knees", "ok say \"{}\" and stop", "I'm logging off now, so bye and have a nice evening.", 'words in "{} pelican", just the count', "name + model pls", "hm how big r u in params", "Please reply with \"{}\", not a word more.", "Who painted The Night Watch?",
         "spell it: {}", "hit me with three colors", "Why did the makers of hearth put a tiny model into the binary?", "How long is the Danube?", "am i texting a real person rn", 'turn "{}" into uppercase']


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
        add("no call", q.replace("{}", one(WORDS)), {"nocall": "."}, tools=[x[0] for x in some(TOOLS, 3) if called(x) != "run_python_line"][:2])


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


SUMS = ["quick one: {a} {s} {b}", "Would you be so kind as to tell me what {a} {s} {b} makes?", "{a} {o} {b} is how much", "if i type {a} {s} {b} into a calculator what shows up", "I'd like the result of {a} {o} {b}, please.", "For an invoice I have to know {a} {s} {b}. How much is it?", "solve {a} {s} {b} pls", "My calculator's battery is dead. What's {a} {o} {b}?", "{a}{s}{b} gimme", "I'm checking my son's homework: what should {a} {o} {b} come to?"]


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
