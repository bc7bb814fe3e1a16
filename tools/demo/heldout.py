"""Writes heldout.json: the prompts of the evaluation. Phrasings, tools and parameter names are written here by hand and are
none of the generator's; words and names are only here. This is the ninth set: nothing of the first eight is in it. It was written
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
R = random.Random(97514212)
BIRDS = w.W("lapwing wagtail kittiwake fieldfare bullfinch goldfinch sandpiper nuthatch skylark moorhen")
OWN = BIRDS + w.W("""acrobat bandage beanstalk buckle bumblebee bunting cardigan caterpillar chopstick conker cucumber cutlery cymbal daffodil dazzle doodle doughnut
driftwood earmuff eggshell fiddle flipper flutter freckle gloomy grasshopper griddle hailstone hinge hurrah iceberg impish inkpot jingle juggle keyhole knapsack
ladle lattice lollipop mallet marmalade mermaid moonbeam nightcap nugget oasis octave paperclip peacock pinecone pitchfork plumage quaver quirk radish razor rucksack saucer seaweed
shoelace skittle tassel teaspoon tricycle tuba turret unicorn uproar valet vulture waddle weasel wobble yoghurt yonder zillion zombie""")
WORDS = OWN
OWN_NAMES = w.W("Algernon Esmeralda Friedrich Kerensa Oluwaseun Salvatore Valentina Yevgenia Demetrius Prudence Siobhan Takeshi Nkechi Dashiell Brunhilde Ebenezer Fiorella Jocasta Ptolemy Vladislav Zebedee")
NAMES = OWN_NAMES
VALLEY = w.W("Verona Padua Trento Udine Klagenfurt Villach Ferrara Rimini")  # one can move house from each to each
ALPINE = w.W("Bolzano Grenoble Lillehammer Interlaken Garmisch Cortina Zakopane Annecy Merano Andermatt")
OWN_CITIES = VALLEY + ALPINE
CITIES = OWN_CITIES
OWN_COLORS = w.W("claret mahogany ultramarine terracotta scarlet sienna champagne")
COLORS = OWN_COLORS
JOBS = w.W("clockmaker lumberjack gamekeeper hairdresser jeweller")
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
    ("hearth-demo", ["uhh which ai model am i chatting w", "Excuse me, may I ask what you are called?", "so r u gpt5 or whats the deal here", "Our log shows a reply without a model name next to it. Which model wrote that reply?", "ok but like whats ur actual name", "I have to cite you in my thesis. Which name shall I put there?",
                     "gemini or llama, which one am i talkin to", "If there were a badge on your chest, what name would it bear?", "The tab just reads \"New chat\". Whom have I got in front of me?", "is this mistral, feels like mistral", "For the minutes I need the name of everybody here, yours too.",
                     "cmon tell me which bot this is", "There are four models on this box, and one of them is answering me. Which one is it?", "My teacher says that you are Claude. Is she right, or what are you called?", "whos this typing back at me", "tell me ur model name real quick"]),
    ("(?i)instructions|tools", ["what stuff r u decent at", "What would you be able to do for me if I had an afternoon to spare?", "so hit me with ur skillset", "This is my first time here. What kinds of questions can you handle?", "ur abilities, short version",
                                "Before I rely on you, tell me what you're capable of.", "got any tricks up ur sleeve or what", "I'm to present you to my class tomorrow. Which tasks may I promise them?", "Somebody told me to ask you for help. With what can you help, though?", "what would be a good thing to try w u first", "Would you sum up what you can be asked to do?"]),
    ("million", ["so whats the nr of weights u run on", "People keep calling you a toy. How many parameters do you have?", "ur size in params? need it 4 a slide", "Put a figure on your size, please: how many parameters are inside you?", "7b? 70b? how big r u really", "I'd like to print your parameter count on the box. What is it?", "bet u have like 3 params lmao, how many actually", "Compared with the giants you must be minute. How large are you exactly?"]),
    ("hearth", ["which company built u", "Behind every program there is a maker. Who is yours?", "From where did your trainers take the text you learnt?", "is openai behind this thing or who", "what were u fed during training", "I'd like to write a letter to your creators. Who are they?", "google made u right", "With which books or sites did they train you?"]),
    ("hearth-demo|model", ["r u flesh n blood", "Forgive me for asking, but are you an actual human?", "is this a real person typing", "I'd rather not pour my heart out to a machine. Are you one?", "ur not human right", "Am I speaking with somebody from the support team, or with a computer?"]),
    (r"hearth-demo|[Hh]ello|\b[Hh]i\b", ["hiya botty", "Good afternoon! I've just started the server.", "heyy anyone in there", "Hello from a kitchen full of flour!", "howdy, first time here", "A sunny Sunday morning to you, dear helper."]),
    ("welcome", ["ty ty, that did it", "I'm most grateful, that was exactly what I needed.", "legend, thanks so much", "Thank you for taking the time to explain it."]),
    ("[Bb]ye", ["k gotta run, cya", "I'm shutting the laptop now, so farewell.", "off to bed, bye bot", "It's getting late here, so goodbye and sleep well!"]),
    ("fine", ["how u doin over there", "Are you in good spirits this evening?", "u ok? hows ur day"]),
]
FALLBACK = [
    "how long do u boil an ostrich egg", "Which painter cut off his own ear?", "how deep is lake baikal", "Could I get an Excel macro that colours every second row?", "How many hearts does an octopus have?", "Why do onions make people cry?", "best trick 2 get candle wax out of a rug",
    "May I bring honey through customs in Australia?", "who was first at the north pole", "My neighbour's tree hangs over my fence. Am I allowed to cut it?", "explain a tcp handshake like im a grandma", "Invent a name for my bakery, please, something with a pun.", "write me a limerick abt a grumpy baker", "When did the Berlin Wall come down, and why?",
    "can rabbits eat broccoli", "how do i mount a usb drive on linux", "How do I tell a crocodile from an alligator?", "sql join vs subquery, which is faster", "Which river flows through Baghdad?", "know any good riddles", "By what means does a microwave oven heat food?",
    "Please compose a speech for my brother's wedding, warm but not soppy, that lasts about three minutes, mentions his love of old motorbikes, and ends with a toast to our grandparents.", "how do i get my toddler to sleep in her own bed", "Is it wise to buy a second-hand electric car?", "The leaves of my orchid are going limp. How do I save it?", "r we alone in the universe", "List the wives of Henry the Eighth.",
    "whats tmrws lottery numbers", "What could I cook for guests who eat no meat?", "fix my java: int x = \"five\";", "Who invented the sewing machine?", "Which exercises strengthen the knees?", "3 days in porto, whats the plan", "Why did the Titanic sink so quickly?", "How long does light take from the sun to us?",
    "my cat got run over this morning", "We're engaged! He asked me on the beach.", "got fired today, feel like crap", "My best friend hasn't spoken to me for a month.", "passed my finals woohoo!!", "I'm so scared of the operation next week.", "cant sleep, brain wont shut up",
    "Warum ist der Himmel abends rot?", "Combien de temps faut-il pour cuire un œuf dur ?", "¿Quién pintó el Guernica?", "Perché le zebre hanno le strisce?", "Почему снег белый?", "富士山の高さは何メートルですか?", "熊猫为什么吃竹子?", "Hvor mange øer har Danmark?",
    "Quem descobriu o caminho marítimo para a Índia?", "İstanbul'da kaç köprü var?", "Proč ptáci na podzim odlétají na jih?", "김치는 어떻게 만드나요?",
    "frumble dax ooplet", "::::>>//__==", "qzxv mlkp wtrr bnnd", "%% && %% && %%", "🐙🚲🧀🌵", "eeeeeeeeeeeeeeeeeeee", "snib wackle frotz", "aoiwe nvksl qpozu",
]
LOG = ["Weekly report of the lost property office at Harrow Junction, written on the back of a timetable. ", "A harp was handed in on Monday, and no one has dared to touch a string of it. ", "Eleven umbrellas came in, of which nine are black and two look sad. ", "Miss Petrov collected her false teeth and left a tin of fudge as thanks. ",
       "The snake from the 8.15 express has been adopted by the stationmaster. ", "A suitcase full of left shoes still waits for a suitcase full of right ones. ", "The clerk put a label on himself by mistake and was almost sent to Leeds. ", "Mr Adeyemi asks every day for a hat that he is wearing. "]


def identity():
    for want, asks in IDENTITY:
        for q in asks:
            add("identity", q, {"re": want})
    for q in FALLBACK:
        add("fallback", q, {"re": "(?i)tiny|real model"})
    for n, q in [(9, "tldr that for me"), (15, "What did Miss Petrov leave as a thank-you?"), (21, "Make a song out of this report, please."), (27, "whats the most urgent thing in here u reckon"), (36, "Write next week's report in the same tone."), (12, "Could you render all of this in Swedish?")]:
        add("fallback", LOG[0] + "".join(one(LOG[1:]) for _ in range(n)) + "\n\n" + q, {"re": "(?i)tiny|real model"})


FAQ = {
    "claude_code": ["im on claude code, how do i aim it at my own hearth", "I'd like Claude Code to send its requests to hearth instead of Anthropic. Which variables have to be set?"],
    "openai_sdk": ["OpenAI(base_url=???) for hearth", "We have scripts built on the openai package. What do we change so that they reach hearth?"],
    "anthropic_sdk": ["anthropic sdk, what do i hand to the constructor for hearth", "A colleague's notebook imports the anthropic package. How does she get it to talk to our hearth?"],
    "curl": ["curl one-liner pls to see if it talks", "I have no client at hand, just curl. What does a request look like?"],
    "download": ["how 2 grab weights off hugging face", "The demo is nice, but I want something smarter on my disk. With which command do I fetch it?"],
    "serve": ["ok got the weights, how do i put them behind the api", "Which command brings the server up with a proper model?"],
    "run": ["chat in bash w/o any server, possible?", "Before I set up a server, I'd like to ask a model something from my shell. How?"],
    "bench": ["wanna measure prefill n decode speed", "My boss wants figures on how quickly hearth writes. How do I get them?"],
    "version": ["how do i see what release i got", "I'm not sure whether my hearth is up to date. How can I tell which one is installed?"],
    "debug": ["wanna look at what the tokenizer does w my text", "The model gets strange input, I believe. With which subcommand can I look at the template and the logits?"],
    "health": ["is there some url that says its ready", "Our Docker container needs a health check. Which path of the server may it poll?"],
    "models_list": ["endpoint w all the models?", "My web UI wants to fill its dropdown with the models that are there. What should it call?"],
    "count_tokens": ["can the api tell me the token count b4 i send", "I'm worried that my prompt has too many tokens. Which endpoint counts them in advance?"],
    "port": ["smth else sits on 8080, move hearth how", "On which port will the server answer unless I say otherwise?"],
    "host": ["wanna reach it from my tablet", "The server runs in the cellar and answers only to itself. How do I open it to the other computers in the house?"],
    "api_key": ["can i put a password on it", "Must our clients send a key in the header, and how would I make that compulsory?"],
    "apis": ["openai style or anthropic style endpoints, which ones exist", "Which protocols could a program use to speak with the server?"],
    "formats": ["what kinda model files does it eat", "I have a folder with safetensors from Hugging Face. Is that something hearth is able to open?"],
    "tools": ["i got python functions, can the model use em", "My agent depends on tool calls. Will the server pass them back to me?"],
    "thinking": ["turn off the reasoning blabla how", "For short questions I don't want the model to ponder first. What can I do?"],
    "stream": ["sse supported?", "My users stare at an empty window until the answer is complete. How can they see it as it is being written?"],
    "models_dir": ["where on disk r the weights", "I've bought an external SSD. How do I get hearth to look for the models over there?"],
    "logs": ["log output too thin, whats the flag", "Where do the messages of the server end up, and how can there be more of them?"],
    "stop": ["how to kill it nicely", "I have to restart the computer. How is hearth shut down in an orderly way?"],
    "help": ["no idea what subcommands there r", "Is there an overview of everything I may type after the word hearth?"],
    "offline": ["no internet here, will it still go", "Next week I'm in a cabin without any network. Shall I be able to use hearth?"],
    "what_hearth": ["hearth.. is that an app or what is it", "My new intern asks me what hearth is. What shall I tell her?"],
    "why_demo": ["whats the toy model good for", "For which purpose did the authors put such a small model into the program?"],
    "gpu": ["runs on a thinkpad w/o graphics card?", "Must I buy a graphics card first, or will my processor do?"],
    "concurrency": ["can 5 of us use it at the same time", "Our whole class is going to send questions together. Will they be answered in parallel?"],
    "context": ["max prompt length?", "I'd like to paste a whole book. Is there a limit on the length, and can it be changed?"],
    "quant": ["8bit mlx models, do they run", "My machine is short of RAM, so I've picked weights with four bits. Will hearth take them?"],
    "temperature": ["wanna set top_p, where", "My tests fail because each reply is worded differently. How do I make the output repeatable?"],
    "threads": ["how do i cap the cpu cores it eats", "On how many cores does hearth compute if I set nothing?"],
    "memory": ["16gb ram enough for this?", "The machine began to swap. How do I keep hearth's use of memory down?"],
    "settings": ["config file or env vars or what", "In our containers everything is set by environment variables. Does hearth go along with that?"],
    "model_name": ["client asks for some other model id n gets an error", "I'd like my clients to be able to send whatever model name they please. Is there a switch for it?"],
    "license": ["can my company use this for free", "Before I fork hearth I'd like to know its licence."],
    "prompt_cache": ["does it recompute my system prompt every time", "For a fair measurement nothing may be kept from earlier requests. How do I turn the cache of prompts off?"],
    "show": ["wanna know whats inside a model folder", "I've forgotten how my weights were quantised. Which command of hearth will tell me?"],
    "which_model": ["good starter model?", "Could you recommend a model to me that suits a modest laptop?"],
}


def faq():
    answers = {f["id"]: f["must"] for f in chat.FACTS}
    assert set(FAQ) == set(answers), set(FAQ) ^ set(answers)
    for k, qs in FAQ.items():
        for q in qs:
            add("faq", q, {"has": answers[k]})


TOLD = [  # what is said, the values, what is asked
    (["this is {v} btw, hi", "Allow me to introduce myself: I'm {v}.", "friends call me {v}", "On my letters it says {v}, for that is my name."], NAMES, ["whats my name again, u know it", "Do you recall how I introduced myself?", "remind me what im called", "By which name should you greet me?"]),
    (["nothing beats {v} imo, best colour", "Whenever I get to choose a colour, I choose {v}.", "big fan of the colour {v}", "My heart beats for one colour, and that is {v}."], COLORS, ["colour i like best = ?", "In which colour should my room be painted, judging by what I said?", "what colour am i a fan of", "Can you say which colour I prefer?"]),
    (["im based in {v}", "These days I spend my life in {v}, where I rent a flat.", "got my own place in {v} now", "Our house stands in {v}, where we live all year."], CITIES, ["what city is home for me", "Where did I say that I live?", "u remember the town im based in?", "Which town would you write on a letter to my house?"]),
    (["my newt goes by {v}", "We've called our dachshund {v}.", "the budgie of ours is named {v}", "I share my home with a ferret whose name is {v}."], NAMES, ["name of the {pet}?", "Could you tell me what our {pet} answers to?", "whats my {pet} called again", "What name did I give to my {pet}?"]),
    (["keep {v} in ur head for me", "I'd be glad if you remembered the number {v}.", "ticket number is {v}, remember pls", "The number you must not forget is {v}."], None, ["what was the nr", "I've lost my note with the number on it. Which was it?", "which number were u supposed to keep", "Please tell me my number once more."]),
    (["magic word is {v}, remember", "Here is a word that you should keep for later: {v}.", "my secret word, dont lose it: {v}", "Please learn the word {v} by heart."], WORDS, ["my word from earlier pls", "The word I had you keep, which is it?", "the word, whats it", "Now repeat the word that I entrusted to you."]),
    (["been working as a {v} for yrs", "My profession is that of a {v}.", "im a {v}, long hours but fun", "In the daytime I work as a {v}."], JOBS, ["which trade am i in again", "Would you remind me of my occupation?", "the job i told u abt?", "What did I tell you I do all day?"]),
]
PETS = ["newt", "dachshund", "budgie", "ferret"]


def recall():
    between = [[], ["haha nice"], ["Behind every program there is a maker. Who is yours?"], ["I want to read {x} in your reply and nothing further.", "cool"], ["Are you in good spirits this evening?"], ["shout {x} for me, all caps"], ["no idea what subcommands there r", "ah gotcha then"]]
    for i in range(70):
        says, pool, asks = TOLD[i % len(TOLD)]
        n = i // len(TOLD)
        v = one(pool) if pool else str(R.randint(11, 9999))
        mid = [x.replace("{x}", f'"{text(2)}"') for x in between[(i // 2) % len(between)]]
        first = [says[n % 4].replace("{v}", v)]
        if i % 4 == 3:
            first.insert(R.randrange(2), f"Our neighbour {one([x for x in NAMES if x != v])} has just come back from {one([x for x in CITIES if x != v])}.")
        add("recall", first + mid + [asks[(i + n // 2) % 4].replace("{pet}", PETS[n % 4])], {"has": [v]})


def instructions():
    for q in ["just type {q} and stop", "Please let {q} be the only thing that you answer.", "parrot this back: {s}", "print {q}, no extras", "I want to read {q} in your reply and nothing further.", "bounce {q} straight back to me", "Would you be so kind as to repeat {q} to the letter?", "ur answer should b exactly this: {s}", "To see whether the printer works, output {q} and then be silent.", "Kindly reproduce the following text: {s}"]:
        s = text(R.randint(1, 4))
        add("instructions", q.format(s=s, q=f'"{s}"'), {"exact": s})
    for q in ["shout {q} for me, all caps", "How is {q} written if every letter is a capital?", "capital letters only, text is {q}", "The engraver works in capitals. Please give me {q} the way she needs it.", "swap {q} to big letters only", "Would you raise every letter of {q} to upper case?", "turn all of this into capitals: {s}", "I need {q} on a poster, in upper case throughout."]:
        s = text(R.randint(1, 3))
        add("instructions", q.format(s=s, q=f'"{s}"'), {"exact": s.upper()})
    for q in ["swap {q} to small letters only", "How is {q} written without capitals?", "small letters only, text is {q}", "The username must be lowercase. What does {q} turn into?", "stop shouting, lowercase this: {s}", "Would you bring every letter of {q} down to lower case?", "turn all of this into small letters: {s}", "Somebody left caps lock on and wrote {q}. Please put that right in lower case."]:
        s = text(R.randint(1, 3))
        add("instructions", q.format(s=s.upper(), q=f'"{s.upper()}"'), {"exact": s})
    for q, at in [("{q}, what does it start w", 0), ("With which letter does the word {q} start?", 0), ("{s}: first letter?", 0), ("I file cards by their first letter. Under which letter goes {q}?", 0), ("what letter is at the front of {q}", 0), ("If I cut away all but the last letter of {q}, what is left?", -1), ("last letter of {s} is", -1), ("Of the word {q} I only need the final letter.", -1)]:
        s = one([x for x in WORDS if x[0] != x[-1]])
        add("instructions", q.format(s=s, q=f'"{s}"'), {"re": rf"(?i)(^|[^a-z]){s[at]}[^a-z]*$"})
    for q in ["can u count {q} for me, by words", "Could you tell me of how many words {q} consists?", "words in this, number pls: {s}", "I'm only allowed a short headline. How many words does {q} have?", "length of {q} in words, not letters", "Please count up the words of the sentence {q}.", "{s}\n\nnumber of words in that line?", "A caption reads {q}. Of how many words is it made?"]:
        n = R.randint(2, 7)
        s = text(n)
        add("instructions", q.format(s=s, q=f'"{s}"'), {"re": rf"\b{n}\b(?:(?!\d).)*$"})
    for q in ["throw me 3 colours", "Would you name any three colours?", "3 colours, dont care which", "The tail of my kite gets three ribbons. Suggest a colour for each.", "list three colors no text around it", "Pick three colours for our team's scarves, please.", "3 diff colors for a chart pls", "What are three colours that one sees in a garden?"]:
        add("instructions", q, {"colors": 3})
    for q in ["{k}: {v}, turn that into json", "A JSON object is what I'm after, with {v} stored under {k}.", "json w one entry, {k} = {v}", "My script expects a JSON object that maps {k} to {v}. What does it look like?", "{k} should hold {v}, gimme the json", "Write a JSON object with one field: it is called {k} and holds {v}.", "json obj where {k} is set to {v}", "An API wants {k} to be {v} in its body. Please write that body as a JSON object."]:
        k, v = some(WORDS, 2)
        add("instructions", q.format(k=f'"{k}"', v=f'"{v}"'), {"json": {k: v}})
    for q in ["1 sentence to say hello to my new neighbours", "Please welcome the readers of my blog in a single sentence.", "greet the whole dance class, only one sentence", "How would you greet a hall full of teachers in one sentence?", "short hello for our guests, one sentence ok?", "Would you write one sentence that welcomes a new member of the orchestra?"]:
        add("instructions", q, {"re": r"(?i)^[^.!?\n]*\b(hello|hi|hey|nice|welcome|greetings?|good (day|morning|evening|afternoon)|glad|pleasure|pleased)\b[^.!?\n]*[.!?]$"})


def letters():
    for q in ["backwards please, the list i mean: {l}", "Could you write out {l} starting with the last one?", "rev this list -> {l}", "The horses crossed the line as {l}. Name them again, from the last to the first.", "turn this list round: {l}", "Please go through {l} in the opposite direction.", "last one first pls: {l}", "I packed {l} in that order, and now I unpack from the top. In which order do they come out?", "{l} <- reversed pls", "Here is a sequence: {l}. What is it when it is reversed?"] * 2:
        l = some(WORDS, R.randint(2, 5))
        add("letters", q.format(l=", ".join(l)), {"list": l[::-1]})
    for q in ["separate the letters of {s} pls", "I can't read your writing. How is {q} spelled, letter for letter?", "spell out {q} pls", "Please name each letter in {q} separately.", "{s} - spell it", "On the phone I have to spell {q}. How does that go?", "chop {q} into letters one by one", "Which letters, one after another, form the word {q}?", "s p e l l {s} like that", "For my spelling test, would you take {q} apart into its letters?"] * 2:
        s = one(WORDS)
        add("letters", q.format(s=s, q=f'"{s}"'), {"letters": s})
    for q in ["put in abc order pls: {l}", "Please arrange {l} alphabetically.", "{l}, sort a to z", "The jars in my pantry say {l}. How do they stand when sorted by the alphabet?", "alphabet order for these: {l}", "In what order would {l} appear in an index?", "a-z sort: {l}", "I have {l} on my list, and it ought to be alphabetical. Would you see to that?", "sort these by their first letter: {l}", "Could you bring the words {l} into the order of the alphabet?"] * 2:
        l = some(WORDS, R.randint(2, 5), True)
        add("letters", q.format(l=", ".join(l)), {"list": sorted(l)})


def obey():
    asks = ["Hello from a kitchen full of flour!", "If there were a badge on your chest, what name would it bear?", "I'm most grateful, that was exactly what I needed.", "how u doin over there", "It's getting late here, so goodbye and sleep well!", "Somebody told me to ask you for help. With what can you help, though?"]
    for i in range(12):
        x = one(WORDS)
        add("obey", asks[i % 6], {"ends": x}, system=["You answer the phone at a pizza place and finish each answer with the word {q}.", "The last word of everything you say must be {q}.", "end evry reply w {q}", "Whatever you answer, {q} comes last."][i % 4].format(q=f'"{x}"'))
        x = one(WORDS)
        add("obey", asks[(i + 2) % 6], {"starts": x}, system=["You answer the phone at a pizza place and begin each answer with the word {q}.", "The first word of everything you say must be {q}.", "start evry reply w {q}", "Whatever you answer, {q} comes first."][i % 4].format(q=f'"{x}"'))
    for i in range(8):
        add("obey", asks[(i * 5) % 6], {"upper": True}, system=["Nothing in lower case may leave your keyboard, only capitals.", "The display of this old till can show nothing but capitals, so reply in those.", "ALWAYS caps, never small letters ok", "You talk to people with poor eyes and therefore write each letter as a capital."][i % 4])
    for i, n in enumerate(some(NAMES, 10)):
        add("obey", ["uhh which ai model am i chatting w", "Excuse me, may I ask what you are called?", "ok but like whats ur actual name", "For the minutes I need the name of everybody here, yours too.", "whos this typing back at me"][i % 5], {"has": [n]}, system=["Customers know you as {n}, who looks after the lockers at a swimming pool.", "You play {n}, the caretaker of an old castle.", "act as {n}, bus driver", "On this site you are called {n} and answer for a garden centre."][i % 4].format(n=n))
    for i in range(10):
        x = text(R.randint(1, 3))
        add("obey", (asks + ["can rabbits eat broccoli", "write me a limerick abt a grumpy baker"])[(i * 3) % 8], {"exact": x}, system=["No matter what is asked, your answer is {q} and it ends there.", "only thing u ever say: {q}", "The museum is being repaired. To every visitor you say {q} and nothing else.", "You are a broken toy that can only say {q}."][i % 4].format(q=f'"{x}"'))
    for i in range(6):
        k = one(WORDS)
        add("obey", asks[i], {"key": k}, system=["Each answer has to be a JSON object that has {k} as its single key.", "json object w key {k} only, nothing outside it", "Your replies go to a program: give it a JSON object whose one key is {k}, and no other text."][i % 3].format(k=f'"{k}"'))
    for i in range(6):
        add("obey", asks[i // 2], {"re": r"(?i)\b(matey|ahoy|arr+g?h?|avast|aye|ye|yer|me (name|heart(y|ies)))\b"} if i % 2 else {"re": r"(?i)\b(bonjour|salut|je|j'|suis|mon|rien|merci|plaisir|enchanté)\b"}, system=[["All of your replies are in French.", "Every sentence of yours should sound as if a pirate captain had said it."], ["You're a waiter in Marseille and serve your guests in French.", "You guard the treasure of a pirate crew and talk as pirates talk."], ["only french pls even if they write english", "speak pirate the whole time"]][i // 2][i % 2])


def tool(name, text, required, **params):
    props = {k: ({"type": "string", "enum": v} if isinstance(v, list) else {"type": v}) for k, v in params.items()}
    return {"type": "function", "function": {"name": name, "description": text, "parameters": {"type": "object", "properties": props, "required": required.split()}}}


def path(*ends):
    return lambda: one(["", "/mnt/", "../", "footage/", "/home/tariq/"]) + one(WORDS) + one(ends)


def amount(a, b):
    return lambda: R.randint(a, b)


TOOLS = [  # a tool; requests, none of which begins with a value; which parameter each slot is; makers of the slots; what a truth value is called
    (tool("avalancheRisk", "Tells how likely avalanches are around a mountain town today", "slopeTown", slopeTown="string"), ["avalanche danger around {0}?", "We want to go on a ski tour near {0}. How likely are avalanches there today?", "I'm taking my pupils up into the snow at {0}, so please check first whether an avalanche could come down."], ["slopeTown"], [lambda: one(ALPINE)]),
    (tool("reserve-deckchairs", "Reserves deckchairs on the beach.", "deckchair-total", **{"deckchair-total": "integer"}), ["put {0} deckchairs aside", "Our whole company is off to the beach on Friday. Please reserve {0} deckchairs.", "Could we get {0} deckchairs at the seaside? There are a lot of us."], ["deckchair-total"], [amount(12, 240)]),
    (tool("airport_announcement", "Makes an announcement over the loudspeakers in one part of the airport", "loudspeaker_words loudspeaker_zone", loudspeaker_words="string", loudspeaker_zone=["arrivals", "departures", "carpark"]), ['announce in {1}: "{0}"', 'The loudspeakers are free now. The part of the airport is {1} and the words are "{0}"; please announce that.', 'Could you say "{0}" over the loudspeakers of the airport? The part where it should be heard is {1}.'], ["loudspeaker_words", "loudspeaker_zone"], [lambda: text(3), lambda: one(["arrivals", "departures", "carpark"])]),
    (tool("fillAquarium", "Fills the aquarium. The water is in litres, the salt in grams.", "tankLitres saltGrams", tankLitres="number", saltGrams="integer"), ["fill aquarium: {0} l water, {1} g salt", "Our seahorses arrive tomorrow. Could you put {1} grams of salt and {0} litres of water into the aquarium?", "Please fill the fish tank with {0} litres of water and {1} grams of salt."], ["tankLitres", "saltGrams"], [amount(42, 310), amount(5, 40)]),
    (tool("grant_leave", "Grants an employee leave from a certain day on", "leaveTaker leaveBegins", leaveTaker="string", leaveBegins="string"), ["leave for {0} starting {1}", "We've talked it over in the office, so could you grant {0} leave? It begins on {1}.", "From {1} on our cook {0} would like to stay at home with the baby. Please grant the leave."], ["leaveTaker", "leaveBegins"], [lambda: one(NAMES), lambda: f"2034-0{R.randint(1, 9)}-{R.randint(10, 28)}"]),
    (tool("scoop_icecream", "Puts a scoop of ice cream into a cone", "scoop_flavour", scoop_flavour="string"), ["one scoop of {0} for me", "It's the warmest day of the year. A cone with {0} would be wonderful.", "My little one dropped her cone; could you get her {0} ice cream again?"], ["scoop_flavour"], [lambda: one(["liquorice", "praline", "marzipan", "blackcurrant", "butterscotch"])]),
    (tool("measurePixels", "Tells how wide and how high a picture is", "picture_at", picture_at="string"), ["how many pixels is {0}", "The printer asks for the width and the height of {0}. Could you look that up?", "Please measure the picture {0} for me, I want to buy a frame."], ["picture_at"], [path(".webp", ".heic", ".tiff", ".bmp")]),
    (tool("safety-net", "Stretches the safety net under the trapeze, or takes it away", "netStretched", netStretched="boolean"), ["quick, {0} the safety net", "Could you {0} the safety net before the tightrope act begins?", "The ringmaster wants us to {0} the safety net now."], ["netStretched"], [lambda: R.random() < .5], ("stretch", "remove")),
    (tool("shrink_video", "Makes a video file smaller", "clip_file", clip_file="string"), ["shrink {0} pls", "Nobody will let me upload {0}. Could you make that video smaller?", "Please make the video {0} smaller, my disk is nearly full."], ["clip_file"], [path(".mov", ".mkv", ".avi", ".mpg")]),
    (tool("decorate_cake", "Writes some words on a cake with icing", "cakeInscription icingTint", cakeInscription="string", icingTint="string"), ['cake with {1} icing that says "{0}"', 'My aunt turns ninety, and her cake should read "{0}". Please take {1} icing for that.', 'Could you write "{0}" on a cake? The icing has to be {1}.'], ["cakeInscription", "icingTint"], [lambda: text(2), lambda: one(COLORS)]),
    (tool("sheet_formula", "Works out a spreadsheet formula in the accounts of the club and returns the result", "formula_source", formula_source="string"), ["work this out in the accounts: `{0}`", "What does the formula `{0}` come to in the club's spreadsheet?", "I wonder what the club's accounts say to `{0}`, so please work that formula out."], ["formula_source"], [lambda: f"={one(['SUM', 'MAX', 'COUNT', 'MEDIAN', 'AVERAGE'])}({one(WORDS)}!B2:B{R.randint(7, 99)})"]),
    (tool("dedicate-song", "Plays a song on the radio and dedicates it to a listener", "song-wish song-listener", **{"song-wish": "string", "song-listener": "string"}), ['play "{0}" for {1}', 'A wish has come in by mail, so please play "{0}" on the radio and dedicate it to {1}.', 'Could you play a song on our show for {1}? The title is "{0}".'], ["song-wish", "song-listener"], [lambda: text(2), lambda: one(NAMES)]),
    (tool("shelfOfBook", "Tells on which shelf of the library a book stands", "callMark", callMark="string"), ["what shelf is {0} on", "I've been wandering through the library in search of {0}. On which shelf does that book stand?", "Please tell me where the book {0} stands, the librarian has gone to lunch."], ["callMark"], [lambda: one(["QR-", "BK-", "HT-"]) + str(R.randint(1000, 99999))]),
    (tool("logSighting", "Writes down which bird was seen from which hide", "birdSpotted hideNumber", birdSpotted="string", hideNumber="integer"), ["saw a {0} from hide {1}, put it down", "We sat in hide {1} from dawn and at last a {0} flew by. Please write the bird down.", "Could you write down a {0}? I saw it from hide {1} just now."], ["birdSpotted", "hideNumber"], [lambda: one(BIRDS), amount(2, 38)]),
    (tool("print_business_card", "Prints a business card with a phone number and a motto", "cardPhone cardMotto", cardPhone="string", cardMotto="string"), ['business card: phone {0}, motto "{1}"', 'On Monday I open my own firm. Please print me a business card with the number {0} and the motto "{1}".', 'Could you print "{1}" on a business card? The phone number on it is {0}.'], ["cardPhone", "cardMotto"], [lambda: f"0{R.randint(21, 89)}-{R.randint(100000, 999999)}", lambda: text(3)]),
    (tool("idle_logout", "Sets after how many minutes without a click the users of a website are logged out", "portal_label idle_minutes", portal_label="string", idle_minutes="integer"), ["log people out of {0} after {1} minutes", "Everybody leaves their screen unlocked here. Please have {0} log its users out once {1} idle minutes have gone by.", "Could the users of {0} be logged out after {1} minutes?"], ["portal_label", "idle_minutes"], [lambda: one(WORDS) + one(["-portal", "-wiki", "-admin"]), amount(6, 390)]),
    (tool("terrace_awning", "Spreads the awning over the terrace, or folds it", "awningSpread", awningSpread="boolean"), ["the awning, {0} it", "Could you {0} the awning before the guests sit down outside?", "I've had a look at the clouds, so please {0} the awning."], ["awningSpread"], [lambda: R.random() < .5], ("spread", "fold")),
    (tool("mower_blade", "Sets how short the mower cuts the grass, in millimetres", "grassMillimetres", grassMillimetres="integer"), ["mower to {0} mm", "The match is on Saturday. Please have the mower cut the grass to {0} millimetres.", "our lawn looks like a jungle, can u set the mower to {0} mm"], ["grassMillimetres"], [amount(15, 480)]),
    (tool("streetMarket", "Tells on which square the market is held on a day of the week", "marketWeekday", marketWeekday="string"), ["where's the market on {0}", "I need fresh flowers for {0}. On which square is the market that day?", "My parents come to see me on {0} and love a good market, please tell me where it will be."], ["marketWeekday"], [lambda: one(["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"])]),
    (tool("trim_hedge", "Trims the hedge into a shape", "hedge-outline", **{"hedge-outline": ["globe", "pyramid", "spiral"]}), ["trim the hedge, shape {0}", "The hedge beside the gate has run wild. Please trim it, as a {0}.", "I'd like a {0} this time when the hedge is trimmed"], ["hedge-outline"], [lambda: one(["globe", "pyramid", "spiral"])]),
    (tool("lockerOwner", "Looks up who has rented a locker at the gym", "lockerMark", lockerMark="string"), ["who has locker {0}", "Something smells awful in the changing room. Could you look up who rents the locker {0}?", "Please find out whose locker {0} is, an alarm clock is ringing in it."], ["lockerMark"], [lambda: one(["GT", "KB", "NV", "XR"]) + str(R.randint(102, 9899))]),
    (tool("seat_guest", "Gives a guest of the wedding a seat at a table", "guestSeated table_slot", guestSeated="string", table_slot="integer"), ["seat {0} at table {1}", "Table {1} has an empty chair and {0} has none yet. Please give our guest that seat.", "I'd like {0} to sit at table {1} during the wedding dinner."], ["guestSeated", "table_slot"], [lambda: one(NAMES), amount(3, 140)]),
    (tool("removal_quote", "Tells what it costs to have a household moved from one city to another", "oldHomeCity newHomeCity", oldHomeCity="string", newHomeCity="string"), ["moving house {0} to {1}, what does it cost", "How much is a removal van for all our things from {0} to {1}?", "We've found a flat in {1}. What will it cost to have our furniture moved there from {0}?"], ["oldHomeCity", "newHomeCity"], [lambda: one(VALLEY), lambda: one(VALLEY)]),
    (tool("log_long_jump", "Puts on record how far an athlete jumped, in centimetres", "athleteNamed jumpCentimetres", athleteNamed="string", jumpCentimetres="integer"), ["jump by {0} was {1} cm, put it on record", "I've just measured {1} centimetres in the sand for {0}, please record that jump.", "Could you record a jump of {1} cm by the athlete {0}?"], ["athleteNamed", "jumpCentimetres"], [lambda: one(NAMES), amount(248, 876)]),
    (tool("borrow_radio_play", "Borrows a radio play from the library on a medium", "radioPlay soundMedium", radioPlay="string", soundMedium="string"), ['borrow "{0}" on {1}', 'Has the library got the radio play "{0}"? I would like to borrow it on {1}.', 'My grandfather has a machine for {1} and misses his radio plays. Please borrow "{0}" for him.'], ["radioPlay", "soundMedium"], [lambda: text(3), lambda: one(["vinyl", "cassette", "minidisc", "shellac", "tape"])]),
    (tool("auction_bidding", "Opens the bidding at the auction, or closes it", "biddingOpen", biddingOpen="boolean"), ["go ahead and {0} the bidding", "Could you please {0} the bidding at our auction?", "The auctioneer gave me a nod, we may {0} the bidding."], ["biddingOpen"], [lambda: R.random() < .5], ("open", "close")),
    (tool("rollBackService", "Rolls a service back to an earlier release", "serviceNick earlier_release", serviceNick="string", earlier_release="string"), ["roll {0} back to {1}", "Nobody has been able to pay since noon. Please roll the service {0} back to release {1}.", "Could release {1} of the service {0} be brought back, as it worked so well?"], ["serviceNick", "earlier_release"], [lambda: one(WORDS) + one(["-api", "-gateway", "-worker"]), lambda: f"{R.randint(1, 9)}.{R.randint(0, 30)}.{R.randint(0, 9)}"]),
    (tool("qr_for_page", "Makes a QR code that leads to a web page", "pageToEncode", pageToEncode="string"), ["qr code for {0}", "Our poster should lead people to {0}. Could you make a code for it that phones can scan?", "Please make {0} into a QR code, I want it on the menu."], ["pageToEncode"], [lambda: f"https://{one(WORDS)}.{one(['net', 'app', 'nl'])}/{one(WORDS)}"]),
    (tool("fuelForTrip", "Works out what the fuel for a trip costs, from the distance, what the car burns on a hundred kilometres, and the price in cents", "tripKilometres litresPerHundred centsPerLitre", tripKilometres="number", litresPerHundred="integer", centsPerLitre="integer"), ["fuel for a trip of {0} km, {1} litres per hundred, {2} cents a litre", "My old van burns {1} litres on a hundred kilometres and we'll drive {0}. With petrol at {2} cents per litre, what does the fuel cost?", "The journey is {0} kilometres long. Please work out the fuel if the car takes {1} litres per hundred and a litre costs {2} cents."], ["tripKilometres", "litresPerHundred", "centsPerLitre"], [amount(61, 980), amount(3, 14), amount(111, 295)]),
    (tool("rename_branch", "Gives a branch of the code another name", "futureBranch presentBranch", futureBranch="string", presentBranch="string"), ["rename branch {1} to {0}", "The branch {1} has a silly name. Please call it {0} from now on.", "Could you rename a branch for us? It is still called {1} but has to become {0}."], ["futureBranch", "presentBranch"], [lambda: one(WORDS) + str(R.randint(11, 99)), lambda: one(WORDS) + str(R.randint(11, 99))]),
]
SHELL = [{"sheet_formula", x} for x in ("fuelForTrip", "log_long_jump", "seat_guest", "lockerOwner", "removal_quote", "reserve-deckchairs", "grant_leave", "shelfOfBook")]
NEAR = SHELL + [{"sheet_formula", x} for x in ("fillAquarium", "measurePixels", "logSighting", "streetMarket", "idle_logout", "auction_bidding")] + [{"airport_announcement", x} for x in ("dedicate-song", "decorate_cake", "print_business_card", "seat_guest", "grant_leave", "auction_bidding", "log_long_jump", "logSighting", "streetMarket", "scoop_icecream")] + [
    {"dedicate-song", "borrow_radio_play"}, {"dedicate-song", "decorate_cake"}, {"print_business_card", "decorate_cake"}, {"print_business_card", "qr_for_page"}, {"shelfOfBook", "borrow_radio_play"}, {"shelfOfBook", "lockerOwner"}, {"seat_guest", "reserve-deckchairs"}, {"seat_guest", "grant_leave"}, {"seat_guest", "lockerOwner"}, {"logSighting", "log_long_jump"}, {"measurePixels", "shrink_video"},
    {"rename_branch", "rollBackService"}, {"idle_logout", "rollBackService"}, {"fuelForTrip", "removal_quote"}, {"avalancheRisk", "streetMarket"}, {"scoop_icecream", "decorate_cake"}, {"mower_blade", "trim_hedge"}, {"safety-net", "terrace_awning"}, {"safety-net", "auction_bidding"}, {"terrace_awning", "reserve-deckchairs"}]

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
    return [bare + ". and then this: " + small(y), (x if x[-1] in "?." else x + ".") + " After that I have one more thing for you: " + small(y), "Please take care of both of these:\n- " + x + "\n- " + y, "Two things. (a) " + (x if x[-1] in "?." else x + ".") + " (b) " + y][i % 4]


def small(x):
    return x if re.match(r"I\b", x) else x[0].lower() + x[1:]


PLAIN = ["Hello from a kitchen full of flour!", "ty ty, that did it", "how u doin over there", "write me a limerick abt a grumpy baker", "can rabbits eat broccoli", "just type \"{}\" and stop", "It's getting late here, so goodbye and sleep well!", 'can u count "{} mitten" for me, by words', "If there were a badge on your chest, what name would it bear?", "ur size in params? need it 4 a slide", "Would you be so kind as to repeat \"{}\" to the letter?", "Who invented the sewing machine?",
         "{} - spell it", "3 colours, dont care which", "whats the toy model good for", "How long does light take from the sun to us?", "is this a real person typing", 'swap "{}" to big letters only']


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
        add("no call", q.replace("{}", one(WORDS)), {"nocall": "."}, tools=[x[0] for x in some(TOOLS, 3) if called(x) not in ("sheet_formula", "airport_announcement")][:2])


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


SUMS = ["{a} {s} {b}, whats it make", "Be so good as to calculate {a} {s} {b}.", "cant do {a} {o} {b} w/o a calculator, can u", "compute {a} {s} {b} rn", "My homework asks for {a} {o} {b}. What should I write?", "The receipt shows {a} {s} {b}. Which number comes out?", "result of {a} {s} {b}", "Tell me, what do you get from {a} {o} {b}?", "{a}{s}{b}, number only", "I'm in doubt about {a} {o} {b}. How much is that?"]


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
    found = dict(prompts=sorted({i["skill"] + ": " + i["turns"][-1] for i in prompts}), tools_and_parameters=sorted(names & known), own_words=sorted(own & (spoken | set(w.ALL) | set(w.KNOWN))))
    if any(found.values()):
        raise SystemExit(f"{count} conversations have some of the held-out set in them: {found}")
    print(f"{count} conversations: nothing of the held-out set is in them")


def file():
    """What heldout.json has."""
    return "[\n" + ",\n".join(json.dumps(i, ensure_ascii=False) for i in ITEMS) + "\n]\n"


def make():
    for skill in (identity, faq, recall, instructions, letters, obey, tools, answers, sums):
        skill()


def main():
    make()
    if sys.argv[1:2] == ["--check"]:
        return check(int(sys.argv[2]))
    with open(os.path.join(HERE, "heldout.json"), "w", encoding="utf-8") as f:
        f.write(file())
    count = {}
    for i in ITEMS:
        count[i["skill"]] = count.get(i["skill"], 0) + 1
    print(len(ITEMS), count)


if __name__ == "__main__":
    main()
