"""Words and values. All lists were written for this project. Of every list one word in seven is never used in training."""
import functools
import json
import os
import zlib


@functools.lru_cache(None)
def held(word):
    """Whether a word is kept for the evaluation."""
    return zlib.crc32(word.lower().encode()) % 7 == 0


def W(text):
    return text.split()


FIRST = W("""Anna Bob Clara David Emma Felix Grace Hugo Iris Jonas Karin Leo Maria Nora Oscar Paula Quentin Rosa Simon Tara Ulrich Vera Walter Xenia Yusuf Zoe
Amir Bianca Carlos Daria Elias Fatima Gustav Hana Ivan Julia Kenji Lena Marco Nadia Olga Pedro Ravi Sofia Tomas Uma Victor Wanda Yara Zane Alice Brian
Cecil Diana Edgar Flora George Helen Igor Jack Kate Liam Mia Noah Olive Peter Queenie Ruth Sam Tina Ursula Vince Will Yves Zack Ada Ben Cora Dan Eve
Finn Gina Hank Ida Jim Kim Lou Max Ned Otto Pam Ron Sue Tom Vic Wes Priya Arjun Mei Chen Aiko Sven Ingrid Lars Freya Mateo Lucia Diego Ines Pablo
Marta Nils Astrid Bruno Celine Dimitri Esther Farid Gemma Harold Imani Jasper Kofi Leila Milo Nina Omar Petra Rania Stefan Thea Umar Viola Wendell""")
CITY = W("""Paris London Berlin Madrid Rome Oslo Vienna Prague Warsaw Lisbon Dublin Athens Helsinki Stockholm Copenhagen Amsterdam Brussels Zurich Geneva Munich
Hamburg Cologne Lyon Nice Milan Naples Turin Venice Porto Seville Valencia Bilbao Tokyo Osaka Kyoto Seoul Beijing Shanghai Taipei Bangkok Hanoi Manila
Jakarta Delhi Mumbai Chennai Cairo Nairobi Lagos Accra Tunis Lima Bogota Quito Santiago Toronto Montreal Boston Chicago Denver Dallas Austin Miami
Seattle Portland Phoenix Houston Detroit Atlanta Sydney Perth Auckland Wellington Reykjavik Tallinn Riga Vilnius Krakow Budapest Bucharest Sofia Zagreb
Belgrade Ankara Istanbul Baku Tbilisi Dubai Doha Muscat Leeds Bristol Cardiff Glasgow Ghent Bruges Basel Bern Graz Linz Aarhus Bergen Malmo Turku""")
COLORS = W("red blue green yellow orange purple pink brown black white gray cyan magenta gold silver violet teal indigo maroon beige")
ANIMALS = W("cat dog horse cow sheep goat pig lion tiger bear wolf fox rabbit mouse owl eagle duck frog snake whale shark otter camel zebra monkey hen")
FRUITS = W("apple banana cherry grape lemon lime mango melon orange peach pear plum kiwi fig papaya apricot")
COUNTRIES = W("France Germany Spain Italy Norway Sweden Poland Japan China India Brazil Canada Mexico Egypt Kenya Greece Peru Chile Turkey Ireland")
LANGUAGES = W("""English French German Spanish Italian Portuguese Dutch Danish Swedish Norwegian Finnish Polish Czech Slovak Hungarian Romanian Bulgarian Greek Turkish Russian
Ukrainian Arabic Hebrew Persian Hindi Bengali Tamil Urdu Thai Vietnamese Korean Japanese Chinese Mandarin Malay Latin Irish Basque Croatian Serbian Estonian Latvian Zulu""")
CURRENCIES = W("""euros dollars pounds yen francs pesos rubles lira kroner kronor won yuan baht ringgit shekels rand reais dinars EUR USD GBP JPY CHF SEK NOK DKK PLN CZK INR CNY AUD CAD MXN BRL TRY""")
PLANETS = W("Mercury Venus Earth Mars Jupiter Saturn Uranus Neptune")
VEG = W("carrot potato onion tomato cabbage spinach pepper pea bean leek garlic beet")
DAYS = W("Monday Tuesday Wednesday Thursday Friday Saturday Sunday")
MONTHS = W("January February March April May June July August September October November December")
SPORTS = W("football tennis golf rugby hockey cricket rowing boxing judo skiing swimming cycling")
INSTR = W("piano guitar violin flute drum trumpet harp cello clarinet banjo")
NOUNS = W("""lantern kettle bridge garden engine mirror basket candle ladder window carpet pillow hammer bucket wagon ribbon anchor barrel blanket bottle
button cabinet camera castle chair clock cloud coat coin compass cookie crown curtain desk diamond door dragon drawer feather fence flag flower forest
fountain fridge gate glove guitar hat helmet island jacket jar jewel key kite knife lamp leaf letter lock locker magnet map marble market medal mill mug
necklace needle nest notebook oven paddle paint palace parcel pencil piano picture pipe planet plate pocket pond puzzle quilt radio raft robot rocket roof
rope saddle sail sandwich satchel scarf shelf shell ship shoe shovel shower sofa spoon stamp statue stone stove sword table teapot tent ticket tower toy
train tray trumpet tunnel turbine umbrella valve vase violin wallet watch wheel whistle wing wire yacht printer router sensor heater fan pump boiler
elevator drone speaker blinds sprinkler thermostat doorbell vacuum greenhouse aquarium conveyor turntable projector telescope generator freezer dryer
invoice report contract schedule budget memo catalog recipe playlist album article chapter poster brochure receipt voucher badge certificate survey form
harbor valley meadow canyon orchard vineyard stable kennel barn cottage cabin hotel museum library theater stadium school hospital bakery factory""")
VERBS = W("""polish rotate paint repair open close lock unlock start stop reset clean move lift lower fill drain heat cool wrap unwrap stack scan print copy
archive rename label tag sort merge split ship pack unpack inspect test charge park rent borrow return order cancel book reserve schedule launch dock
calibrate tune adjust activate deactivate enable disable mount unmount load unload weigh measure count mark seal stamp dust water feed brush trim bake
slice dim brighten mute pause resume refresh sync upload download publish approve reject assign release freeze deploy restart install remove replace""")
ADJ = W("""big small old new quick slow bright dark warm cold quiet loud happy sad clever brave gentle proud strange simple heavy light sharp smooth rough
soft hard wet dry clean empty full early late young wise kind honest lucky hungry tired busy lazy funny serious wild calm fancy plain tiny huge""")
COMMON = W("""time year people way day man thing woman life child world school state family student group country problem hand part place case week company system
program question work government number night point home water room mother area money story fact month lot right study book eye job word business issue
side kind head house service friend father power hour game line end member law car city community name president team minute idea body information back
parent face level office health person art war history party result change morning reason research girl guy moment air teacher force education
summer winter spring autumn river mountain ocean desert music dance paper silver copper iron glass bread butter cheese coffee sugar pepper salt honey
rain snow storm thunder breeze sunrise sunset shadow dream secret promise travel journey letter message picture camera keyboard screen laptop
green purple quickly slowly always never often sometimes maybe perhaps together alone above below inside outside before after around between""")
SYL1 = W("b br c ch cl d dr f fl g gl gr h j k kl l m n p pl pr qu r s sh sk sl sp st t th tr v w z")
SYL2 = W("a e i o u ai ea ee oo ou a e i o u a e i o")
SYL3 = ["", "", "", "", "n", "r", "l", "s", "m", "t", "k", "nd", "rt", "st", "ng", "x", "p", "d"]
TOPICS = W("""quantum physics gravity photosynthesis inflation volcanoes dinosaurs poetry philosophy chess cooking economics biology chemistry astronomy medicine
football politics history architecture painting opera genetics electricity magnetism oceans deserts evolution psychology geometry algebra statistics
cinema jazz fashion agriculture robots satellites vaccines hurricanes earthquakes glaciers pyramids castles knights samurai vikings pirates emperors""")
MORE = W("""harpsichord trombone walnut hazel acorn pebble gravel marsh swamp brook creek cliff cave tundra prairie savanna lagoon reef tide wave shore dune
cactus fern moss ivy oak pine birch maple willow cedar tulip daisy poppy lily orchid violet jasmine basil thyme sage mint ginger saffron vanilla nutmeg
mustard vinegar noodle dumpling pancake waffle muffin biscuit cracker pretzel pudding custard yogurt cereal porridge stew broth salad pickle olive
sparrow robin finch heron stork crane swan goose turkey parrot pigeon raven magpie beaver badger hedgehog squirrel moose bison llama donkey mule
lobster crab shrimp salmon trout herring tuna squid octopus jellyfish beetle spider cricket moth butterfly wasp hornet ladybug
scissors stapler eraser marker crayon chalk easel canvas stencil ruler protractor calculator abacus folder binder envelope postcard calendar
sweater scarf mitten glove sandal slipper sneaker boot apron vest tuxedo gown veil bonnet beret turban brooch bracelet earring pendant
tractor trailer bicycle scooter skateboard sled canoe kayak raft ferry submarine helicopter balloon glider zeppelin monorail tram trolley
plywood lumber brick cement mortar plaster gypsum granite limestone sandstone slate quartz topaz emerald ruby sapphire opal amber pearl coral
waltz tango polka ballet sonata symphony chorus ballad lullaby anthem rhyme stanza riddle fable legend myth saga diary journal
sunny cloudy frosty dusty rusty shiny glossy fuzzy bumpy crispy crunchy juicy salty spicy bitter mellow vivid pale faint steep narrow broad shallow hollow
whisper shout mumble giggle chuckle sigh yawn sneeze cough stumble wander hike climb crawl gallop trot leap hop skip dive float drift
borrow lend trade barter purchase deliver collect gather scatter sprinkle pour stir knead roast grill boil fry steam chop peel grate squeeze""")

SUBJECTS = W("""weather forecast price stock rate phone birthday salary schedule route traffic tide menu song playlist movie reminder alarm timer note ticket invoice flight
hotel room table taxi bus train ride lesson email message sms post tweet reply comment event meeting appointment task todo list contact account user order package parcel payment
bill balance volume brightness light lamp heating door window curtain fan oven camera sensor pump engine robot printer backup log report page query database branch commit file
image video recipe dictionary definition news article score result holiday exchange distance population altitude pollution humidity pressure""")

BANKS = {"colors": COLORS, "animals": ANIMALS, "fruits": FRUITS, "countries": COUNTRIES, "planets": PLANETS, "vegetables": VEG,
         "days": DAYS, "months": MONTHS, "sports": SPORTS, "instruments": INSTR}
ALL = sorted({w.lower() for w in NOUNS + VERBS + ADJ + COMMON + COLORS + ANIMALS + FRUITS + VEG + SPORTS + INSTR + MORE})
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def pick(r, words):
    """A word of the list that training may use."""
    while held(w := r.choice(words)):
        pass
    return w


def syllables(r, n):
    return "".join(r.choice(SYL1) + r.choice(SYL2) + r.choice(SYL3) for _ in range(n))


def pseudo(r):
    """A word that may not exist; sometimes any letters at all, so that nothing but copying gets it right."""
    if r.random() < .25:
        return "".join(r.choice(LETTERS) for _ in range(r.randint(2, 8)))
    return syllables(r, r.choice([1, 1, 2, 2, 3]))[:12]


def known():
    """The words that are tokens: they too must take part in copying, or it never works for them."""
    try:
        vocab = json.load(open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "tokenizer.json")))["model"]["vocab"]
    except FileNotFoundError:
        return ["a"]
    return sorted(t for t in vocab if t.isascii() and t.isalpha())


def know(words):
    """Sets the words that are drawn from as those that are tokens."""
    global KNOWN, CALLED
    KNOWN = words
    CALLED = [x for x in KNOWN if x.islower() and len(x) > 2 and x not in JOINING] or KNOWN  # things are called by these


def word(r):
    x = r.random()
    return pick(r, ALL) if x < .5 else pseudo(r) if x < .86 else r.choice(KNOWN)


JOINING = set(W("""able about above after again against ago ahead all almost alone along already alright also always among and another any anybody anymore anyone anything anyway apart are around asap away
because been before behind being believe below beside best better between both btw but bye came can cannot could couldn did didn does doesn doing don done down each either else elsewhere enough even ever every
everybody everyone everything exactly few finally first five for forever four from gave get gets getting give given gives going gone goodbye got gotta had has hasn hate hates have haven hello help helper helpful
helps her here het hey his hmm honestly how important inside instead into isn its itself just keep kindly know known knows last least left less let lets like liked likes long made make makes making many may maybe
mean meaning means might mine more most much must myself name named namely names near need needed needs neither never next nice nine nobody not nothing now off offer often okay once one ones only onto other others
otherwise ought our out outside over owe own per perhaps please pls quickly quite rather really reckon right said same saw say saying says second see seem seemed seems seen seven several shall she should show showed
shown shows simply since six slowly some somebody somehow someone something sometimes somewhere soon sorry still such suppose sure take taken takes tell telling ten than thank thanks that the their them then there
these they thing things think thinking thinks third this those though thought three through throw thx till today together told tomorrow tonight too took twice two under unless until upon use used uses using usual very
via wait wanna want wanted wants was wat wats way well went were what whatever whats when where whether which while who whoever whole whom whose why will wish with within without won wonder wondering would wrong wrote
yes yesterday yet you your yours yourself"""))
JOINED = sorted(JOINING)
know(known())


def in_common(a, b):
    """How many letters two words have in common, if they are one word but for the ending, or 0."""
    if a == b:
        return len(a)
    if a[0] != b[0]:
        return 0
    n = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
    other = max(len(a), len(b)) - n
    return n if n >= 4 and other <= 3 or n == 3 and other <= 2 else 0


def thing(r):
    """A word as something may be called. Where words that hold a sentence together stood for things, nobody could tell what was meant;
    where a word that is a token was never part of a name, another one was copied in its stead."""
    x = r.random()
    if x < .36:
        return pseudo(r)
    if x < .56:
        return r.choice(CALLED)
    while (w := pick(r, ALL)) in JOINING:
        pass
    return w


def words(r, a, b, sep=" "):
    return sep.join(word(r) for _ in range(r.randint(a, b)))


def distinct(r, n, make=word):
    out = []
    while len(out) < n:
        if (w := make(r)) not in out:
            out.append(w)
    return out


def name(r):
    n = pick(r, FIRST) if r.random() < .5 else pseudo(r).capitalize()
    return n + " " + pseudo(r).capitalize() if r.random() < .1 else n


def city(r):
    c = pick(r, CITY) if r.random() < .5 else pseudo(r).capitalize()
    return r.choice(["New ", "San ", "Port ", "North "]) + c if r.random() < .08 else c


ENDINGS = W("txt md py go json csv log html yaml sh js c pdf png toml xml ini cfg conf tsv rst sql jpg svg zip doc rs java h css bak tmp")


def file(r):
    stem = words(r, 1, 2, r.choice("_-")) if r.random() < .85 else word(r) + str(r.randint(1, 99))
    return stem + "." + (r.choice(ENDINGS) if r.random() < .85 else "".join(r.choice(LETTERS) for _ in range(r.randint(2, 4))))


def path(r):
    if r.random() < .5:
        return file(r)
    return r.choice(["", "/", "./", "~/"]) + words(r, 1, 2, "/") + "/" + file(r)


def folder(r):
    return r.choice(["", "/", "./", "~/"]) + words(r, 1, 3, "/") + r.choice(["", "", "/"])


def domain(r):
    """A host's name, of any ending."""
    end = r.choice(W("com org net io de fr uk eu dev ch at info co.uk app edu gov")) if r.random() < .7 else "".join(r.choice(LETTERS) for _ in range(r.randint(2, 3)))
    return words(r, 1, r.choice([1, 1, 1, 2]), r.choice(".-")) + "." + end


def email(r):
    who = [name(r).lower().replace(" ", "."), word(r), word(r) + str(r.randint(1, 99)), words(r, 2, 2, r.choice("._-"))]
    return r.choice(who) + "@" + domain(r)


def url(r):
    u = r.choice(["https://", "http://", "https://www.", "https://" + word(r) + "."]) + domain(r)
    return u + "/" + words(r, 1, r.choice([1, 1, 2, 3]), r.choice("//-")) if r.random() < .45 else u


def sentence(r):
    """A few words as people would put in quotes."""
    s = words(r, 1, 5)
    if r.random() < .2:
        s = s.split(" ")
        for _ in range(r.choice([1, 1, 2, 3])):
            s.insert(r.randint(0, len(s)), r.choice(JOINED))
        s = " ".join(s)
    if r.random() < .06:  # with marks
        s = r.choice([f"{s} ({word(r)})", f"{s} - {words(r, 1, 3)}", f"{words(r, 1, 2)}: {s}", f"{s} & {word(r)}", f"{r.randint(1, 99)} {s}", f"{s} v{r.randint(1, 9)}.{r.randint(0, 9)}", f"{word(r)}/{s}", f"{s}, {words(r, 1, 3)}", f"{s} #{r.randint(1, 99)}"])
    if r.random() < .35:
        s = s.capitalize()
    return s + r.choice("!.?") if r.random() < .08 else s


def integer(r):
    return r.choice([r.randint(1, 12), r.randint(1, 100), r.randint(1, 3000)])


def date(r):
    return f"20{r.randint(24, 33)}-{r.randint(1, 12):02d}-{r.randint(1, 28):02d}"


def time(r):
    return f"{r.randint(0, 23):02d}:{r.choice([0, 15, 30, 45, r.randint(0, 59)]):02d}"


def code(r):
    return r.choice([str(r.randint(1000, 99999)), "".join(r.choice(LETTERS) for _ in range(2)).upper() + "-" + str(r.randint(10, 9999)), word(r) + "-" + str(r.randint(1, 99))])


PROGRAMS = W("ls cat cp mv rm mkdir touch find grep sed awk sort uniq wc head tail cut tr diff tar gzip zip curl wget ssh scp rsync ping df du free ps top kill uptime date env echo git make npm node go cargo docker kubectl python3 pip ruby java systemctl")
SYLLABLES = W("ah ai am an as at be by ch cm co de do du eu fr go ha he hf hi id if im in io is it je js km la mb md me ml mm my na ne no of oh ok on or pr py sh so st to un up ur us we ye yo")  # two letters that are one token


def command(r):
    """A line for a shell."""
    option = lambda: r.choice([lambda: "-" + r.choice(LETTERS), lambda: "-" + ("".join(r.sample(LETTERS, r.randint(2, 3))) if r.random() < .7 else r.choice(SYLLABLES)), lambda: "--" + word(r), lambda: f"--{word(r)}={r.choice([word(r), str(r.randint(1, 99))])}", lambda: f"-{r.choice(LETTERS)} {r.randint(1, 99)}"])()
    part = lambda: r.choice([word, word, path, folder, lambda r: "*." + r.choice(W("txt py go log csv")), lambda r: str(r.randint(1, 9999)), lambda r: "."])(r)
    one = lambda: " ".join([r.choice(PROGRAMS) if r.random() < .75 else word(r), *([word(r)] if r.random() < .2 else []), *(option() for _ in range(r.choice([0, 0, 1, 1, 2]))), *(part() for _ in range(r.choice([0, 1, 1, 2])))])
    return one() if r.random() < .85 else one() + r.choice([" | ", " && ", " > "]) + one()


def sql(r):
    """A statement for a database."""
    name = lambda: word(r) if r.random() < .8 else words(r, 2, 2, "_")
    case = r.choice([str, str, str.lower])
    what = r.choice(["*", "*", name(), f"{name()}, {name()}", f"COUNT({r.choice(['*', name()])})", f"{r.choice(W('MAX MIN SUM AVG'))}({name()})"])
    value = lambda: r.choice([str(r.randint(0, 999)), f"'{word(r)}'"])
    tail = r.choice(["", "", "", f" WHERE {name()} {r.choice(['=', '>', '<', '!='])} {value()}", f" ORDER BY {name()}", f" LIMIT {r.randint(1, 50)}", f" GROUP BY {name()}", f" WHERE {name()} = {value()} LIMIT {r.randint(1, 9)}"])
    if r.random() < .15:
        return case(r.choice([f"UPDATE {name()} SET {name()} = {value()}{tail if 'WHERE' in tail else ''}", f"DELETE FROM {name()}{tail if 'WHERE' in tail else ''}", f"INSERT INTO {name()} VALUES ({value()}, {value()})"]))
    return case(f"SELECT {what} FROM {name()}{tail}") + r.choice(["", "", "", ";"])


def quoted(r, text):
    return r.choice(['"%s"', '"%s"', "'%s'"]) % text


def as_code(r, text):
    """In backticks, most often."""
    return f"`{text}`" if r.random() < .6 or "'" in text and r.random() < .5 else f'"{text}"' if r.random() < .8 or "'" in text else f"'{text}'"
