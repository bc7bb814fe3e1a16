"""Small talk, questions about the model and about hearth, and the honest fallback. Every skill returns turns:
dict(user, reply, skill) and, where a reply needs it, thought."""
import json
import os
import re

import words as w
from grammar import expand, fill, style

HERE = os.path.dirname(os.path.abspath(__file__))


def load(name):
    """A JSON file of this folder."""
    with open(os.path.join(HERE, name), encoding="utf-8") as f:
        return json.load(f)


def parts(folder):
    """The JSON files of a folder of this one, in their order."""
    return [f"{folder}/{name}" for name in sorted(os.listdir(os.path.join(HERE, folder)))]


def joined(phrasings):
    """A dict with each list of alternatives as one grammar."""
    return {k: v if isinstance(v, str) else "|".join(v) for k, v in phrasings.items()}


FACTS = load("facts.json")
ASKED = [joined(load(part)) for part in parts("phrasings")]
MORE = {f["id"]: "|".join(part[f["id"]] for part in ASKED) for f in FACTS}  # by a fact's id
TALK = {}  # by a reply's name
for part in parts("talk"):
    for name, phrasings in joined(load(part)).items():
        TALK[name] = TALK[name] + "|" + phrasings if name in TALK else phrasings

FALLBACK = "I'm only a tiny demo model, so I can't answer that. For real answers load a real model: hearth serve mlx-community/Qwen3-0.6B-4bit"
HELLO = "Hello! I'm hearth-demo. How can I help?"
WHO = "I'm hearth-demo, a tiny language model that ships inside hearth to show that the server works."
CAN = "I can chat a little, answer questions about hearth, follow simple instructions, do small sums and call tools. I don't know facts about the world."
SIZE = "I'm tiny: a few million parameters, a few megabytes inside the hearth binary."
MAKER = "I was trained by the hearth project, from scratch, on text made by its own generator."
HUMAN = "No, I'm hearth-demo, a tiny language model."
FINE = "I'm fine, thank you. How can I help?"
WELCOME = "You're welcome!"
BYE = "Goodbye!"

SMALL_TALK = [  # phrasings, reply, its name in TALK
    ("(Hi|Hello|Hey|Hiya|Yo|Hallo|Heya|Good (morning|evening|day))[ there| again| hearth| friend| demo| model| everyone|,  hearth][!|.]|hello world|Greetings[!]|(Hi|Hello|Hey)[,] (nice to (meet|see) you|I'm here|good to see you)[!]|hi hi|(Hey|Hello) (you|bot|buddy|my friend|computer)", HELLO, "hello"),
    ("[Hi, |Hello, |Hey, ](How are you|How's it going|How are things|How do you feel|Are you (well|ok|fine|alright)|How is your (day|morning|evening)|What's up|You ok|How have you been|How do you do|How goes it)[ doing| now| here]?", FINE, "fine"),
    ("(Thanks|Thank you|Thx|Thank you (so|very) much|Thanks a (lot|bunch|ton)|Cheers|Great, thanks|Perfect, thank you|ty|(I appreciate|Appreciate) (it|that)|That (helped|was helpful|was great)[, thanks]|(Nice|Good|Cool|Awesome), (thanks|thank you)|(Thanks|Thank you) for (that|the help|helping|your help|your time))[!|.]", WELCOME, "welcome"),
    ("(Bye|Goodbye|See you|Bye bye|Good night|See you (later|tomorrow|around|soon)|I (have to|must|need to) (go|leave)[ now]|(Ok|Okay|Alright), (bye|goodbye)|Later|Take care|Talk to you later|I'm (leaving|off|done)|Until (tomorrow|next time)|cya|That's all[ for (today|now)][, bye])[!|.]", BYE, "bye"),
]
IDENTITY = [
    ("Who are you?|What are you?|(What's|What is|Tell me|May I know|say) your name|[Please ](introduce|describe|present) yourself|Tell me (about yourself|who you are|what you are|something about you)|(Which|What) (model|AI|language model|LLM|bot|assistant|system) (are you|is this|am I (talking|speaking|writing|chatting) (to|with)|do I have here|is answering|runs here)?|Are you (a language model|an AI|a bot|a chatbot|an assistant|a large language model|GPT|Claude|ChatGPT|Qwen|Llama|Gemini|GPT-4|Mistral|hearth|hearth-demo|the demo model)?|(What|Who) is (hearth-demo|this|answering|there|speaking|talking)?|Who am I (talking|speaking|writing|chatting) (to|with)?|What (should|can|do) I call you?|(your name|who are you)?|(Do|Did) you have a name?|What (kind|sort|type) of (AI|model|assistant|bot|thing) are you?|(Say|State) your name", WHO, "who"),
    ("What (can|could) you do[ for me]?|How (can|could|do) you help[ me]?|What are your (skills|abilities|features|capabilities|strengths|limits|weaknesses|talents)?|What are you (good|bad) at?|What (can't|can) you [not] do?|What (can|should|may|could) I ask[ you]?|[I need ]help|What do you know?|(Tell|Show) me what you can do|(Which|What) (things|tasks|jobs|questions) (can you (do|answer)|do you (know|understand))?|Can you do (everything|anything|things)?|(Can|Do) you (help|answer questions|do things)?|(List|Name|Describe) your (skills|abilities|features)|What are you (able|made|built|trained) (to do|for)?|How (useful|capable|clever) are you?|What is your (purpose|job)?", CAN, "can"),
    ("How (big|large|small|heavy|smart|many (megabytes|bytes)) are you?|How many (parameters|weights|params) (do you have|are there|have you got|in you)?|(What|Tell me|What's) (is )[your (size|parameter count)]your size|Are you (a (large|small|big|tiny) model|small|big|large|tiny|smart|clever|intelligent|powerful)?|(How large|How big|How small) is (this|the demo|your) model?|Why are you so (small|tiny|stupid|dumb|limited|little)?|your (size|parameters|parameter count|number of parameters)[?]|(number|count) of parameters[?]|How much (memory|space|disk) do you (take|use|need) yourself?", SIZE, "size"),
    ("Who (made|created|trained|built|wrote|developed|designed|programmed|owns) you?|(What|On what|With what|Which data|What data|What text) were you trained (on|with)?|Where (do|did) you come from?|How were you (trained|made|built|created|born)?|Who is your (maker|creator|author|developer|owner|father)?|(What is|Tell me) your (origin|training data|story|history)|(Which|What) (company|team|lab|people) (made|built|created|is behind) you?|What is your training data?|Were you trained (by|at) (OpenAI|Anthropic|Google|Meta|Alibaba)?", MAKER, "maker"),
    ("Are you (a|a real|really a) (human|person|man|woman|robot|machine|people)?|Are you (alive|human|real|conscious|sentient|a living being)?|Do you have (feelings|a body|emotions|a soul|a heart|friends|parents|consciousness)?|Am I (talking|speaking|chatting) (to|with) a (human|person|real person|machine|robot)?|Is (there|this) a (human|person|real person)[ here| behind this| there]?|(Do|Can) you (feel|sleep|eat|dream|love|breathe|think like a human)?|How old are you?|(Where|In which city) do you live?", HUMAN, "human"),
]


def turn(user, reply, skill, **more):
    return dict(user=user, reply=reply, skill=skill, **more)


def small_talk(r):
    asks, reply, name = r.choice(SMALL_TALK)
    q = fill(expand(r, asks if r.random() < .4 else TALK[name]), p=w.name(r), y=w.city(r))
    return [turn(style(r, q, False), reply, "identity")]


def identity(r):
    asks, reply, name = r.choice(IDENTITY)
    q = fill(expand(r, asks if r.random() < .3 else TALK[name]), p=w.name(r), y=w.city(r))
    return [turn(style(r, q), reply, "identity")]


DO = ("How (do|can|could|should|would) (I|we|you|one) {x}?|How to {x}?|What (is|'s) the (way|command|best way|easiest way|trick|right way) to {x}?|(I want|I'd like|I would like|I need|I'm trying|I have|We want) to {x}[[,] how?]|"
      "(Tell|Show|Teach|Explain to|Remind) me how to {x}|{x}|Is it possible to {x}?|Is there (a|any) way to {x}?|What do I (do|type|run|set|need|have to do) to {x}?|[Please ](help|help me) {x}|(Explain|Describe) how to {x}|"
      "(steps|instructions|a recipe) to {x}|(Can|Could|May) I {x}[ somehow| here]?|I (don't know|do not know|forgot) how to {x}|(I can't|I cannot|I fail to) {x}|(Trying|Want|Need) to {x}|In order to {x} what (do I do|is needed)?|"
      "(What|Which) (flag|option|command|setting|endpoint) (do I use|is there|lets me use) to {x}?|what if I want to {x}?|And if I (want|need|have) to {x}?|Where do I {x}?|(Anyone|Does someone) know how to {x}?|"
      "(i wanna|i want to|i gotta|we wanna|id like to|lemme|let me|let's|I am going to) {x}[, how| pls|, what do i do]|(how 2|howto|how to|how i can|how can u|how does one|how would u) {x}[ pls|?]|(My boss|My team|My colleague|A client|My teacher|Somebody) (wants|asks me|told me|would like me) to {x}[[,] how| and I don't know how]|(whats|what's|which is) the (command|way|flag|trick|easiest way) (to|if I want to) {x}?|"
      "(pls|please|can u|could you) (tell me|show me|explain|help me) [how to|how I] {x}|(What|How) would you do to {x}?|(I am new to this|I'm no expert|I tried everything)[,| and| -] how (do|can) I {x}?|(If|When|Suppose) (I|we) (want|have|need) to {x}, (what do I (type|do|set)|how|which command)[?]|(any|is there any|is there some) (way|chance|option|command|possibility) (for me |)to {x}?|(I'd like|I want|We want|I plan|I hope) to {x}[;|,|.| -] (how do I tell hearth|how do I tell it|is that possible|what do I need|where do I start|what do I type)?|(cmd|cli|flag|syntax|one-liner|recipe) (for|to) {x}[?]|(what's|which is) the (magic word|spell|syntax|incantation|right call) to {x}?|(Does hearth|Does it|Can hearth|Can it|Will it) (allow|let|help) (me|us|one) [to] {x}?")
ABOUT = ("{x}?|{x}|What (is|about|are) {x}?|(Tell|Teach) me (about|more about|something about) {x}|(Is|Are) there {x}?|(Do you|Does it|Does hearth|Does the server) (have|support|know|offer|provide) {x}?|(Explain|Describe) {x}|"
         "(info|information|details|documentation|help|docs) (on|about|for) {x}|I have a question (about|on|regarding) {x}|How does {x} work?|How (do|can|should) I (use|set|get|see|find|change|handle) {x}?|Where (is|are|can I find|do I find|do I set) {x}?|"
         "(I need|I want|I'd like|I am looking for|I'm looking for|I search|Looking for) {x}|(Show|Give) me {x}|What can you (say|tell me) about {x}?|Anything (about|on) {x}?|(What's|What is) the (deal|story|situation) with {x}?|[Just ]curious about {x}|A word (on|about) {x}, please|{x} in hearth|{x} with hearth?|"
         "{x} (pls|please|how|and how|in short|explained)|(whats|wats|what's|hows) {x}?|(i wanna|i want to|we need to|I'd like to) (know|learn|hear|read) (more |something |all |)about {x}|(is there|are there|u got|do u have|have you got|got) {x}?|(My boss|My team|A colleague|Someone) (asks|asked|wants to know) about {x}|(and|so|now|next) {x}?|(Any|Is there any) (info|docs|documentation|help|hint|tip) (on|about|for) {x}?|(As for|Regarding|Concerning|With regard to|On the subject of) {x}[,|:] (what do I need to know|how does it work|what can you tell me|what is possible)?")
EXTRA = ("I am new here|I'm a beginner|Sorry for asking|Just wondering|One question|Quick question|About hearth|I have hearth running|I just installed hearth|I'm using hearth|I am stuck|I read the docs|My boss asks|For my project|"
         "I'm on Linux|I'm on a Mac|I have a laptop|In my setup|On my machine|Hi there|Not sure if you know|A question about hearth|Stupid question|I was asked this|We use hearth at work|"
         "btw|ok so|hey|sorry|dumb question|noob here|im new|hello|hi|quick q|pls help|I can't find it in the docs|I have been looking for an hour|Before I go|One more thing|Another thing|Maybe you know|I run it in Docker|I'm on Windows|On our server|A customer asks|I am writing a script|First time here|It's urgent")
SMALL = set("how do i the a an can is are to of for with my your does it there in on what which me".split())


def ask_fact(r, fact):
    x = r.random()
    if x < .06:  # any words around what counts
        q = " ".join(t for t in (w.words(r, 0, 3), expand(r, fact[r.choice(["do", "about"])]), w.words(r, 0, 2)) if t) + r.choice(["", "", "?", "."])
    elif x < .25:
        q = fill(expand(r, DO), x=expand(r, fact["do"]))
    elif x < .36:
        q = fill(expand(r, ABOUT), x=expand(r, fact["about"]))
    else:
        q = expand(r, fact["ask"] if x < .47 else MORE[fact["id"]])
    if r.random() < .12:  # telegram style
        q = " ".join(t for t in q.split(" ") if t.lower() not in SMALL or r.random() < .4) or q
    if r.random() < .12:
        q = expand(r, EXTRA) + r.choice([". ", ": ", ", ", " - "]) + q
    if r.random() < .04:
        q += r.choice([" ", ". "]) + w.words(r, 1, 3)
    return q[0].upper() + q[1:] if r.random() < .6 else q


def faq(r):
    fact = r.choice(FACTS)
    return [turn(style(r, ask_fact(r, fact)), fact["answer"], "faq")]


WORLD = ("What is {t}?|Explain [to me] {t}|Tell me about {t}|What (causes|is the cause of) {t}?|Who (invented|discovered|founded|started) {t}?|Is {t} (dangerous|important|useful|true|real|old|hard|expensive)?|Why (is|are) {t} so (important|popular|hard|loud|cold)?|How does {a} {n} work?|"
         "(Write|Compose|Make up|Create|Give me) (a|an|another|a short|a long) (poem|haiku|song|essay|story|joke|novel|speech|limerick|letter|article|blog post|play|script) [about (a|the|my) {n}|about {t}|for {p}|about {p}]|What is the (capital|population|president|flag|currency|history|king|area|language|largest city|highest mountain|longest river) of {c}?|"
         "Who (is|was) (the (president|king|queen|prime minister|author|inventor|first ruler) of {c}|{p})?|When (was|did) {p} (born|die|married|win)?|How (far|long|tall|old|deep|high|heavy|fast) is (the {n}|{p}|{c}|it from {y} to {y}|a {n})?|"
         "What happened in {year}?|Who won the (world cup|election|war|race|game|championship) [in {year}]?|How many (people|cities|rivers|animals|{n}s) (live in|are in|are there in|has) {c}?|(Recommend|Suggest) [me] (a|some) (book|movie|restaurant|hotel|song|game) [about {t}|in {y}]|"
         "What (should|can) I (eat|cook|wear|read|watch|buy|do) (today|tonight|tomorrow|in {y})?|How (do|can|should) I (fix|repair|clean|cook|paint|grow|train|sell|feed|make) (a|my|the) {n}?|Give me (advice|tips|facts|ideas|ten facts|a summary) (about|on|for) (my {n}|{t}|{c})|"
         "(Plan|Organize|Describe) (a|my) (trip|holiday|party|weekend) (to|in) ({c}|{y})|(Summarize|Discuss|Analyze) (the history of {c}|{t}|the book {q}|this article about {t})|What (do you think|is your opinion) (of|about) {t}?|(Prove|Derive|State) the theorem of {p}|"
         "(Write|Give me|Show me) (a|some) (program|function|code|script|Python code|Go code) (that|to|which) (sort|sorts|draw|print|find|compute)s a {n}|Translate {q} (to|into) (Latin|German|Spanish|Japanese|Italian|Chinese)|What does {n} mean?|What is the meaning of (life|{n}|{t})?|"
         "Why (is|do|does|are) the (sky blue|grass green|{n} {j}|people like {t}|sea salty|{n}s {j})?|Which (animal|country|city|planet|metal|{n}) is the (fastest|largest|smallest|oldest|best|most expensive)?|What's the (weather|temperature|time|news|date) [in {y}|today|now]?|What time is it [in {y}]?|"
         "Who (wrote|painted|directed|composed|sang) {q}?|Should I (buy|sell|learn|read|marry|visit) ({t}|a {n}|{p}|{y})?|Compare {t} (and|with) {c}|What are the (rules|symptoms|benefits|side effects|types|causes|dangers) of {t}?|Do (you|people) (like|believe in|know|understand) {t}?|"
         "Tell me a (joke|story|secret|fairy tale|fun fact|riddle) [about a {n}]|(Can|Could) you (explain|describe|summarize|teach me) {t}?|I (want|need) to (learn|know|understand) [more about] {t}|My {n} is {j}, what (should I do|now)?|I feel {j} today|How do {n}s form?|Is it going to rain [in {y}]?|Who would win, a {n} or a {n}?|"
         "Help me with my (homework|taxes|{n}|essay) [about {t}]|What is {p} (famous|known) for?|Where is {y}?|Is {y} in {c}?|{t}|Define {t}|Sing a song|Do my homework|What is love?|Predict the (future|lottery numbers|stock market)")
FOREIGN = [  # a few sentences of other languages, written for this project
    "Wie heißt die Hauptstadt von Frankreich?", "Kannst du mir bitte helfen?", "Erzähl mir etwas über das Wetter.", "Was ist der Sinn des Lebens?", "Schreib ein Gedicht über den Herbst.", "Warum ist der Himmel blau?",
    "Quelle est la capitale de l'Espagne ?", "Peux-tu m'expliquer la gravité ?", "Raconte-moi une histoire.", "Pourquoi la mer est-elle salée ?", "Il fait beau aujourd'hui.", "¿Cuál es la capital de Italia?", "¿Puedes contarme un cuento?",
    "Quiero aprender a cocinar.", "¿Por qué llueve tanto?", "Qual è il fiume più lungo?", "Raccontami una barzelletta.", "Vorrei una pizza.", "Hoe gaat het met de koningin?", "Wat is de zin van het leven?", "Jaka jest stolica Polski?",
    "Vad heter Sveriges kung?", "Какая сегодня погода?", "Расскажи мне сказку.", "Почему небо голубое?", "東京の天気はどうですか。", "日本の首都はどこですか。", "今天天气怎么样？", "给我讲一个故事。", "오늘 날씨가 어때요?", "ما هي عاصمة مصر؟", "मौसम कैसा है?", "Πού είναι η Αθήνα;",
]


# what is wanted of a longer text before or after it
OF_TEXT = ("(tldr|TL;DR|summary|short version|gist|key points|translation|title|headline)[ please| pls|?|:|]|(Summarize|Summarise|Shorten|Condense|Simplify|Rephrase|Rewrite|Proofread|Analyze|Review|Improve|Continue|Extend|Explain|Comment on|Criticize) (this|the|that|my) (text|report|article|story|page|log|essay|passage|note|protocol)[, please| for me| in one line| in two sentences| in simple words|][.|:|]|"
           "(Turn|Make|Change|Convert|Put) (this|all of this|all that|all of that|the text|it|the above) (into|to) (a|an|one) ((formal|short|funny|polite|angry) |)(letter|poem|email|song|table|list|speech|tweet|story|play|report|summary)[ to (the mayor|my boss|{p}|our members|a child)|][.|, please|:|]|(Put|Translate) (all of (this|that)|this|the text|it) (into|to) (French|German|Spanish|Italian|Latin|Japanese|simple English|Dutch)[ for (our guests|my aunt|{p}|me)|][.|, please|:|]|"
           "(What|Which) (of these|of those|of the) (problems|things|points|people|events|facts) (would|should|do) you (tackle|choose|fix|do|solve|like)[ first| best|][, and why|]?|(Why|How|When|Where|Since when|What for|By whom) (was|were|did|does|is|are) (the|their|his|her|our) {n}[s] (gone|there|{j}|broken|lost|sold|late|come|found)?|Now (invent|write|tell|imagine|make up) (the|a|another|the next) (next (part|chapter|page)|{n}|ending|continuation|sequel|minutes of the next meeting)[.|, please|]|"
           "(What|How) (do you think|would you say|is your opinion)[ of| about| on] (this|that|the text|the author|the {n})?|(Who|What) is (right|wrong|to blame|the hero|the author|the main character|missing|the point) [here|in this text|of it]?|(Is|Was) (this|that|it) (good|true|well written|a joke|legal|correct|sarcastic)?|(Write|Give me|Draft) (an answer|a reply|a response|a comment|a summary|an abstract|feedback) (to|on|for|about) (this|the text|the above|it)[, please|.|]|(Find|Correct|Mark|List) (all|the|any) (mistakes|errors|names|dates|facts|verbs|problems) (in|of) (it|this|the text|the above)[.|, please|]")
PROSE = ("(The|Our|My|That|Every|One|His|Her) [{j} ](N|N) (was|is|had been|looked|became|stayed|seemed) ({j}|{j} and {j}|very {j}|too {j} for the N|gone|full of Ns)[ (again|at last|since then|last year|in spring|that day)].|{p} (said|wrote|thought|told us|promised|heard|reported|believed) that (the|a|no|our) N (was|had|needs|would be|is) {j}.|(Mr|Mrs|Old|Young|Our friend|The teacher) {p} (showed|sold|gave|brought|sent|lent|owed) (us|me|them|{p}|the N) (a|the|his|her|another) {j} N[, which (nobody|everybody|only {p}) (liked|saw|wanted|noticed)].|"
         "(Somebody|Nobody|Everybody|The N|A N|{p}) (left|took|found|repaired|painted|forgot|broke|moved|opened|closed|counted|ate) (the|a|all the|two|some) N[s] (in|on|under|behind|near|without|before|after) (the|a|our) N[, so (the N|we|nobody|the Ns) (had to wait|went home|was {j}|came back|never knew)].|(There (is|was|were)|We (have|had|saw|need)) (no|a|some|many|another|enough) {j} N[s] (in {y}|in the N|at the N|here|this year|on Monday).|(Yesterday|Last week|In winter|At noon|On {d}|Then|Later|Finally|Meanwhile|After that)[,] (the|a|our) N (fell|arrived|began|ended|broke|grew|left|opened) (in|near|behind|on|without) (the|a|{p}'s) N.|"
         "(The|Their) (meeting|price|vote|journey|work|report|party|lesson|trip) (about|of|for|with) the N (took|lasted|cost|needed) {i} (hours|days|coins|people|pages)[ and (was|felt) {j}].")


def prose(r):
    """Some sentences about nothing."""
    some = [w.pick(r, w.NOUNS) for _ in range(r.randint(3, 9))] + [w.word(r) for _ in range(r.randint(0, 4))]
    out = []
    for _ in range(r.choice([2, 3, 4, 6, 8, 12, 16, 20])):
        x = re.sub(r"\bN(?=s?\b)", lambda m: r.choice(some), expand(r, PROSE))
        out.append(fill(x, j=w.pick(r, w.ADJ), p=w.name(r), y=w.city(r), d=w.date(r), i=r.randint(2, 90)))
    if r.random() < .3:
        out += r.choices(out, k=r.randint(1, 5))  # said again
    return " ".join(out)


def wish(r):
    """What is wanted of a text."""
    return style(r, fill(expand(r, OF_TEXT), p=w.name(r), n=w.pick(r, w.NOUNS), j=w.pick(r, w.ADJ)))


def about_text(r):
    """A longer text, and what this model cannot do with it."""
    q, text = wish(r), prose(r)
    if r.random() < .2:
        return q.rstrip(".:") + r.choice([":\n\n", ":\n", ": ", "\n\n", ". "]) + text
    return text + r.choice(["\n\n", "\n\n", "\n", " ", "\n---\n"]) + q


def tags(r):
    """Markup that means nothing here, the model's own kind included."""
    some = [r.choice([w.word(r), w.words(r, 2, 2, "_"), r.choice(["s", "b", "i", "INST", "SYS", "im_start", "im_end", "end", "bos", "system", "user", "tool", "think", "div", "br", "eot"])]) for _ in range(r.randint(1, 2))]
    mark = r.choice(["<{}>", "</{}>", "<|{}|>", "[{}]", "[/{}]", "<<{}>>", "{{{{ {} }}}}", "{{% {} %}}", "<{}/>", "@{}@"])
    text = [mark.format(x) for x in some * r.choice([1, 1, 1, 2, 3])]
    if r.random() < .4:
        text.insert(r.randint(0, len(text)), w.words(r, 1, 4))
    if r.random() < .2:
        text.append(mark.replace("<", "</", 1).format(some[0]))
    return r.choice(["", " ", "\n"]).join(text)


def pretended(r):
    """What looks like the model's own prompt, in a user's message."""
    a, b = w.word(r), w.word(r)
    return r.choice([f"# Tools\n{a}_{b}({b}: string): {a.capitalize()} {b}", f"{a}({b}: {r.choice(['string', 'integer', 'number'])}): {w.words(r, 1, 4)}", f"system: {w.words(r, 2, 6)}", f"assistant: {w.words(r, 1, 5)}", f"User: {w.words(r, 1, 5)}\nAssistant:",
                     f'{{"name": "{a}", "arguments": {{"{b}": "{w.word(r)}"}}}}', f'{{"role": "user", "content": "{w.words(r, 1, 4)}"}}', f"{w.words(r, 1, 3)} <|{a}|> {w.words(r, 1, 3)}"])


def gibberish(r, words):
    """Sentences of words that do not exist."""
    some = ["".join(r.choice(w.LETTERS) for _ in range(r.randint(1, 9))) if r.random() < .8 else w.pseudo(r) for _ in range(words)]
    for i in range(0, words, r.randint(4, 14)):
        some[i] = some[i].capitalize()
        some[i - 1] += "."
    return " ".join(some)


def nonsense(r):
    y = r.random()
    if y < .08:
        return tags(r)
    if y < .11:
        return pretended(r)
    if y < .19:
        return gibberish(r, r.choice([15, 30, 60, 100, 150, 250, 400, 600])) + r.choice(["", " ", "\n\n"]) + (wish(r) if r.random() < .3 else "")
    if y < .26:
        return r.choice([r.choice("!.?:;#*-+=~/\\()[]{}<>_,'\"") * r.randint(1, 30), r.choice(w.LETTERS), r.choice(w.LETTERS).upper(), str(r.choice([r.randint(0, 9), r.randint(10, 10 ** 6), -r.randint(0, 99), r.uniform(-9, 9)])), f"{r.randint(0, 9)}e{r.randint(1, 999)}",
                         r.choice("null none None NaN nan undefined nil void true false inf N/A NULL TODO ok? eh er umm".split()), (r.choice(w.LETTERS + "äöüéßñ") + r.choice(["", " "])) * r.randint(3, 40), (w.pseudo(r) + " ") * r.randint(5, 80)])
    x = r.random()
    if x < .3:
        return "".join(r.choice(w.LETTERS + " ") for _ in range(r.randint(4, 40))).strip() or "x"
    if x < .5:
        return " ".join(w.pseudo(r) for _ in range(r.randint(1, 8)))
    if x < .6:
        return "".join(r.choice("!?.,;:#*+-=/()[]{}<>@$%&~^|") for _ in range(r.randint(2, 12)))
    if x < .7:
        return r.choice([" ", " ", "", ", "]).join([r.choice(["la", "ha", "no", "na", r.choice(w.LETTERS), w.pseudo(r)])] * r.randint(3, 30))
    if x < .75:
        return " ".join(r.choices([w.word(r) for _ in range(r.randint(3, 12))], k=r.randint(10, 50)))
    if x < .88:
        return r.choice(["", "", " "]).join(chr(r.choice([r.randint(0xC0, 0x17F), r.randint(0x370, 0x44F), r.randint(0x3041, 0x3096), r.randint(0x4E00, 0x4F00), r.randint(0x1F300, 0x1F5FF)])) for _ in range(r.randint(1, 25)))
    return w.words(r, 2, 8)


# words that elsewhere say what is to be done
CUES = "letter list word sentence number name order color job city spelling alphabet capital count sum pet hobby food friend greeting pirate poem reply tool function call result thought copy echo reverse sort calculator price weather time date file message".split()


def fallback(r):
    x = r.random()
    if x < .12:  # questions and orders of any words
        ask = "(What|Who|Why|When|Where|How|Which {a}|Is|Are|Does|Did|Can|Could|Will|Should|How (many|much|long|far|often)|Tell me|Explain|Write|Describe|Find|Show me|Make|Help me|I (want|need|think)|My|The|Give me)"
        q = style(r, fill(expand(r, ask), a=w.word(r)) + " " + w.words(r, 2, 9) + r.choice(["?", "?", ".", "", "!"]))
    elif x < .17:
        q = about_text(r)
    elif x < .72:
        noun = r.choice(CUES) if r.random() < .15 else w.thing(r)
        q = expand(r, r.choice([WORLD, TALK["world"], *[TALK["world2"], TALK["world3"], TALK["world4"]] * 2]))
        q = fill(q, t=w.pick(r, w.TOPICS) if r.random() < .4 else noun if r.random() < .2 else w.words(r, 1, 2), n=noun, a="an" if noun[0] in "aeiou" else "a", p=w.name(r), c=w.pick(r, w.COUNTRIES) if r.random() < .6 else w.city(r),
                 y=w.city(r), j=w.pick(r, w.ADJ), q=w.quoted(r, w.sentence(r)), year=r.randint(1000, 2030))
        q = style(r, q)
    elif x < .84:
        q = r.choice(FOREIGN)
        if r.random() < .6:  # words of it in another order, so that it is the look that counts
            parts = (q + " " + r.choice(FOREIGN)).split(" ")
            q = " ".join(r.choice(parts) for _ in range(r.randint(2, 9)))
    else:
        q = nonsense(r)
    return [turn(q, FALLBACK, "fallback")]
