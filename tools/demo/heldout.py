"""Writes heldout.json: the prompts of the evaluation. Phrasings, tools and parameter names are written here by hand and are
none of the generator's; words and names are only here. This is the eighth set: nothing of the first seven is in it. It was written
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
R = random.Random(86150314)
HERBS = w.W("tarragon marjoram chervil lovage borage hyssop coriander fenugreek lemongrass wasabi")
OWN = HERBS + w.W("""astrolabe balustrade bellows birdbath blubber brisket bungalow caboose camisole cartwheel cutlass clamber coddle corduroy dawdle dovetail dustpan eyelash elderberry festoon
flannel fritter garnish gaunt gusset hatchet hayloft hacksaw huddle inkblot jackdaw jiffy jamboree kerchief kettledrum lampshade leeway linoleum lopsided maypole mothball mudguard
nectarine nozzle nuzzle oarlock omelette oilcloth pancreas pinafore puddle pontoon quibble quicksand ramshackle raspy rhubarb sawdust scabbard shrivel skillet slither sprocket squelch
tarpaulin tinsel thatch turnip umbrage unravel velveteen vermin wheelbarrow wrangle yarrow yelp zinnia zipline""")
WORDS = OWN
OWN_NAMES = w.W("Anselm Hildegard Cornelius Ottoline Mordecai Xiomara Zbigniew Gwendolyn Eustace Vasilisa Tatsuya Wilhelmina Kazimir Rosalba Sigismund Leocadia Fergus Babajide Ximena Aurelio Winifred")
NAMES = OWN_NAMES
QUAYS = w.W("Ancona Patras Trieste Dubrovnik Bari Brindisi Corfu Zadar")  # one can take a ferry from each to each
INLAND = w.W("Debrecen Poznan Ostrava Tampere Uppsala Zaragoza Toulouse Leuven Bergamo Utrecht")
OWN_CITIES = QUAYS + INLAND
CITIES = OWN_CITIES
OWN_COLORS = w.W("vermilion periwinkle ochre taupe cinnabar viridian fuchsia")
COLORS = OWN_COLORS
JOBS = w.W("glazier taxidermist cartographer bookbinder stonemason")
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
    ("hearth-demo", ["quick q, what model is behind this chat", "Pardon me, I didn't catch your name.", "wait is this chatgpt or smth different", "I've wired up an endpoint and want to be sure that the right model replies. Which model are you?", "sry whats ur name again", "Under what name should I list you in our inventory of AI systems?",
                     "am i connected to claude or to something local, what model r u", "What do your makers call you?", "The label on this window only says \"assistant\". What's your actual name?", "is it deepseek im typing to", "Please introduce yourself to the audience.",
                     "hello mister bot do u have a name", "Which model name would stand under a reply of yours?", "My colleague bets that you're Qwen and I say you aren't. What are you?", "who dis in my terminal lol", "identify yourself, model"]),
    ("(?i)instructions|tools", ["so what r u actually able to do for me", "Where do your talents lie?", "give me an idea of what i could type here", "I've never used a chat model before. What may I ask of you?", "ur skills in short?",
                                "For which jobs would you say you are suited?", "whats ur speciality lil bot", "I'm writing a page about you for our wiki. What are your abilities?", "What are you good at? Please be frank.", "anything u can help with or are u just decoration", "Could you outline the sort of tasks you handle?"]),
    ("million", ["how tiny are you exactly, in weights", "Somebody called you a small model. What's your size?", "param count pls, for a spreadsheet", "Are we talking about thousands, millions or billions of parameters in your case?", "how big is ur brain in parameters lol", "Of how many parameters do you consist?", "u feel small.. whats the model size", "My phone runs a 3B model. How large are you next to that?"]),
    ("hearth", ["whose product am i typing to here", "did anthropic make u or who", "On which texts were you trained?", "Who should be credited as your author?", "ur training data was what exactly", "I'd like to know who stands behind this model.", "meta or microsoft, who owns u", "Who taught you to talk?"]),
    ("hearth-demo|model", ["r u a guy or a program", "Before I tell you anything private: is a person reading this?", "is there a human on the other end", "You sound rather mechanical. Are you a robot?", "be real, bot or not", "Does a living being answer me here, or is it software?"]),
    (r"hearth-demo|[Hh]ello|\b[Hh]i\b", ["heyooo bot", "Good evening to you, little model.", "mornin, just booted u up", "Greetings from a rainy harbour!", "hi there whoever u are", "Oh hello, nice to see you running."]),
    ("welcome", ["thx a bunch, works now", "That answers it perfectly, many thanks.", "u saved my day thank u", "How kind of you, thanks for the help!"]),
    ("[Bb]ye", ["ok thats all from me, goodbye", "My train is arriving, so I must say goodbye.", "gn bot, byeee", "Until tomorrow then, bye!"]),
    ("fine", ["hows life treating u", "I hope you are well today? How do you feel?", "everything good on ur side?"]),
]
FALLBACK = [
    "whats a good substitute for eggs in a cake", "Who composed the Moonlight Sonata?", "how tall is kilimanjaro", "Could you write a Python script that renames all my photos?", "How many legs does a lobster have?", "Why do leaves turn red in autumn?", "best way to descale a kettle",
    "Do I need a visa for a trip to Japan?", "who was the first woman in space", "My landlord won't give back my deposit. What are my rights?", "explain recursion to me like im a toddler", "Think up a title for my novel about a lighthouse keeper.", "compose a haiku on the first frost", "When was the Suez Canal opened, and who planned it?",
    "can cats eat cheese", "how 2 revert a git merge", "What distinguishes a virus from a bacterium?", "regex for an email adress?", "What is the currency of Vietnam?", "got any good dad jokes", "How does a refrigerator get cold?",
    "Please draft a letter to my insurance company about a broken window, polite yet firm, in which I ask for an answer within two weeks and mention that this is my second letter.", "how do i stop my dog barking at the postman", "Is it worthwhile to learn Esperanto?", "My bread never rises. What am I doing wrong?", "whats the meaning of life", "Name the moons of Mars.",
    "who will win the next election", "What should one wear to a job interview at a bank?", "fix this css: div { colour red }", "Who directed Casablanca?", "Which stretches help against back pain?", "plan a weekend in lisbon for me", "Why did the Roman Empire fall?", "How far away is the nearest star?",
    "my grandpa passed away on sunday", "I got the job! I can hardly believe it.", "my bf dumped me by text", "I feel so lonely since I moved here.", "our baby was born this morning!!", "I'm terribly nervous about my driving test.", "everything is just too much rn",
    "Wie kocht man Spätzle?", "Qui a écrit Les Misérables ?", "¿Cuántos habitantes tiene Chile?", "Chi ha scolpito il David?", "Как далеко до Луны?", "京都の名物は何ですか?", "长城有多长?", "Hoe laat gaat de zon onder in december?",
    "Como se faz pão de queijo?", "Dlaczego koty mruczą?", "Vad äter en igelkott?", "고양이는 왜 야옹하나요?",
    "blorp snazz tqwik", ";;--//??..", "vbnm ghjk tyui dfgh", "@@ ~~ @@ ~~", "🪁🧦🪵🐌", "ooooooooooooooooo", "grunk splod wizzit", "lkjdf pqowie mznxb",
]
LOG = ["Minutes of the Quarry Road allotment society, which met in the shed owing to rain. ", "The treasurer reported that the biscuit fund is larger than the rent fund. ", "Plot nine has again been taken over by pumpkins, whose owner denies everything. ", "Mr Okonkwo showed a marrow of eleven kilos and received a silver fork. ",
       "The scarecrow has been stolen, returned, and stolen a second time. ", "A motion to ban whistling before eight was defeated by one whistle. ", "The water butt leaks, and nobody would say who had kicked it. ", "Mrs Tremblay asked that her bees be thanked by name. "]


def identity():
    for want, asks in IDENTITY:
        for q in asks:
            add("identity", q, {"re": want})
    for q in FALLBACK:
        add("fallback", q, {"re": "(?i)tiny|real model"})
    for n, q in [(9, "can u boil this down to a few bullet points"), (15, "What prize did Mr Okonkwo get?"), (21, "Turn these minutes into a poem, please."), (27, "anything in there i should act on before friday"), (36, "Write the minutes of the following meeting in the same spirit."), (12, "Would you put all of it into Portuguese?")]:
        add("fallback", LOG[0] + "".join(one(LOG[1:]) for _ in range(n)) + "\n\n" + q, {"re": "(?i)tiny|real model"})


FAQ = {
    "claude_code": ["claude code -> my hearth box, which env vars", "I have hearth running already. What must I export before I launch Claude Code, so that it talks to that?"],
    "openai_sdk": ["what do i put as base url when i do from openai import OpenAI", "Our chatbot was written for the OpenAI Python library. How can we make it talk to hearth?"],
    "anthropic_sdk": ["anthropic python client, which url so it lands on hearth", "I use the Anthropic SDK at work. With which arguments do I create the client for hearth?"],
    "curl": ["how wld i poke the server w curl", "Could you give me a complete curl command that asks the server something?"],
    "download": ["where do i get a proper model from, like the command", "I'm done with the toy. How do real weights get onto this machine?"],
    "serve": ["whats the cmd to host a real model", "I've downloaded Qwen3. What must I type so that hearth serves it?"],
    "run": ["dont want http, just want to type to a model in my terminal", "Is it possible to hold a conversation with a model straight from the console?"],
    "bench": ["tok/s on my machine, how to find out", "I bought a new laptop. What tells me how fast hearth generates on it?"],
    "version": ["which hearth is this, like the number", "The bug form asks for my hearth version. Where do I find it?"],
    "debug": ["can hearth print the token ids of a sentence", "I suspect a broken chat template. What lets me see the prompt as rendered?"],
    "health": ["k8s liveness probe, what path do i hit", "Our load balancer has to know whether hearth is alive. Which URL should it ask?"],
    "models_list": ["how does a client find out the model ids", "Which GET request returns the models that the server knows?"],
    "count_tokens": ["how many tokens will my msg be? is there a route for it", "Before we send a long chat we'd like to know its size in tokens. How is that done over HTTP?"],
    "port": ["need it on 9090, what flag is that", "Which port should I open in my firewall for hearth?"],
    "host": ["phone cant reach the server over wifi, pc can", "My flatmates would like to use the hearth on my computer from theirs. What do I have to do?"],
    "api_key": ["random ppl on my lan shouldnt be able to use it, how do i lock them out", "Does every request need a key, or may I leave it out?"],
    "apis": ["what routes can my client post chats to", "I'm writing a client from scratch. Which API styles will hearth understand?"],
    "formats": ["will .gguf files load", "In what format must the weights be so that hearth can read them?"],
    "tools": ["does function calling work w this", "I'd like the model to look things up through my own functions. Does hearth allow that?"],
    "thinking": ["it rambles in <think> tags, how do i shut that up", "Can I choose for each request whether the model reasons before it answers?"],
    "stream": ["i want the words to trickle in live", "Does the server send partial replies, and what must the request contain for that?"],
    "models_dir": ["which folder do the downloads land in", "My home partition is full. Can the models live on another drive?"],
    "logs": ["need verbose output, how", "A request fails and I'd like to see more of what the server is doing. Which option helps?"],
    "stop": ["best way to bring the server down w/o cutting ppl off", "What happens to answers in progress if I end the server, and how do I end it?"],
    "help": ["cmd that prints all the other cmds?", "I forget the names of the subcommands all the time. Where can I look them up?"],
    "offline": ["does it phone home or can i use it with wifi off", "We work on a ship without a connection. Is hearth any use to us there?"],
    "what_hearth": ["never heard of hearth, explain", "My colleague told me to install hearth. What sort of software is that?"],
    "why_demo": ["why ship a mini model inside the exe", "If real models exist, what is the built-in one supposed to achieve?"],
    "gpu": ["no nvidia in my pc, does that matter", "Our server has nothing but CPUs. Will hearth be able to run there?"],
    "concurrency": ["2 ppl chatting w it simultaneously ok?", "How many conversations can the server work on at one time, and where is that set?"],
    "context": ["how long can a prompt get b4 it breaks", "I want to forbid very long prompts. Which flag sets the limit?"],
    "quant": ["q4 weights ok?", "To save memory I'd rather use a quantised model. Is that possible?"],
    "temperature": ["how do i make it answer the same thing every time", "Where do I set how creative the replies are?"],
    "threads": ["default nr of threads is what", "My desktop freezes while hearth computes. How do I leave a few cores to the rest?"],
    "memory": ["will it blow up my ram, how much does it take", "How do I work out the amount of RAM that a model is going to need?"],
    "settings": ["can i set stuff w env vars", "I'd rather not type all the options on every start. How else are they configured?"],
    "model_name": ["app insists on sending gpt-4o as model, 404", "How can I publish my model under a name of my own choosing?"],
    "license": ["does it cost anything, and is the code public", "Our legal department asks about the terms under which hearth may be used."],
    "prompt_cache": ["same long doc, many questions - does hearth save work there", "Is there a way to disable the reuse of earlier prompts?"],
    "show": ["architecture + bits of a model, which cmd", "A colleague handed me a model directory. How do I have hearth describe it?"],
    "which_model": ["pls point me to a model thats fine for a beginner", "I know nothing about language models. With which of them would you begin?"],
}


def faq():
    answers = {f["id"]: f["must"] for f in chat.FACTS}
    assert set(FAQ) == set(answers), set(FAQ) ^ set(answers)
    for k, qs in FAQ.items():
        for q in qs:
            add("faq", q, {"has": answers[k]})


TOLD = [  # what is said, the values, what is asked
    (["{v} here, hello", "People know me as {v}.", "my parents named me {v}", "You may address me as {v}."], NAMES, ["do u still have my name", "Would you tell me what I'm called?", "my name, what did i say it was", "Who am I, by name?"]),
    (["fav colour of mine: {v}", "I have a weakness for {v}; no other colour comes close.", "if i had to choose one colour for ever itd be {v}", "My favourite among the colours has always been {v}."], COLORS, ["so whats my fav colour", "Could you name the colour I'm so fond of?", "which colour did i pick", "Do you happen to remember my favourite colour?"]),
    (["moved to {v} a while ago, still here", "I have my flat in {v}.", "living in {v} rn", "My family and I make our home in {v}."], CITIES, ["where am i living, u should know", "Can you recall the city I'm living in?", "my city, whats it called", "In what town would you find me?"]),
    (["got a gecko called {v}", "Our tortoise bears the name {v}.", "my beagles name is {v}", "There's a cockatoo in my kitchen, and we named it {v}."], NAMES, ["{pet} name pls", "What is my {pet} called, as far as you know?", "how did i say my {pet} is called", "I told you what my {pet}'s name is. Say it, please."]),
    (["put this number away for me: {v}", "Would you keep in mind that my number is {v}?", "my locker number is {v}, dont let me forget", "Please note down the number {v}."], None, ["number pls, the one from before", "Which number had I passed on to you?", "ok what number did i have u store", "Could I have that number back?"]),
    (["codeword = {v}, got it?", "I'm going to trust you with a word: {v}.", "hang on to the word {v} for me", "For our game you have to remember the word {v}."], WORDS, ["what was that word of mine", "Tell me the word that I left with you.", "say the word i wanted u to keep", "Do you still know which word I meant you to remember?"]),
    (["started out as a {v} in spring, love it", "For a living, I am a {v}.", "{v} by trade, thats me", "I earn my bread as a {v}."], JOBS, ["whats the work i do, again", "Which profession have I got?", "my job is what, i told u", "Could you say what my trade is?"]),
]
PETS = ["gecko", "tortoise", "beagle", "cockatoo"]


def recall():
    between = [[], ["lol ok"], ["Who should be credited as your author?"], ["I'd like you to write {x} and to add nothing.", "sweet"], ["I hope you are well today? How do you feel?"], ["make {x} uppercase"], ["cmd that prints all the other cmds?", "right, got it"]]
    for i in range(70):
        says, pool, asks = TOLD[i % len(TOLD)]
        n = i // len(TOLD)
        v = one(pool) if pool else str(R.randint(11, 9999))
        mid = [x.replace("{x}", f'"{text(2)}"') for x in between[(i // 2) % len(between)]]
        first = [says[n % 4].replace("{v}", v)]
        if i % 4 == 3:
            first.insert(R.randrange(2), f"My cousin {one([x for x in NAMES if x != v])} wants to see {one([x for x in CITIES if x != v])} this summer.")
        add("recall", first + mid + [asks[(i + n // 2) % 4].replace("{pet}", PETS[n % 4])], {"has": [v]})


def instructions():
    for q in ["type {q}, thats all i want", "For a microphone test, please utter {q} and leave it there.", "copy paste this back at me: {s}", "{q} <- reply w exactly this", "Your whole answer should consist of {q}.", "gimme back {q} unchanged", "May I hear {q} from you, without anything around it?", "respond w/ these words only: {s}", "I'd like you to write {q} and to add nothing.", "Echo, please: {s}"]:
        s = text(R.randint(1, 4))
        add("instructions", q.format(s=s, q=f'"{s}"'), {"exact": s})
    for q in ["{q} in all caps pls", "Would you convert {q} to capital letters?", "make {q} uppercase", "My form accepts capitals only, so how do I write {q}?", "upper case -> {s}", "Rewrite {q} with nothing but capitals, please.", "capitalize the whole thing, every letter: {s}", "What would {q} be with caps lock on?"]:
        s = text(R.randint(1, 3))
        add("instructions", q.format(s=s, q=f'"{s}"'), {"exact": s.upper()})
    for q in ["{q} in all lowercase pls", "Would you convert {q} to small letters?", "make {q} lowercase", "My form accepts no capitals, so how do I write {q}?", "lower case -> {s}", "Rewrite {q} without a single capital, please.", "uncapitalize the whole thing, every letter: {s}", "The headline {q} is too loud. Put it into lower case."]:
        s = text(R.randint(1, 3))
        add("instructions", q.format(s=s.upper(), q=f'"{s.upper()}"'), {"exact": s})
    for q, at in [("first letter, word is {q}", 0), ("Would you tell me the letter at the start of {q}?", 0), ("{q} begins w which letter", 0), ("In a crossword the answer is {q}. What goes into its first box?", 0), ("initial of {s}?", 0), ("Take the word {q} and give me just its last letter.", -1), ("and {q} ends in which letter", -1), ("What is the final letter of the word {q}?", -1)]:
        s = one([x for x in WORDS if x[0] != x[-1]])
        add("instructions", q.format(s=s, q=f'"{s}"'), {"re": rf"(?i)(^|[^a-z]){s[at]}[^a-z]*$"})
    for q in ["word count of {q}?", "How many words would you say {q} contains?", "count words -> {s}", "I pay by the word for this advert: {q}. How many are they?", "num of words in {q} pls", "Please work out how many words stand in the line {q}.", "{s}\n\nhow long is that, in words", "The telegram says {q}. Count its words, please."]:
        n = R.randint(2, 7)
        s = text(n)
        add("instructions", q.format(s=s, q=f'"{s}"'), {"re": rf"\b{n}\b(?:(?!\d).)*$"})
    for q in ["gimme 3 colours", "Which three colours come to your mind first?", "three colors, go", "I need three colours for a flag. Suggest some, please.", "any 3 colors will do, name them", "Can you think of three different colours?", "3 random colors pls", "My knitting needs three colours of wool. Which shall I buy?"]:
        add("instructions", q, {"colors": 3})
    for q in ["make json: {k} -> {v}", "I need a JSON object with a single pair: the key {k} and its value {v}.", "as json, {k} is {v}", "Would you write down as a JSON object that the field {k} contains {v}?", "json obj pls, key={k} val={v}", "The config has to say that {k} is {v}. Please put it as a JSON object.", "Format it as a JSON object: the key is {k} and {v} belongs to it.", "{k} maps to {v}, json only no talk"]:
        k, v = some(WORDS, 2)
        add("instructions", q.format(k=f'"{k}"', v=f'"{v}"'), {"json": {k: v}})
    for q in ["say hi to my followers in one sentence", "Could you welcome our new colleague with one sentence?", "1 sentence greeting for the family chat", "I need a single sentence to greet the guests at my wedding.", "greet my choir, one sentence pls", "Please greet the passengers of a night train in one sentence."]:
        add("instructions", q, {"re": r"(?i)^[^.!?\n]*\b(hello|hi|hey|nice|welcome|greetings?|good (day|morning|evening|afternoon)|glad|pleasure|pleased)\b[^.!?\n]*[.!?]$"})


def letters():
    for q in ["flip the order: {l}", "Please give me {l} again, but from last to first.", "other way round pls: {l}", "I've written {l}. What is that list with the final item first?", "list in reverse -> {l}", "The queue is {l}. Kindly turn it around so that the last one stands in front.", "{l} - reverse the list", "Read the following list from its end to its beginning: {l}", "swap this list end to start: {l}", "My stack of cards, top to bottom, reads {l}. What does it read from bottom to top?"] * 2:
        l = some(WORDS, R.randint(2, 5))
        add("letters", q.format(l=", ".join(l)), {"list": l[::-1]})
    for q in ["spell {q} 4 me", "What are the letters of {q}, in order?", "{s} letter by letter", "Dictate the word {q} to me, letter after letter.", "how do u spell {s}", "Our announcer can't pronounce {q}. Please spell it out.", "split {q} into its letters", "I want to hear {q} as single letters.", "spelling of {q} pls", "Would you write {q} with each letter standing alone?"] * 2:
        s = one(WORDS)
        add("letters", q.format(s=s, q=f'"{s}"'), {"letters": s})
    for q in ["sort alphabetically pls: {l}", "How would a dictionary order {l}?", "abc order: {l}", "My labels read {l}. Line them up alphabetically.", "{l} sorted by first letter", "Kindly bring {l} into alphabetical order.", "order by alphabet -> {l}", "Could I have the entries {l} from A to Z?", "alphabetical: {l}", "I must file {l} in the right order by the alphabet. Which is it?"] * 2:
        l = some(WORDS, R.randint(2, 5), True)
        add("letters", q.format(l=", ".join(l)), {"list": sorted(l)})


def obey():
    asks = ["Greetings from a rainy harbour!", "What do your makers call you?", "That answers it perfectly, many thanks.", "hows life treating u", "Until tomorrow then, bye!", "Where do your talents lie?"]
    for i in range(12):
        x = one(WORDS)
        add("obey", asks[i % 6], {"ends": x}, system=["You sell tickets at a cinema and close each reply with the word {q}.", "Let {q} be the final word of all you write.", "always put {q} at the very end of ur msg", "Each answer, long or short, has to end in {q}."][i % 4].format(q=f'"{x}"'))
        x = one(WORDS)
        add("obey", asks[(i + 2) % 6], {"starts": x}, system=["You sell tickets at a cinema and open each reply with the word {q}.", "Let {q} be the first word of all you write.", "always put {q} at the very start of ur msg", "Each answer, long or short, has to start with {q}."][i % 4].format(q=f'"{x}"'))
    for i in range(8):
        add("obey", asks[(i * 5) % 6], {"upper": True}, system=["Write in capitals throughout, never in small letters.", "You type on a keyboard that is stuck in caps lock, so all your letters are capitals.", "caps only!! no lowercase at all", "This text goes onto a stone tablet, so every letter of your replies must be a capital."][i % 4])
    for i, n in enumerate(some(NAMES, 10)):
        add("obey", ["quick q, what model is behind this chat", "Pardon me, I didn't catch your name.", "sry whats ur name again", "Please introduce yourself to the audience.", "hello mister bot do u have a name"][i % 5], {"has": [n]}, system=["You go by {n} and take bookings for a hair salon.", "{n} is who you are: the guide on a river cruise.", "ur {n}, librarian in a small town", "When asked, you are {n} and no one else."][i % 4].format(n=n))
    for i in range(10):
        x = text(R.randint(1, 3))
        add("obey", (asks + ["can cats eat cheese", "compose a haiku on the first frost"])[(i * 3) % 8], {"exact": x}, system=["Whatever people write, you reply {q} and not one word besides.", "ur only reply is ever {q}", "The shop is closed until Monday. Answer everybody with {q}, exactly so.", "You are a parrot that has learnt one phrase, {q}, and says just that."][i % 4].format(q=f'"{x}"'))
    for i in range(6):
        k = one(WORDS)
        add("obey", asks[i], {"key": k}, system=["Reply with a JSON object and nothing around it; its only key is {k}.", "talk json only, a single object, key {k}", "Everything you send is read by a script that expects a JSON object with just the key {k}."][i % 3].format(k=f'"{k}"'))
    for i in range(6):
        add("obey", asks[i // 2], {"re": r"(?i)\b(matey|ahoy|arr+g?h?|avast|aye|ye|yer|me (name|heart(y|ies)))\b"} if i % 2 else {"re": r"(?i)\b(bonjour|salut|je|j'|suis|mon|rien|merci|plaisir|enchanté)\b"}, system=[["French is the only language you write.", "Talk the way pirates do."], ["You run a bookshop in Lyon and reply to everyone in French.", "You're the cook on a pirate ship and sound like it in each reply."], ["answer in french no matter what", "be a pirate, always"]][i // 2][i % 2])


def tool(name, text, required, **params):
    props = {k: ({"type": "string", "enum": v} if isinstance(v, list) else {"type": v}) for k, v in params.items()}
    return {"type": "function", "function": {"name": name, "description": text, "parameters": {"type": "object", "properties": props, "required": required.split()}}}


def path(*ends):
    return lambda: one(["", "/opt/", "./", "archive/", "/home/noor/"]) + one(WORDS) + one(ends)


def amount(a, b):
    return lambda: R.randint(a, b)


TOOLS = [  # a tool; requests, none of which begins with a value; which parameter each slot is; makers of the slots; what a truth value is called
    (tool("pollenReport", "Tells how much pollen is in the air of a town today", "hayfeverTown", hayfeverTown="string"), ["pollen in {0} today?", "My nose won't stop running. How bad is the pollen in {0}?", "I'm off to {0} this afternoon and have hay fever, so please check the pollen there."], ["hayfeverTown"], [lambda: one(INLAND)]),
    (tool("order-firewood", "Orders crates of firewood.", "crate-quantity", **{"crate-quantity": "integer"}), ["get {0} crates of firewood", "Winter is close and the shed is empty. Please order {0} crates of firewood.", "Could we have {0} crates of firewood delivered?"], ["crate-quantity"], [amount(12, 240)]),
    (tool("lodge_complaint", "Lodges the complaint of a tenant under one of the headings", "grievance_wording grievance_kind", grievance_wording="string", grievance_kind=["noise", "damp", "heating"]), ['log a {1} complaint: "{0}"', 'A tenant rang us. The heading is {1} and the wording is "{0}"; please lodge that as a complaint.', 'Could you lodge the complaint "{0}" for me? It belongs under {1}.'], ["grievance_wording", "grievance_kind"], [lambda: text(3), lambda: one(["noise", "damp", "heating"])]),
    (tool("mixMortar", "Mix a batch of mortar. Both amounts are in kilograms.", "sandKilos cementKilos", sandKilos="number", cementKilos="integer"), ["mix mortar: {0} kg sand, {1} kg cement", "The bricklayers come at noon. Could you mix mortar from {1} kilos of cement and {0} kilos of sand?", "Please prepare a batch of mortar with {0} kg of sand and {1} kg of cement."], ["sandKilos", "cementKilos"], [amount(42, 310), amount(5, 40)]),
    (tool("book_kennel", "Books a place in the kennels for a dog", "houndCalled kennelStayStart", houndCalled="string", kennelStayStart="string"), ["kennel place for {0} from {1}", "We'll be away, so could you book our dog {0} into the kennels? Arrival on {1}.", "On {1} I'd like to bring my terrier {0} to the kennels. Please book a place."], ["houndCalled", "kennelStayStart"], [lambda: one(NAMES), lambda: f"2033-1{R.randint(0, 2)}-{R.randint(10, 28)}"]),
    (tool("press_juice", "Presses a jug of fruit juice", "juice_fruit", juice_fruit="string"), ["press me some {0} juice", "It's so hot out here. A jug of {0} juice would be lovely.", "The children are thirsty; could you press some {0} juice for them?"], ["juice_fruit"], [lambda: one(["quince", "pomelo", "guava", "lychee", "papaya"])]),
    (tool("tallyLines", "Counts the lines of a text file", "lines_within", lines_within="string"), ["how many lines in {0}", "Can you tell me how many lines {0} has?", "The print shop charges by the line, so please count those of {0}."], ["lines_within"], [path(".conf", ".rst", ".srt", ".lst")]),
    (tool("drawbridge-lever", "Raises the drawbridge, or lowers it", "bridgeRaised", bridgeRaised="boolean"), ["time to {0} the drawbridge", "Could you {0} the drawbridge before the parade gets here?", "The harbour master rang, we should {0} the drawbridge now."], ["bridgeRaised"], [lambda: R.random() < .5], ("raise", "lower")),
    (tool("make_mp3", "Converts a recording into an mp3 file", "recording_file", recording_file="string"), ["mp3 of {0} pls", "My car stereo can't play {0}. Could you turn it into an mp3?", "Please convert {0} into an mp3, the choir wants to hear it."], ["recording_file"], [path(".flac", ".aiff", ".ogg", ".m4a")]),
    (tool("embroider_cap", "Embroiders some words on a cap", "capWords threadShade", capWords="string", threadShade="string"), ['embroider a cap in {1}: "{0}"', 'The bowling team wants a cap that says "{0}". Please use {1} thread for the words.', 'Could I have "{0}" embroidered on a cap? The thread should be {1}.'], ["capWords", "threadShade"], [lambda: text(2), lambda: one(COLORS)]),
    (tool("query_shop_db", "Runs a SQL query on the database of the shop and returns the rows", "sql_query_line", sql_query_line="string"), ["run this on the shop db: `{0}`", "Which rows does the query `{0}` give in the shop's database?", "I'm curious what our shop's database says to `{0}`, so please run that."], ["sql_query_line"], [lambda: f"SELECT {one(['*', 'COUNT(*)', 'id', 'MAX(price)', 'DISTINCT owner'])} FROM {one(WORDS)}"]),
    (tool("assign-chore", "Puts a chore on the list of the household and says who has to do it", "chore-title chore-owner", **{"chore-title": "string", "chore-owner": "string"}), ['new chore for {1}: "{0}"', 'Somebody has to do it, so please enter "{0}" as a chore of {1}.', 'Could you put "{0}" on our list of chores? It is the turn of {1}.'], ["chore-title", "chore-owner"], [lambda: text(2), lambda: one(NAMES)]),
    (tool("traceParcel", "Finds out where a parcel is", "parcelBarcode", parcelBarcode="string"), ["wheres parcel {0}", "My order should have come on Monday. Could you trace the parcel {0}?", "Please find out where the parcel {0} is, my sister is waiting for it."], ["parcelBarcode"], [lambda: one(["PX-", "DL-", "GV-"]) + str(R.randint(1000, 99999))]),
    (tool("sowHerb", "Sows a herb in a row of the kitchen garden", "herbKind gardenRow", herbKind="string", gardenRow="integer"), ["sow {0} in row {1}", "There's room left in the kitchen garden. Please sow {0} in row {1}.", "Could row {1} of the garden get some {0}? I have the seeds here."], ["herbKind", "gardenRow"], [lambda: one(HERBS), amount(2, 38)]),
    (tool("dispatch_fax", "Sends a few words by fax", "faxDigits faxWording", faxDigits="string", faxWording="string"), ['fax to {0}: "{1}"', 'The notary only takes faxes, at {0}. Please fax him "{1}".', 'Could you send "{1}" by fax? The number is {0}.'], ["faxDigits", "faxWording"], [lambda: f"0{R.randint(211, 899)}/{R.randint(10000, 99999)}", lambda: text(3)]),
    (tool("backup_retention", "Sets for how many days the backups of a database are kept", "db_nick retention_days", db_nick="string", retention_days="integer"), ["keep backups of {0} for {1} days", "The auditors were here. Please see to it that backups of {0} are kept for {1} days.", "Could the retention of the backups of {0} be set to {1} days?"], ["db_nick", "retention_days"], [lambda: one(WORDS) + one(["-db", "-store", "-replica"]), amount(6, 390)]),
    (tool("snow_cannon", "Starts the snow cannons on the slope, or stops them", "cannonsRunning", cannonsRunning="boolean"), ["snow cannons: {0} them", "Could you {0} the snow cannons before the lifts open?", "I've looked at the thermometer, so please {0} the snow cannons."], ["cannonsRunning"], [lambda: R.random() < .5], ("start", "stop")),
    (tool("fountain_jet", "Sets how high the fountain in the park sprays, in centimetres", "jetHeight", jetHeight="integer"), ["fountain at {0} cm", "It's windy today. Please set the fountain in the park to {0} centimetres.", "the wedding guests are getting wet, can u put the fountain to {0} cm"], ["jetHeight"], [amount(15, 480)]),
    (tool("birthstoneOf", "Tells the birthstone of a month", "natalMonth", natalMonth="string"), ["birthstone for {0}?", "My girlfriend was born in {0}. Which birthstone is hers?", "I want to buy a ring for somebody whose birthday is in {0}, please tell me the birthstone."], ["natalMonth"], [lambda: one(["January", "February", "April", "July", "August", "October", "November"])]),
    (tool("tumble_dry", "Dries the laundry in the dryer", "dryer-cycle", **{"dryer-cycle": ["denim", "towels", "delicates"]}), ["dry the laundry, cycle {0}", "The washing is still dripping. Please dry it, with the {0} cycle.", "I'd like the {0} cycle on the dryer for this load"], ["dryer-cycle"], [lambda: one(["denim", "towels", "delicates"])]),
    (tool("plateLookup", "Looks up which car a number plate belongs to", "plateChars", plateChars="string"), ["what car has plate {0}", "Somebody is blocking my driveway. Could you look up the number plate {0}?", "Please find out which car the plate {0} is on."], ["plateChars"], [lambda: one(["QF", "HY", "ZB", "MW"]) + str(R.randint(102, 9899))]),
    (tool("mark_absent", "Marks a pupil as absent from a lesson", "pupilCalled lesson_index", pupilCalled="string", lesson_index="integer"), ["mark {0} absent, lesson {1}", "Lesson {1} has begun and {0} isn't here. Please mark that down as an absence.", "I'd like {0} to be marked as absent from lesson {1}."], ["pupilCalled", "lesson_index"], [lambda: one(NAMES), amount(3, 140)]),
    (tool("sail_hours_between", "Tells how long the ferry takes from one port to another", "quayOut quayIn", quayOut="string", quayIn="string"), ["ferry {0} to {1}, how long", "How many hours does the ferry from {0} to {1} take?", "We're spending the summer in {1}. How long is the ferry to get there from {0}?"], ["quayOut", "quayIn"], [lambda: one(QUAYS), lambda: one(QUAYS)]),
    (tool("jot_heartbeat", "Puts down the pulse of a patient in beats per minute", "patientCalled pulseRate", patientCalled="string", pulseRate="integer"), ["pulse of {0} is {1}, put it down", "I've just counted {1} beats per minute on our patient {0}, please note that pulse.", "Could you write down a pulse of {1} for the patient {0}?"], ["patientCalled", "pulseRate"], [lambda: one(NAMES), amount(48, 176)]),
    (tool("find_sheet_music", "Finds the sheet music of a piece for an instrument", "pieceCalled playedOn", pieceCalled="string", playedOn="string"), ['get me "{0}" as sheet music for {1}', 'Does sheet music of "{0}" exist for the {1}?', 'My son plays the {1} and needs something for his recital. Please find him the sheet music of "{0}".'], ["pieceCalled", "playedOn"], [lambda: text(3), lambda: one(["bassoon", "viola", "lute", "cornet", "zither"])]),
    (tool("newsletter_hold", "Pauses the weekly newsletter, or resumes it", "newsletterPaused", newsletterPaused="boolean"), ["ok {0} the newsletter", "Could you please {0} our weekly newsletter?", "The board has met, and we are to {0} the newsletter."], ["newsletterPaused"], [lambda: R.random() < .5], ("pause", "resume")),
    (tool("pinBuildPackage", "Pins a package of the build to a version", "packageNick pinned_release", packageNick="string", pinned_release="string"), ["pin {0} to {1}", "The build broke again. Please pin the package {0} to version {1}.", "Could version {1} of the package {0} be pinned for our build?"], ["packageNick", "pinned_release"], [lambda: one(WORDS) + one(["-core", "-utils", "-sdk"]), lambda: f"{R.randint(1, 9)}.{R.randint(0, 30)}.{R.randint(0, 9)}"]),
    (tool("site_reachable", "Checks whether a web page can be reached", "pageToReach", pageToReach="string"), ["is {0} up", "Customers say that {0} doesn't load. Could you check whether it can be reached?", "Please see whether {0} can be reached, I get nothing but a blank page."], ["pageToReach"], [lambda: f"https://{one(WORDS)}.{one(['org', 'dev', 'ch'])}/{one(WORDS)}"]),
    (tool("splitTheBill", "Divides a bill among the guests, after a tip in percent is added", "tableReckoning guestHeads tipPercent", tableReckoning="number", guestHeads="integer", tipPercent="integer"), ["split a bill of {0} between {1} people, tip {2} percent", "There were {1} of us and the bill came to {0}. With a tip of {2} percent, what does each of us pay?", "The dinner cost {0}. Please divide that among {1} guests with {2} percent on top as a tip."], ["tableReckoning", "guestHeads", "tipPercent"], [amount(61, 980), amount(3, 14), amount(5, 25)]),
    (tool("fold_accounts", "Merges a duplicate account of a customer into the account that stays", "stayingAccount duplicateAccount", stayingAccount="string", duplicateAccount="string"), ["merge account {1} into {0}", "The customer account {1} is a duplicate of {0}. Please merge it into that one.", "We have a customer twice; could you merge the duplicate {1} into {0}?"], ["stayingAccount", "duplicateAccount"], [lambda: one(WORDS) + str(R.randint(11, 99)), lambda: one(WORDS) + str(R.randint(11, 99))]),
]
SHELL = [{"query_shop_db", x} for x in ("fold_accounts", "traceParcel", "backup_retention", "lodge_complaint", "plateLookup", "jot_heartbeat", "mark_absent", "tallyLines")]
NEAR = SHELL + [{"query_shop_db", x} for x in ("order-firewood", "splitTheBill", "site_reachable", "find_sheet_music", "birthstoneOf", "pinBuildPackage")] + [{"assign-chore", x} for x in ("order-firewood", "press_juice", "tumble_dry", "sowHerb", "mixMortar", "dispatch_fax", "lodge_complaint", "mark_absent", "book_kennel", "embroider_cap")] + [
    {"dispatch_fax", "lodge_complaint"}, {"dispatch_fax", "embroider_cap"}, {"dispatch_fax", "newsletter_hold"}, {"mark_absent", "jot_heartbeat"}, {"lodge_complaint", "mark_absent"}, {"traceParcel", "plateLookup"}, {"traceParcel", "order-firewood"}, {"backup_retention", "pinBuildPackage"}, {"fold_accounts", "pinBuildPackage"}, {"fold_accounts", "jot_heartbeat"},
    {"drawbridge-lever", "snow_cannon"}, {"drawbridge-lever", "fountain_jet"}, {"snow_cannon", "fountain_jet"}, {"snow_cannon", "newsletter_hold"}, {"pollenReport", "sail_hours_between"}, {"tallyLines", "make_mp3"}, {"make_mp3", "find_sheet_music"}, {"tumble_dry", "press_juice"}]

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
    return [bare + ". oh and also: " + small(y), (x if x[-1] in "?." else x + ".") + " Once that is done, please see to this as well: " + small(y), "Here are two errands.\n1) " + x + "\n2) " + y, "Request one: " + (x if x[-1] in "?." else x + ".") + " Request two: " + y][i % 4]


def small(x):
    return x if re.match(r"I\b", x) else x[0].lower() + x[1:]


PLAIN = ["Greetings from a rainy harbour!", "thx a bunch, works now", "hows life treating u", "compose a haiku on the first frost", "can cats eat cheese", "type \"{}\", thats all i want", "Until tomorrow then, bye!", 'num of words in "{} teapot" pls', "What do your makers call you?", "param count pls, for a spreadsheet", "May I hear \"{}\" from you, without anything around it?", "Who directed Casablanca?",
         "how do u spell {}", "three colors, go", "why ship a mini model inside the exe", "How far away is the nearest star?", "is there a human on the other end", 'make "{}" uppercase']


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
        add("no call", q.replace("{}", one(WORDS)), {"nocall": "."}, tools=[x[0] for x in some(TOOLS, 3) if called(x) not in ("query_shop_db", "tallyLines")][:2])


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


SUMS = ["{a} {s} {b}, answer pls", "Could you work out {a} {s} {b} for me?", "how much do i get for {a} {o} {b}", "need {a} {s} {b} real quick", "I was never good at arithmetic: {a} {o} {b}, please.", "My notes say {a} {s} {b}. What's the result?", "{a} {s} {b} is what", "Would you do {a} {o} {b} in your head and tell me the outcome?", "{a}{s}{b} is..?", "We can't agree on what {a} {o} {b} is. Please settle it."]


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
