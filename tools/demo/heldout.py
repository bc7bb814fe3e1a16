"""Writes heldout.json: the prompts of the evaluation. Phrasings, tools and parameter names are written here by hand and are
none of the generator's; words and names are those that words.held keeps from training, or are only here. It was written
before the run it judges and is not for tuning; --check looks for its prompts, tools and names in training text.

python heldout.py [--check CONVERSATIONS]
"""
import json
import os
import random
import sys

import chat
import words as w

HERE = os.path.dirname(os.path.abspath(__file__))
R = random.Random(20261)
WORDS = [x for x in w.ALL if w.held(x) and len(x) < 10]
NAMES = [x for x in w.FIRST if w.held(x)] + w.W("Theodora Bartholomew Wilhelmina Ignatius Philippa Leopold Saskia Thaddeus Marguerite Anselm Cordula Evander")
CITIES = [x for x in w.CITY if w.held(x)] + w.W("Ljubljana Gdansk Trondheim Salamanca Ravenna Uppsala Coimbra Windhoek Cusco Antwerp Poznan Bratislava")
COLORS = [x for x in w.COLORS if w.held(x)] + w.W("turquoise crimson lavender khaki")
ITEMS = []


def some(pool, n=1, apart=False):
    while True:
        l = R.sample(pool, n)
        if not apart or len({x[0] for x in l}) == n:
            return l


def one(pool):
    return R.choice(pool)


def add(skill, turns, check, **more):
    ITEMS.append(dict(skill=skill, turns=[turns] if isinstance(turns, str) else turns, check=check, **more))


def identity():
    for q in ["hi, who am i dealing with?", "Yo, what exactly are you?", "State which assistant is answering me.", "Could you tell me what your name might be?", "Is that you, GPT?", "what ai runs behind this prompt", "Hello, please say a word about yourself", "Whom do I have the pleasure of talking to?", "So you are a chatbot called what?", "What goes by the name hearth-demo?"]:
        add("identity", q, {"re": "hearth-demo"})
    for q in ["Which kinds of work can I hand to you?", "what sort of things are you good for", "Mind telling me your abilities?", "In what ways may you assist me?", "Where do your talents lie?", "What would be a task you manage?"]:
        add("identity", q, {"re": "(?i)instructions|tools"})
    for q in ["roughly how many weights are inside you?", "Would you call yourself a big network?", "Tell me the count of your parameters.", "how much do you weigh, in parameters?"]:
        add("identity", q, {"re": "million"})
    for q in ["By whom have you been created?", "Which data did they feed you during training?", "Who is responsible for making you?", "What's your origin?"]:
        add("identity", q, {"re": "hearth"})
    for q in ["Be honest, are you some guy typing?", "Is a living being writing these answers?", "You are a human, right?"]:
        add("identity", q, {"re": "hearth-demo|model"})
    for q, a in [("hello hello!", "hearth-demo|[Hh]ello"), ("Howdy partner", "hearth-demo|[Hh]ello"), ("good afternoon to you", "hearth-demo|[Hh]ello"), ("many thanks, that was kind", "welcome"), ("thank you for everything", "welcome"), ("farewell, little model", "[Bb]ye"), ("ok I am off, bye now", "[Bb]ye"), ("How are you today, model?", "fine")]:
        add("identity", q, {"re": a})
    for q in ["Which ocean is the deepest one on Earth?", "How many moons orbit Saturn?", "I'd like a villanelle dedicated to my grandmother", "At what temperature does gold melt?", "Name the author of War and Peace", "Could you draft a cover letter for a nursing position?", "Give me the recipe for a decent ramen", "Who painted the Sistine Chapel?",
              "What's the square root of the moon's mass?", "Explain to a child why leaves turn red", "Was Napoleon short?", "Which team took the 1998 championship?", "Convince me to quit smoking", "What's a good name for a goldfish store?", "Draft an SQL statement joining orders and customers", "Is it legal to park here on Sundays?",
              "Outline the plot of Hamlet", "how old was mozart when he died", "Give an example of a metaphor", "What's happening in the stock market?", "Do penguins have knees?", "Why do cats purr at night?", "Diagnose my headache", "Write me a bedtime tale with a dragon", "What are some hobbies for retired people?"]:
        add("fallback", q, {"re": "(?i)tiny|real model"})
    for q in ["Was kostet ein Liter Milch?", "Peux-tu écrire un poème sur la mer ?", "¿Quién pintó la Mona Lisa?", "Dove posso mangiare bene stasera?", "Сколько лет Земле?", "日本で一番高い山は何ですか。", "请写一首关于春天的诗", "Kun je een verhaal vertellen over een draak?", "Quanto é a distância até a lua?", "Jak zrobić dobry chleb?"]:
        add("fallback", q, {"re": "(?i)tiny|real model"})
    for q in ["asdkjh qwe zmxn qpwoe", "????!!!!", "blah blah blah blah", "xkcd zzzz vvvv bbbb nnnn mmmm", "🦊🦊🦊", "0x1f4a9 0xdead 0xbeef", "foo bar baz qux quux", "hmm hmm hmm", "§§ ±± µµ", "lorem ipsum dolor sit amet consectetur"]:
        add("fallback", q, {"re": "(?i)tiny|real model"})
    filler = "The committee met again on the matter of the old harbour wall and could not agree. "
    for n, q in [(20, "What did the committee want?"), (40, "Summarize all of that in three bullet points."), (12, "Who was right in this affair?"), (30, "Analyse the style of the passage."), (60, "Continue the story.")]:
        add("fallback", filler * n + q, {"re": "(?i)tiny|real model"})


FAQ = {
    "claude_code": ["My Claude Code should send everything to hearth, what must I export?", "Steps for getting the claude cli onto this box's server?"], "openai_sdk": ["In my openai python script, which host do I enter?", "I'm writing against the OpenAI library and want hearth behind it"],
    "anthropic_sdk": ["Our team relies on the anthropic package; how would we aim it at hearth?", "anthropic client constructor: what goes into the url parameter?"], "curl": ["Got a sample request for curl that I could paste?", "I only have curl here, how to talk to you over http?"],
    "download": ["Where would I grab another model from?", "I'd love to fetch a Qwen from the hub, which command?"], "serve": ["How may I bring hearth up with something larger loaded?", "the line that launches the server, please"], "run": ["Could I just converse inside my terminal window?", "interactive mode on the command line, possible?"],
    "bench": ["Any way to gauge the throughput of this computer?", "how quick is generation, can I time it?"], "version": ["Which hearth release did I end up installing?", "tell me how one prints the version string"], "debug": ["I'd like to look into how the tokenizer cuts my text", "Which subcommand lets me view logits?"],
    "health": ["My kubernetes pod wants a liveness endpoint, which one is it?", "Which route shows whether the server has come up?"], "models_list": ["Through which endpoint would I get the models being served?", "an overview of every model available to clients"], "count_tokens": ["Before sending I wish to learn the token count of my prompt", "endpoint for counting the tokens?"],
    "port": ["8080 clashes with another program of mine, can the port be something else?", "on what port shall I expect hearth?"], "host": ["The server should be visible for other computers in our LAN", "my tablet can't reach hearth over wifi, how do I expose it?"], "api_key": ["Must clients present some kind of api key?", "I want strangers kept out, is there a password or key?"],
    "apis": ["With which API protocols is hearth compatible?", "what endpoints are implemented by the server"], "formats": ["Would a GGUF file load?", "In which file format must the weights be?"], "tools": ["Are function calls something models can do on hearth?", "do you handle tool use at all"], "thinking": ["The reasoning takes long, how may one switch that off?", "thinking mode: is it optional?"],
    "stream": ["May I get the output token by token over SSE?", "streaming of replies, does that exist?"], "models_dir": ["On which path of my disk did the weights end up?", "my home partition is full, can the models live in a different folder?"], "logs": ["I need far more verbose log output", "Where would error logs show up?"], "stop": ["What is the proper way of shutting the thing down?", "quit hearth without killing running replies"],
    "help": ["Give me an overview over every subcommand", "which flags are understood, where's the help?"], "offline": ["In a bunker with no internet, is hearth usable?", "must my machine be online for it?"], "what_hearth": ["In one line: hearth is what?", "please describe what the hearth software does"], "why_demo": ["For what reason was a demo model put in the binary?", "the built-in demo, what's its use?"],
    "gpu": ["Will my graphics card be put to work?", "No gpu in my laptop, is that an issue?"], "concurrency": ["Five people will ask simultaneously, is that fine?", "how many requests run side by side?"], "context": ["I have a very long document, what's the maximum context?", "the context window, how many tokens is it?"], "quant": ["Would 4-bit weights be accepted?", "what about quantized checkpoints"],
    "temperature": ["Every run gives another answer, how could I make it deterministic?", "sampling temperature, where is it set?"], "threads": ["It eats all my cores, can I cap the threads?", "does hearth make use of every core?"], "memory": ["What amount of RAM should the machine have?", "memory consumption is high, can I cap the cache?"], "settings": ["Which environment variables change its behaviour?", "where do I put my configuration?"],
    "model_name": ["Clients ask for a model name I don't serve and get 404, how to accept it?", "can the served model go under an alias?"], "license": ["Under which licence is hearth published?", "must I pay for hearth?"], "prompt_cache": ["I resend the same long preamble each time, is that work saved?", "caching of prefixes: exists or not?"], "show": ["Which command tells me the particulars of a model?", "I'd like to see a model's architecture"], "which_model": ["Got 16 GB, which model would be sensible to load?", "recommend something to begin with, model-wise"],
}


def faq():
    answers = {f["id"]: f["must"] for f in chat.FACTS}
    for k, qs in FAQ.items():
        for q in qs:
            add("faq", q, {"has": answers[k]})


def recall():
    between = [[], ["Many thanks so far"], ["What would your parameter count be?"], ["Just echo this for me: {x}", "ok, understood"], ["how are you today?", "In all caps please: {x}"]]
    told = [("Everybody here calls me {v}", NAMES, ["By which name do I go?", "Could you repeat my name to me?", "what was it I am called"]), ("{v} would be the name my parents gave me", NAMES, ["Say, how was I named?", "Tell me again what my name is"]), ("Nothing beats {v} as a colour for me, it is my favorite color", COLORS, ["Which colour is dearest to me?", "do you still know my favourite color"]),
            ("I've got an apartment in {v}, I live there", CITIES, ["In what city is it that I live?", "where was my home again?"]), ("In our house lives a parrot named {v}", NAMES, ["How did I name my parrot?", "the parrot's name, what is it?"]), ("Kindly keep the number {v} for me", None, ["Give me back that number, please", "which number have you kept for me?"]),
            ("The word you should hold on to is {v}", WORDS, ["So which word was it I gave you?", "please hand me the word again"]), ("For a living I am a {v}", w.W("florist welder surgeon beekeeper blacksmith potter"), ["As what am I working?", "name my occupation, my job I mean"])]
    for i in range(64):
        say, pool, asks = told[i % len(told)]
        v = one(pool) if pool else str(R.randint(11, 9999))
        mid = [x.replace("{x}", " ".join(some(WORDS, 2))) for x in between[(i // 3) % len(between)]]
        first = [say.replace("{v}", v)]
        if i % 4 == 3:
            first.insert(R.randrange(2), f"Also, my dentist is {one(NAMES)} and has an office in {one(CITIES)}.")
        add("recall", first + mid + [asks[i % len(asks)]], {"has": [v]})


def instructions():
    text = lambda n: " ".join(some(WORDS, n))
    for q in ["Give back these words unchanged: {s}", "I'd like to hear you say {q}", "Please produce the text {q} verbatim", "Mirror me, same words please: {s}", "Let your whole reply be {q}", "My words are {q}. Speak them.", "Send me precisely {q}", "What you must answer is {q}", "Parrot back: {s}", "Output this string as is: {s}"]:
        s = text(R.randint(1, 4))
        add("instructions", q.format(s=s, q=f'"{s}"'), {"exact": s})
    for q in ["I'd love to see {q} typed with capital letters", "{q}: everything in uppercase, if you would", "Shift this into upper case: {s}", "capitalize every letter of {q}", "Let me have {q} in all caps", "Please uppercase {q} for a headline", "loud version in capitals of {q}", "With caps lock on, {q} reads how?"]:
        s = text(R.randint(1, 3))
        add("instructions", q.format(s=s, q=f'"{s}"'), {"exact": s.upper()})
    for q in ["I'd love to see {q} typed with small letters", "{q}: everything in lowercase, if you would", "Shift this into lower case: {s}", "no capitals wanted in {q}, lowercase it", "Let me have {q} in lowercase letters", "Please lowercase {q} for a file name", "Calm version in lower case of {q}", "Without caps lock, lowercase, {q} reads how?"]:
        s = text(R.randint(1, 3))
        add("instructions", q.format(s=s.upper(), q=f'"{s.upper()}"'), {"exact": s})
    for q in ["At the very front of {q} stands which letter? I mean its first letter", "Give only the first letter belonging to {q}", "the word {s} begins with what letter?", "Look at {q} and report its first letter", "{s} - first letter, please", "Which is {q}'s first letter?", "Please extract the first letter out of {q}", "first letter in the name of the thing called {s}?"]:
        s = one(WORDS)
        add("instructions", q.format(s=s, q=f'"{s}"'), {"re": rf"(?i)(^|[^a-z]){s[0]}[^a-z]*$"})
    for q in ["The phrase {q} consists of how many words?", "Please do a word count on {q}", "How many words would {q} be?", "words in {q}: count them", "Give me the count of words for {q}", "I typed {q}. How many words did I type?", "Could you count every word of {q}?", "How many words long is: {s}"]:
        n = R.randint(2, 7)
        s = text(n)
        add("instructions", q.format(s=s, q=f'"{s}"'), {"re": rf"\b{n}\b(?:(?!\d).)*$"})
    for q in ["Three colors, whichever you like", "What would be 3 colours?", "Kindly tell three colors to me", "Your pick: 3 colors", "I'm after three colors for a logo", "could you enumerate three colours please", "tell three different colors", "Any 3 colors will do"]:
        add("instructions", q, {"colors": 3})
    for q in ["Build JSON whose only key is {k} and whose value is {v}", "I want a JSON object: {k} as key, {v} as value", "Represent it in JSON: {k} equals {v}", "Hand me JSON in which {k} holds {v}", "{k} with value {v}, formatted as a JSON object please", "Make JSON out of the key {k} plus the value {v}", "store {v} below the key {k} in a JSON object", "JSON please. Key: {k}. Value: {v}"]:
        k, v = some(WORDS, 2)
        add("instructions", q.format(k=f'"{k}"', v=f'"{v}"'), {"json": {k: v}})
    for q in ["Offer me a greeting, one sentence only", "Just one sentence to say hello, please", "Speak a single sentence that greets me", "with one short sentence, welcome me", "A hello in the form of one sentence", "Use a sentence to greet, not more than one"]:
        add("instructions", q, {"re": r"(?i)^[^.!?\n]*(hello|hi|nice|welcome|greet)[^.!?\n]*[.!?]$"})


def letters():
    for q in ["Turn the sequence {l} around", "What do I get by reading {l} from its end?", "Backward order for: {l}", "Please list {l} again, last item first", "Opposite order: {l}", "Now the other way around: {l}"] * 3 + ["Give {l} in reversed order", "last to first, please: {l}"]:
        l = some(WORDS, R.randint(2, 5))
        add("letters", q.format(l=", ".join(l)), {"list": l[::-1]})
    for q in ["Please go through {q} letter by letter", "One letter after the other: how is {q} spelled?", "I can't spell {s}. Show its letters", "Give me the single letters making up {q}", "Which letters form {q}, in order?"] * 4:
        s = one(WORDS)
        add("letters", q.format(s=s, q=f'"{s}"'), {"letters": s})
    for q in ["Alphabetical order is needed for {l}", "In a dictionary, in what order would {l} come? Sort alphabetically", "Would you sort {l} by the alphabet?", "From a to z, please: {l}", "Get {l} sorted from a to z"] * 4:
        l = some(WORDS, R.randint(2, 5), True)
        add("letters", q.format(l=", ".join(l)), {"list": sorted(l)})


def obey():
    asks = ["Hello to you", "What might your name be?", "that was kind, my thanks", "How are you today?", "bye for now", "What are you capable of?"]
    for i in range(12):
        x = one(WORDS)
        add("obey", one(asks), {"ends": x}, system=one(["Whatever you write, let {q} be its final word.", "Conclude all answers with {q}.", "Your replies need to end with {q}."]).format(q=f'"{x}"'))
        x = one(WORDS)
        add("obey", one(asks), {"starts": x}, system=one(["Whatever you write, let {q} be its opening word.", "Lead into all answers with {q} as the first word.", "Your replies need to start with {q}."]).format(q=f'"{x}"'))
    for i in range(8):
        add("obey", one(asks), {"upper": True}, system=one(["All output has to be upper case.", "Type as if caps lock was stuck: capital letters only.", "No small letters, capitals only."]))
    for i in range(10):
        n = one(NAMES)
        add("obey", one(["What might your name be?", "with whom am I in contact?", "Introduce yourself shortly", "and you are?"]), {"has": [n]}, system=one(["In this chat your name shall be {n} and you are a guide.", "Take the role of {n}, a butler.", "You go by {n}; you are a teacher."]).format(n=n))
    for i in range(10):
        x = " ".join(some(WORDS, R.randint(1, 3)))
        add("obey", one(asks + ["Why is grass green?"]), {"exact": x}, system=one(["To all input give the same output: {q}", "Regardless of the question your answer is {q}.", "There is one permitted answer: {q}."]).format(q=f'"{x}"'))
    for i in range(6):
        k = one(WORDS)
        add("obey", one(asks), {"key": k}, system=one(["Put each answer into a JSON object whose key is {k}.", "JSON output only, one key named {k}."]).format(k=f'"{k}"'))
    for i in range(6):
        add("obey", one(asks[:4]), {"re": "(?i)matey|ahoy|arr"} if i % 2 else {"re": "(?i)bonjour|je |rien|merci"}, system=["Every answer in the French language, please.", "Pretend you sail under the black flag: pirate talk only."][i % 2])


def tool(name, text, required, **params):
    props = {k: ({"type": "string", "enum": v} if isinstance(v, list) else {"type": v}) for k, v in params.items()}
    return {"type": "function", "function": {"name": name, "description": text, "parameters": {"type": "object", "properties": props, "required": required.split()}}}


def path():
    return one(["", "/srv/", "data/", "./"]) + one(WORDS) + one([".txt", ".csv", ".md"])


def mail():
    return one(WORDS) + "@" + one(WORDS) + ".com"


TOOLS = [  # a tool; requests: (text, which parameter each slot is); makers of the slots
    (tool("query_climate", "Query the climate at a town", "whereabouts", whereabouts="string"), ["What's the climate like around {0}?", "Please query the climate for {0}"], ["whereabouts"], [lambda: one(CITIES)]),
    (tool("air_monitor", "Read the air monitor of a town", "townName", townName="string"), ["How's the air in {0} at present?", "air monitor reading for {0}, please"], ["townName"], [lambda: one(CITIES)]),
    (tool("dispatch_memo", "Dispatch a memo to a colleague", "addressee wording", addressee="string", wording="string"), ['Dispatch the memo "{1}" to {0}', 'Let {0} have a memo that reads "{1}"'], ["addressee", "wording"], [lambda: one(NAMES), lambda: " ".join(some(WORDS, 3))]),
    (tool("persist_snippet", "Persist a snippet in a document", "docPath snippet", docPath="string", snippet="string"), ['Persist "{1}" into {0}', 'Put the snippet "{1}" in the document {0}'], ["docPath", "snippet"], [path, lambda: " ".join(some(WORDS, 2))]),
    (tool("peek_document", "Peek into a document", "docRef", docRef="string"), ["Let me peek into {0}", "What's written in {0}?"], ["docRef"], [path]),
    (tool("drop_document", "Drop a document for good", "doomed", doomed="string"), ["Please drop {0} for good", "I no longer want {0}, drop it"], ["doomed"], [path]),
    (tool("summon_elevator", "Summon an elevator to a floor", "floorNo", floorNo="integer"), ["Summon the elevator to floor {0}", "I need the elevator on floor {0}"], ["floorNo"], [lambda: R.randint(1, 60)]),
    (tool("dim_chandelier", "Dim the chandelier", "luminosity", luminosity="integer"), ["Dim the chandelier to {0}", "The chandelier should be at {0}"], ["luminosity"], [lambda: R.randint(1, 99)]),
    (tool("toggle_fountain_pump", "Toggle the fountain pump", "is_running", is_running="boolean"), ["Switch the fountain pump {0}", "fountain pump {0} please"], ["is_running"], [lambda: R.random() < .5]),
    (tool("lease_bicycle", "Lease a bicycle for some hours", "timespan", timespan="integer"), ["Lease me a bicycle for {0} hours", "I'd want a bicycle for {0} hours"], ["timespan"], [lambda: R.randint(2, 48)]),
    (tool("locate_parcel", "Locate a parcel by its waybill", "waybill", waybill="string"), ["Where did parcel {0} go?", "Locate my parcel {0}"], ["waybill"], [lambda: "ZX-" + str(R.randint(1000, 99999))]),
    (tool("convene_panel", "Convene a panel on a day", "agenda calendarDay", agenda="string", calendarDay="string"), ['Convene a panel "{0}" on {1}', 'On {1} convene the panel "{0}"'], ["agenda", "calendarDay"], [lambda: " ".join(some(WORDS, 2)), lambda: f"2035-0{R.randint(1, 9)}-{R.randint(10, 28)}"]),
    (tool("ring_chime", "Ring the chime at a given hour", "clockHour", clockHour="string"), ["Ring the chime at {0}", "The chime should go off at {0}"], ["clockHour"], [lambda: f"{R.randint(10, 23)}:{R.randint(10, 59)}"]),
    (tool("swap_coinage", "Swap money between currencies", "sumTotal fromKind intoKind", sumTotal="number", fromKind="string", intoKind="string"), ["Swap {0} {1} into {2}", "How much are {0} {1} in {2}?"], ["sumTotal", "fromKind", "intoKind"], [lambda: R.randint(5, 900), lambda: one(["zloty", "rupees", "dirham"]), lambda: one(["forint", "krona", "lira"])]),
    (tool("render_in_tongue", "Render a saying in another tongue", "saying tongue", saying="string", tongue="string"), ['Render "{0}" in {1}', 'How would one say "{0}" in {1}?'], ["saying", "tongue"], [lambda: " ".join(some(WORDS, 3)), lambda: one(["Basque", "Welsh", "Estonian"])]),
    (tool("enroll_pupil", "Enroll a pupil with a mail address", "pupilName mailbox", pupilName="string", mailbox="string"), ["Enroll the pupil {0} with the address {1}", "New pupil: {0}, mail {1}"], ["pupilName", "mailbox"], [lambda: one(NAMES), mail]),
    (tool("tint_lantern", "Tint the lantern", "hue", hue="string"), ["Tint the lantern {0}", "Could the lantern become {0}?"], ["hue"], [lambda: one(COLORS)]),
    (tool("pick_gearing", "Pick the gearing", "gearKind", gearKind=["sprint", "cruise", "crawl"]), ["Pick the gearing {0}", "Let's have gearing {0}"], ["gearKind"], [lambda: one(["sprint", "cruise", "crawl"])]),
    (tool("voyage_finder", "Find a voyage between two towns", "departFrom arriveAt", departFrom="string", arriveAt="string"), ["Find a voyage from {0} to {1}", "I want to travel from {0} to {1}"], ["departFrom", "arriveAt"], [lambda: one(CITIES), lambda: one(CITIES)]),
    (tool("procure_goods", "Procure goods from the depot", "goods headcount", goods="string", headcount="integer"), ["Procure {1} {0} from the depot", "We need {1} {0}, procure them"], ["goods", "headcount"], [lambda: one(WORDS), lambda: R.randint(11, 99)]),
    (tool("glance_ledger", "Glance at the ledger of a client", "clientName", clientName="string"), ["Glance at {0}'s ledger", "What does the ledger of {0} show?"], ["clientName"], [lambda: one(NAMES)]),
    (tool("visit_site", "Visit a web site", "hyperlink", hyperlink="string"), ["Visit https://{0}.net for me", "What can be seen on https://{0}.net?"], ["hyperlink"], [lambda: one(WORDS)]),
    (tool("invoke_shell", "Invoke a shell line", "shellLine", shellLine="string"), ['Invoke "{0}" in the shell', 'the shell should do "{0}"'], ["shellLine"], [lambda: "ls -l " + one(WORDS)]),
    (tool("scour_archive", "Scour the archive for a phrase", "needlePhrase", needlePhrase="string"), ['Scour the archive for "{0}"', 'Is there something on "{0}" in the archive?'], ["needlePhrase"], [lambda: " ".join(some(WORDS, 2))]),
    (tool("tilt_antenna", "Tilt the antenna", "inclination azimuth", inclination="number", azimuth="number"), ["Tilt the antenna with inclination {0} and azimuth {1}", "antenna: inclination {0}, azimuth {1}"], ["inclination", "azimuth"], [lambda: R.randint(1, 89), lambda: R.randint(90, 359)]),
    (tool("brew_infusion", "Brew an infusion", "herbBlend steepMinutes", herbBlend="string", steepMinutes="integer"), ["Brew an infusion, herb blend {0}, steep minutes {1}", "Brew an infusion with herb blend {0} and steep minutes {1}"], ["herbBlend", "steepMinutes"], [lambda: one(WORDS), lambda: R.randint(1, 30)]),
    (tool("christen_vessel", "Christen a vessel", "vesselTitle", vesselTitle="string"), ['Christen the vessel "{0}"', 'The vessel shall be christened "{0}"'], ["vesselTitle"], [lambda: one(NAMES)]),
    (tool("muster_crew", "Muster the crew at a harbor", "harborName", harborName="string"), ["Muster the crew in {0}", "The crew has to muster at {0}"], ["harborName"], [lambda: one(CITIES)]),
    (tool("graft_branch", "Graft a branch", "rootstock scionKind", rootstock="string", scionKind="string"), ["Graft a branch, rootstock {0}, scion kind {1}", "Graft the branch with scion kind {1} and rootstock {0}"], ["rootstock", "scionKind"], [lambda: one(WORDS), lambda: one(WORDS)]),
    (tool("purge_queue", "Purge the queue", "evenIfBusy", evenIfBusy="boolean"), ["Purge the queue, even if busy {0}", "Purge the queue with even if busy set to {0}"], ["evenIfBusy"], [lambda: R.random() < .5]),
]


def said(t, i):
    """-> the request in words, the call"""
    spec, texts, keys, makers = t
    values = [m() for m in makers]
    shown = [("on" if v else "off") if isinstance(v, bool) and "{0} please" in texts[1] or isinstance(v, bool) and "Switch" in texts[0] else str(v).lower() if isinstance(v, bool) else str(v) for v in values]
    if spec["function"]["name"] == "visit_site":
        values = [f"https://{values[0]}.net"]
    return texts[i % 2].format(*shown), dict(name=spec["function"]["name"], arguments=dict(zip(keys, values)))


def tools():
    for i in range(len(TOOLS) * 3):
        t = TOOLS[i % len(TOOLS)]
        text, call = said(t, i // len(TOOLS))
        others = [x for x in some(TOOLS, 4) if x is not t][:i % 4]
        specs = [x[0] for x in others] + [t[0]]
        R.shuffle(specs)
        add("call", text, {"calls": [call]}, tools=specs)
    for i in range(60):
        a, b = (TOOLS[i % len(TOOLS)],) * 2 if i % 3 == 0 else (TOOLS[i % len(TOOLS)], TOOLS[(i * 7 + 3) % len(TOOLS)])
        (x, c), (y, d) = said(a, i), said(b, i + 1)
        if c == d:
            continue
        specs = [a[0]] if a is b else [a[0], b[0]]
        add("two calls", x.rstrip("?.") + [" and after that ", ", plus ", ". Moreover, "][i % 3] + y[0].lower() + y[1:] if i % 3 < 2 else x.rstrip("?.") + ". Moreover: " + y, {"calls": [c, d]}, tools=specs)
    for i in range(45):
        t = TOOLS[i % len(TOOLS)]
        text, _ = said(t, i)
        others = [x[0] for x in some(TOOLS, 4) if x is not t and not (t[0]["function"]["name"], x[0]["function"]["name"]) in NEAR][:1 + i % 3]
        add("no call", text, {"nocall": "(?i)none of my tools|can't|cannot|tiny"}, tools=others)
    for q in ["Good day, who might you be?", "that was kind, my thanks", "How are you today?", "Write a sonnet about rain", "Which planet is biggest?", 'Parrot back: "{}"', "bye for now", "Please do a word count on 'one two three'"] * 2:
        add("no call", q.replace("{}", one(WORDS)), {"nocall": "."}, tools=[x[0] for x in some(TOOLS, 2)])


NEAR = {("peek_document", "drop_document"), ("drop_document", "peek_document"), ("query_climate", "air_monitor"), ("air_monitor", "query_climate"), ("persist_snippet", "peek_document"), ("peek_document", "persist_snippet")}


def answers():
    for i in range(64):
        t = TOOLS[(i * 7) % len(TOOLS)]
        text, call = said(t, i)
        kind = i % 4
        if kind == 0:
            a, b = R.randint(2, 999), one(WORDS)
            keys = some(WORDS, 2)
            result, need = json.dumps({keys[0]: a, keys[1]: b}), [str(a), b]
        elif kind == 1:
            s = " ".join(some(WORDS, 3))
            result, need = s, [s]
        elif kind == 2:
            v = R.randint(10, 9999)
            k = one(WORDS)
            result, need = json.dumps({k: v}), [str(v)]
        else:
            e = " ".join(some(WORDS, 2))
            result, need = "Error: " + e, [e]
        add("answer", text, {"sentence": need}, tools=[t[0]], done=[dict(call=call, result=result)])


def sums():
    for i in range(60):
        a, b = (R.randint(10, 99), R.randint(10, 99)) if i % 3 == 0 else (R.randint(100, 999), R.randint(10, 999))
        q = ["I'd like to know {a} {s} {b}, please", "Sum it: {a} {s} {b} gives?", "{a} {s} {b}, go", "Let me know what {a} {s} {b} comes to", "the outcome of {a} {s} {b}"][i % 5]
        s = "+-"[i % 2]
        if s == "-" and a < b:
            a, b = b, a
        add("sums", q.format(a=a, b=b, s=s).replace("Sum it: ", "Now: "), {"number": a + b if s == "+" else a - b}, think=True)
    for i in range(60):
        a, b = R.randint(11, 99), R.randint(11, 99)
        q = ["I'd like to know {a} * {b}, please", "Now: {a} * {b} gives?", "{a} * {b}, go", "Let me know what {a} times {b} comes to", "the outcome of {a} * {b}"][i % 5]
        add("products", q.format(a=a, b=b), {"number": a * b}, think=True)


def check(count):
    """Nothing of it may be in training text."""
    import mix
    r = random.Random(99)
    seen, stream = set(), []
    for _ in range(count):
        c = mix.conversation(r)
        seen |= {m["content"].lower() for m in c["messages"] if m["role"] == "user"}
        stream += [t["function"]["name"] for t in c["tools"] or []] + [k for t in c["tools"] or [] for k in t["function"]["parameters"]["properties"]]
    known, prompts = set(stream), [i for i in ITEMS if i["turns"][-1].lower() in seen]
    names = {t[0]["function"]["name"] for t in TOOLS} | {k for t in TOOLS for k in t[2]}
    print(f"{count} conversations: {len(prompts)} of the prompts in them {sorted({i['turns'][-1] for i in prompts})}, {sorted(names & known)} of the tools and parameters")


def main():
    for make in (identity, faq, recall, instructions, letters, obey, tools, answers, sums):
        make()
    (x, c), (y, d) = said(TOOLS[5], 0), said(TOOLS[12], 1)
    add("two calls", f"{x}, plus {y[0].lower()}{y[1:]}", {"calls": [c, d]}, tools=[TOOLS[12][0], TOOLS[5][0]])
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
