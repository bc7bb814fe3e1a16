"""Conversations with tools. Tools come from schemes (look up, set, send, move, ...) with any noun and any names of
functions and parameters, so that only what the prompt says tells which tool and which arguments are meant."""
import json
import re

import words as w
from chat import fallback, faq, identity, small_talk, turn
from grammar import expand, fill, style
from tasks import instruct, recall

NO_TOOL = "None of my tools can do that."
NUMBERS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
TEXT = lambda r: (w.sentence(r) if r.random() < .9 else w.words(r, 5, 8))

# kind: (JSON type, usual parameter names, maker). A maker's value is written into the request as it is unless spoken() says otherwise.
KINDS = {
    "city": ("string", "city location place town where destination origin area region address", w.city),
    "person": ("string", "name person contact who user recipient to employee guest owner player customer", w.name),
    "email": ("string", "email to recipient address mail email_address sender", w.email),
    "path": ("string", "path file file_path filename source target input document", w.path),
    "folder": ("string", "path directory dir folder root workspace", w.folder),
    "url": ("string", "url link uri address page website", w.url),
    "word": ("string", "query item word term product topic symbol key name label tag category ingredient", w.word),
    "text": ("string", "text message content body title subject note comment description question", TEXT),
    "code": ("string", "id code order_id number ticket reference tracking_number serial", w.code),
    "date": ("string", "date day when due_date start_date", w.date),
    "time": ("string", "time at hour start_time when", w.time),
    "int": ("integer", "count amount number quantity limit level minutes size value seconds nights seats percent", w.integer),
    "number": ("number", "amount value degrees price distance weight speed target", lambda r: w.integer(r) if r.random() < .7 else round(r.uniform(1, 99), 1)),
    "bool": ("boolean", "enabled on active force recursive urgent verbose public locked dry_run", lambda r: r.random() < .5),
    "color": ("string", "color colour shade paint", lambda r: w.pick(r, w.COLORS)),
    "choice": ("string", "mode size unit status priority type format level style direction", None),
}
CHOICES = ["small medium large", "low medium high", "celsius fahrenheit", "left right", "open closed pending", "fast slow", "json csv xml", "up down", "daily weekly monthly", "draft final", "north south east west", "red green blue", "easy normal hard", "on off auto"]


class Param:
    def __init__(self, r, kind, role=""):
        self.kind, self.type = kind, KINDS[kind][0]
        x = r.random()
        if role and x < .3:
            self.name = role
        elif x < .55:
            self.name = r.choice(KINDS[kind][1].split(" "))
        elif x < .8:
            self.name = w.word(r)
        else:
            self.name = w.word(r) + "_" + r.choice(KINDS[kind][1].split(" ")).split("_")[0]
        self.enum = None
        if kind == "choice":
            self.enum = r.choice(CHOICES).split(" ") if r.random() < .6 else w.distinct(r, r.randint(2, 4))
        if r.random() < .15 and "_" in self.name:
            a, b = self.name.split("_", 1)
            self.name = a + b.capitalize()

    def value(self, r):
        """-> text in the request, JSON value"""
        if self.enum:
            v = r.choice(self.enum)
            return v, v
        v = KINDS[self.kind][2](r)
        if self.kind == "bool":
            return r.choice([("off", "on"), ("false", "true"), ("false", "true"), ("no", "yes")])[v], v
        if self.kind == "text":
            return (v if r.random() < .3 else w.quoted(r, v)), v
        if self.kind == "int" and v <= 10 and r.random() < .2:
            return NUMBERS[v], v
        if self.kind in ("path", "word", "code") and r.random() < .08:
            return w.quoted(r, v), v
        return str(v), v


def spelled(r, parts):
    """A function name in one of the usual styles."""
    x = r.random()
    if x < .6:
        return "_".join(parts)
    if x < .75:
        return parts[0] + "".join(p.capitalize() for p in parts[1:])
    if x < .85:
        return "".join(p.capitalize() for p in parts)
    if x < .95:
        return "-".join(parts)
    return "mcp__" + w.word(r) + "__" + "_".join(parts)


# scheme: verbs for the name, kinds of its parameters (a mark ? means it may be missing), requests. {N} is the noun, {0} {1} the values.
SCHEMES = [
    ("get find fetch check lookup show", "city", "What(is|'s| is) the {N} (in|of|for|at|near) {0} [right now|today|now]?|How is the {N} in {0} [today|now]?|(Tell|Show|Give) me the {N} (in|of|for|at) {0}|{N} (in|for|of) {0}|(Check|Get|Find|Look up|Fetch) the {N} (in|of|for) {0}|I need the {N} (in|for) {0}|(Do you know|Can you tell me) the {N} (in|of) {0}?|What's the {N} like in {0}?|"
     "(whats|hows|how's|what's) the {N} (in|at|for|over in) {0} [rn|today|like|like today|looking]?|{0} {N}[, please|, pls|?| today]|(i wanna|I want to|I'd like to|I need to|we have to) know the {N} (in|of|for|at) {0}|(I'm|We are|My sister is) (going|travelling|flying|moving|driving) to {0}[, what is the {N} [there]|, what {N} is there|. Tell me the {N}|. Check the {N}][?]|"
     "(Could|Would) you (check|look up|find|tell me|get me) the {N} (in|for|of|at) {0}?|(any|is there) {N} (in|for|near|around) {0}?|(For|In) {0}[,|:] (what is|show me|give me|check) the {N}[?]|(Is|Are) there any {N} data for {0}?|My boss (asks|wants to know) (about |) the {N} in {0}|(Let me know|Report|Find out) the {N} (in|for|of) {0}"),
    ("get find lookup fetch show search", "word", "What is the {N} (of|for) {0}?|(Find|Get|Show|Look up|Fetch|Check) [me] the {N} (of|for) {0}|{N} (of|for) {0}|(Search|Look) [for] the {N} {0}|I need the {N} (of|for) {0}|{0}: what is its {N}?|(Find|Show) [the|me the] {N} {0}|"
     "(whats|what's|which is) the {N} (of|for) {0}?|{0} {N}[, please|, pls|?]|(i wanna|I want to|I'd like to|we need to) (know|see|have) the {N} (of|for) {0}|(Could|Can|Would) you (get|find|check|look up|tell me|show me) the {N} (of|for) {0}?|(For|About|Regarding) {0}[,|:] (what is the {N}|I need the {N}|show me the {N}|look up the {N})[?]|(Tell|Give) me the {N} (of|for|belonging to) {0}|(any|got a|is there a) {N} for {0}?|"
     "(How|Where) do I find the {N} (of|for) {0}?|My boss (asks|wants to know) the {N} of {0}|(Find out|Report|Determine) the {N} (of|for) {0}|Do you know the {N} of {0}?"),
    ("get find lookup check", "person", "(What is|What's) {0}'s {N}?|(Find|Get|Look up|Show|Check) {0}'s {N}|(Find|Get|Show me) the {N} of {0}|I need {0}'s {N}|Which {N} does {0} have?|"
     "(whats|tell me|give me|gimme|show me) {0}'s {N}[ pls|?]|(i wanna|I want to|we need to|I have to) (know|see|have) {0}'s {N}|(Could|Can|Would) you (get|find|check|look up|tell me|show me) (the {N} of {0}|{0}'s {N})?|{0}'s {N}[, please|, pls|?]|the {N} of {0}[, please|, pls|?]|(For|About) {0}[,|:] (what is the {N}|show me the {N}|I need the {N})[?]|My boss (asks for|wants|needs) (the {N} of {0}|{0}'s {N})|"
     "(Do you know|Have you got|Is there) (the|a) {N} (of|for) {0}?|(Find out|Check|Fetch) (which|what) {N} {0} has|I (forgot|lost|don't have) {0}'s {N}[, (look it up|find it|can you check)]"),
    ("get track check find lookup", "code", "(Where is|What about|How is) [my|the] {N} {0}?|(Track|Check|Find|Look up|Show) [the|my] {N} {0}|status of {N} {0}|What is the (status|state) of [my|the] {N} {0}?|"
     "(wheres|where's|hows|what about) (my|the) {N} {0} [now]?|(i wanna|I want to|I need to) (know|see) (where|how) (my|the) {N} {0} is|(Could|Can|Would) you (track|check|look up|find) (my|the) {N} {0}?|(Any news|An update|Update|Status|News) (on|of|about|for) (my|the|) {N} {0}[?|, please]|My {N} (is|has the number|number is|has the code) {0}[,| and|.] (where is it|I want its status|how far is it|check it)[?]|"
     "{N} {0}[?|, please|, where is it?]|(Has|Did) {N} {0} (arrived|arrive|ship|shipped|move) [yet]?|(I am|We are|My boss is) waiting for {N} {0}[, (check it|where is it|what is its status)]|(What happened|What's up) (to|with) (my|the) {N} {0}?"),
    ("delete remove cancel close archive stop open start", "code", "{V} [the|my] {N} {0}|Please {v} {N} {0}|I want to {v} the {N} {0}|{N} {0}: {v} it|"
     "(Could|Can|Would) you {v} (the|my) {N} {0}?|(i wanna|I'd like to|we need to|we have to|you should) {v} (my|the) {N} {0}|(pls|just|now|go and|go ahead and) {v} (my|the) {N} {0}|(My|The|Our) {N} {0} (should be done|has to go|is the one)[,|:] {v} it|{v} {N} (number|no.|with the code|with id) {0}|(The {N} to {v}|What I want to {v}) is {0}|{V} (it|this)[:] {N} {0}|(It is time|I decided|My boss told me) to {v} {N} {0}|"
     "{0} is (the|a) {N} to {v}"),
    ("set change adjust", "int", "(Set|Change|Adjust|Turn) the {N} to {0}|{N} to {0}|(Make|Put) the {N} {0}|I want the {N} at {0}|(Set|Change) {N} {0}[, please]|"
     "(Could|Can|Would) you (set|change|adjust|put|turn) the {N} to {0}?|(i want|i wanna have|I'd like|we need|give me) the {N} (to be|at|set to|on) {0}|(pls|just|now) (set|put|change) the {N} (to|at) {0}|(Raise|Lower|Bring|Move|Get|Turn) the {N} to {0}|the {N} (should be|must be|has to be|shall be) {0}[, please]|{N}[:| =| at| ->] {0}[, please|, pls]|(Let's|Let us) (have|put|set) the {N} (at|to) {0}|"
     "The {N} is (wrong|too high|too low)[,|:] (make it|set it to|change it to|it should be) {0}|{0} (for|as) the {N}[, please]|My boss wants the {N} (at|to be|set to) {0}"),
    ("set change adjust", "number city?", "(Set|Change) the {N} in {1} to {0}|Set the {N} to {0} in {1}|{N} {0} in {1}[, please]|"
     "(Could|Can|Would) you (set|change|put) the {N} in {1} to {0}?|(i want|I'd like|we need) the {N} in {1} (at|to be|set to) {0}|(In|For) {1}[,|:] (set|change|put) the {N} to {0}|(pls|just|now) (set|change|put) the {N} (to|at) {0} (in|for) {1}|(Raise|Lower|Bring|Move) the {N} in {1} to {0}|(The|Our) {N} in {1} (should be|must be|has to be) {0}|(pls|just|now) (set|change|put) the {N} to {0}"),
    ("turn switch set toggle", "bool", "(Turn|Switch) {0} the {N}|(Turn|Switch) the {N} {0}|{N} {0}[, please]|I want the {N} {0}|"
     "(Could|Can|Would) you (turn|switch|set) the {N} {0}?|(i want|I'd like|we need) the {N} (to be|set to|turned|switched) {0}|(pls|just|now) (turn|switch|set) the {N} (to|) {0}|the {N} (should be|must be|has to be|goes) {0}[, please]|(Put|Set|Make) the {N} (to|) {0}|{N}[:| =| ->] {0}[, please|, pls]|(Get|Have) the {N} {0} [now]|{0} (with|for|goes) the {N}[, please]"),
    ("set paint change", "color", "(Paint|Make|Color|Turn) the {N} {0}|(Set|Change) the {N} to {0}|I want a {0} {N}|the {N} should be {0}|"
     "(Could|Can|Would) you (paint|make|color|colour|turn) the {N} {0}?|(i want|I'd like|we need|i wanna have) (my|the) {N} (in|to be|painted) {0}|(pls|just|now) (paint|make|color) the {N} {0}|{0} for the {N}[, please|, pls]|(Let|Let's make|Have) the {N} be {0}|(Give|Use) (the {N} the color {0}|{0} for the {N})|{N}[:| in| ->] {0}[, please]|(Repaint|Dye|Recolor) the {N} [in] {0}|"
     "(The|My) {N} looks (dull|old|boring)[,|:] (make it|paint it|I want it) {0}"),
    ("set change select", "choice", "(Set|Change|Switch) the {N} to {0}|(Use|Choose|Select|Pick) {N} {0}|the {N} should be {0}|{0} {N}[, please]|"
     "(Could|Can|Would) you (set|switch|change) the {N} to {0}?|(i want|I'd like|we need|I prefer) the {N} (on|to be|set to|in) {0}|(pls|just|now) (set|switch|change|put) the {N} to {0}|{N}[:| =| ->] {0}[, please|, pls]|(Go|I'd go|We go|Let's go) (with|for) {0} (for|as) the {N}|(Take|Select|Pick|Choose|Use) {0} (for|as) the {N}|The {N} (must be|has to be|shall be|ought to be) {0}|(Put|Move|Turn) the {N} to {0}"),
    ("send write post", "person text", "(Send|Write|Post) {0} (a|the) {N} (saying|that says|with the text) {1}|(Send|Write) [the|a] {N} {1} to {0}|(Tell|Let) {0} [know]: {1}|Send a {N} to {0}: {1}|{N} to {0}: {1}|{N} {0} and say {1}|"
     "(Could|Can|Would) you (send|write|post) {0} (a|the) {N} (saying|that says|with the text|with)[:|] {1}?|(i wanna|I want to|I need to|we have to) (send|write|post) {0} a {N}[:| saying| with the text| that says] {1}|(pls|just|now) (send|write) a {N} to {0}[:| saying| that says] {1}|A {N} (for|to) {0}[:| saying| with the text] {1}|(Inform|Notify|Message|Ping|Text|Write) {0}[:| with| by {N}:] {1}|"
     "(For|To) {0}[,|:] a {N} (saying|with the text|that says)[:] {1}|(Drop|Shoot|Leave|Give) {0} a {N}[:| saying] {1}|{0} (should get|must get|needs|is waiting for) a {N}[:| saying| that says] {1}|(Let|Make sure) {0} (know|knows) by {N}[:] {1}"),
    ("send email mail compose", "email text? text?", "(Send|Write) (a|an|the) {N} to {0} (with|about) [the subject] {1} and [the] (body|text|message) {2}|(Email|Mail) {0}: subject {1}, text {2}|(Send|Write) a {N} to {0} (saying|with the text) {1}|{N} {0}: {1}|(Email|Mail|Write to) {0} about {1}|"
     "(Could|Can|Would) you (send|write|mail) (a|the) {N} to {0} (saying|about|with the text|with the subject) {1}?|(i wanna|I want to|I need to) (email|mail|write to) {0} about {1}|(pls|just|now) (mail|email|write) {0}[:| about] {1}|A {N} (for|to) {0}[:| about| with the subject] {1}|(Drop|Shoot|Send) {0} (a|the) {N} (saying|about)[:] {1}|(To|For) {0}[,|:] subject {1}[,| and] (text|body|message) {2}|"
     "(Compose|Draft|Send) a {N} to {0}[,|:] subject {1}, (body|text) {2}|(Tell|Inform|Notify|Write) {0} by {N}[:|] {1}"),
    ("create add new make", "text", "(Create|Add|Make|Start) (a|an|the|a new) {N} (called|named|titled|with the title|saying|for) {0}|(Add|Put) {0} (to|on|in|into) (my|the) {N}|New {N}[:] {0}|{N}: {0}|I need a {N} (called|named|for) {0}|(Note|Write down|Save) {0} as {N}|"
     "(Could|Can|Would) you (create|add|make|start) a [new] {N} (called|named|titled|saying|for) {0}?|(i need|i want|I'd like|we need|gimme) a [new] {N} (called|named|titled|for|saying|with the title) {0}|(pls|just|now) (add|create|make|start) a [new] {N}[:| called| named] {0}|(A|One) (new|) {N}[:| called| named| titled] {0}|(Put|Write|Get|Enter) {0} (down as|in as|into|on) (a|my|the) {N}|"
     "(Don't let me forget|I must not forget|Remember for me)[:|,] {0}[,| ->] {N}|{0} (should|must|has to) (be|become|go into) (a|the|my) {N}|(Open|Begin|Set up|Record) a {N} (called|named|titled|saying) {0}|{N}[,|:] (title|text|name) {0}"),
    ("create add schedule plan book", "text date time?", "(Create|Add|Schedule|Plan|Book) (a|the) {N} {0} (on|for) {1} at {2}|(Put|Add) {0} (in|to|on) the {N} (on|for) {1}|(Schedule|Plan) {0} for {1} at {2}|{N} {0} on {1}[, please]|New {N} on {1} at {2}: {0}|On {1} I have {0}, put it in the {N}|"
     "(Could|Can|Would) you (schedule|plan|add|put|book) {0} (for|on) {1}[ at {2}]?|(i have|i've got|we have|there is) {0} on {1}[ at {2}][, (put it in the {N}|add it to the {N}|note it)]|(pls|just|now) (add|schedule|plan|book) {0} (on|for) {1}[ at {2}]|{0} (is|takes place|happens|will be) on {1}[ at {2}][, (add it to the {N}|plan it)]|(On|For) {1} [at {2} |](schedule|plan|add|note)[:] {0}|"
     "(A|One|My) {N} (on|for) {1}[ at {2}]: {0}|(Make|Set up|Arrange|Enter|Create) a {N} {0} (for|on) {1}[ at {2}]|{1}[, {2}]: {0}[, (into|in) the {N}]"),
    ("book reserve order rent get", "int city?", "(Book|Reserve|Rent|Get me|Order) (a|an|the) {N} for {0} (people|nights|persons|days|hours) [in {1}]|(I need|I want) a {N} for {0} (people|guests|nights|days) [in {1}]|{N} for {0} in {1}|"
     "(Could|Can|Would) you (book|reserve|rent|order|get me) a {N} for {0} (people|persons|nights|guests|days|hours) [in {1}]?|(i need|i wanna have|we'd like|we want|we are looking for) a {N} for {0} (people|nights|of us|adults|days) [in {1}]|(We are|There are|We will be) {0} (people|guests|persons)[ in {1}|,] (and need|book|reserve|get us) a {N}|"
     "(pls|just|now) (book|reserve|get|rent) a {N} for {0} [people|nights|persons] [in {1}]|(In {1}|In {1},) (book|reserve|get) a {N} for {0} (people|nights|persons)|A {N} (in {1} |)for {0} (people|nights|guests|days)[, please|, pls]|{N} (in {1} |)for {0}[, please|, pls]|(Find|Arrange|Organize) a {N} for {0} (people|nights|guests) [in {1}]"),
    ("order buy add purchase", "word int?", "(Order|Buy|Get me|Purchase|Add|I want|I'd like) {1} {0} [from the {N}|for the {N}|to the {N}]|(Order|Buy|Get) [some|a] {0} (from|for) the {N}|{1} {0} for the {N}[, please]|(Put|Add) {1} {0} (on|to|in) the {N}|"
     "(Could|Can|Would) you (order|buy|get me|purchase|add) {1} {0} [from the {N}|for the {N}]?|(i need|i wanna have|we need|we want|gimme|give me) {1} {0} [from the {N}|for the {N}]|(pls|just|now) (order|buy|get|add) {1} {0}|(We are|We're|I am|I'm) (out of|low on) {0}[,| so|:] (order|buy|get) {1}|{0}[,|:] {1} (of them|pieces|please)|(Order|Buy|Get|Purchase) {1} (pieces of|units of|packs of|of the|more) {0}|"
     "{1} {0}[, please|, pls| to order]|(pls|could you|can you) (order|buy|get) {0} [from the {N}|for the {N}]|(Put|Place) an order for {1} {0}"),
    ("read open show view cat", "path", "(Read|Open|Show|Show me|View|Display|Print) [the] [file|{N}] {0}|What (is|'s) in [the] [file|{N}] {0}?|(Show|Give) me the (contents|content|text) of {0}|What does {0} (say|contain)?|"
     "(whats|what's) (in|inside|written in) [the] [file|{N}] {0}?|(Could|Can|Would) you (open|read|show me|print|display) [the] [file|{N}] {0}?|(i wanna|I want to|I need to|let me|I'd like to) (see|read|look at|view) [the] [file|{N}] {0}|(pls|just|now) (read|open|show|print) {0}|(Take|Have) a look (at|into|inside) [the] [file|{N}] {0}|(Look|Peek) (at|into|inside) {0}|"
     "{0}[:|,] (read it|open it|what is in it|show me|print it)[?]|(Print|Dump|Type out|Output) (the contents of|) {0}|(Read|Look at) {0} (and tell me what it says|for me|aloud|first|to the end)|(What|Which) text (is|stands) in {0}?"),
    ("write create save make", "path text", "(Write|Save|Put|Store) {1} (to|into|in) [the file|the {N}|] {0}|(Create|Make|Write) [a|the] [file|{N}] {0} (with|containing|with the content|with the text|that says) {1}|(Create|Make) a [new] (file|{N}) (called|named) {0} (with|containing) [the] [text|content] {1}|{0} should contain {1}|New (file|{N}) {0}: {1}|"
     "(Could|Can|Would) you (write|save|put|store) {1} (to|into|in) {0}?|(i want|I'd like|I need|we need) a (file|{N}) {0} (with|containing|with the text|that says)[:] {1}|(pls|just|now) (write|save|put|store) {1} (to|into|in) {0}|(In|Into|To) {0} (write|put|save|store)[:] {1}|(Generate|Add|Set up|Produce) [a|the] (file|{N}) {0} (with|containing|with the content|saying)[:] {1}|(Fill|Overwrite|Populate) {0} with {1}|"
     "(The|A) (file|{N}) {0} (must|should|has to) (contain|say|have the text|hold)[:] {1}|{0}[:|,] (write|put|save) {1} (in it|there|into it)"),
    ("delete remove erase", "path", "(Delete|Remove|Erase|Throw away|Get rid of) [the] [file|{N}] {0}|{0} (can go|must go|is no longer needed), (delete|remove) it|"
     "(Could|Can|Would) you (delete|remove|erase) [the] [file|{N}] {0}?|(i wanna|I want to|we need to|I'd like to) (delete|remove|erase|get rid of) [the] [file|{N}] {0}|(pls|just|now|go and) (delete|remove|erase|rm) {0}|(I|We) (don't|do not|no longer) need [the] [file|{N}] {0}[ anymore| any more|][, (delete it|remove it|throw it away|so erase it)]|(rm|del|bin|trash|wipe|kill) {0}|"
     "{0}[:|,] (delete|remove|erase|away with it|delete it|remove it)|(Make|Let) {0} (disappear|go away|vanish)|[the] [file|{N}] {0} (must|should|has to|may) (be deleted|be removed|disappear|go)"),
    ("move rename copy", "path path", "(Move|Rename|Copy) [the] [file|{N}] {0} to {1}|{0} should (be|become|go to) {1}, {v} it|{v} {0} {1}|"
     "(Could|Can|Would) you {v} [the] [file|{N}] {0} to {1}?|(i wanna|I want to|we need to|I'd like to) {v} [the] [file|{N}] {0} to {1}|(pls|just|now|go and) {v} {0} to {1}|{V} (what is in|what's at|) {0} (to|over to|into) {1}|(From|Source) {0} (to|target) {1}[,|:] {v}|{v} (from|) {0} to {1}[, please|, pls]|{0} (belongs|goes|has to go|must go) (to|into) {1}[, (so |) {v} it]|(mv|cp) {0} {1}|{V} {0} -> {1}|"
     "(Take|Get) {0} and {v} it to {1}"),
    ("list show ls", "folder", "(List|Show) [me] [the files in|the contents of|all files in|the {N}s in] {0}|(What|Which) (files|{N}s) are in [the folder|the directory|] {0}?|What is in [the folder|the directory] {0}?|"
     "(whats|what's) (in|inside|lying in) [the (folder|directory)] {0}?|(Could|Can|Would) you (list|show me) (the files in|the contents of|what is in|everything in) {0}?|(i wanna|I want to|I need to|let me) see (what's in|the files in|what is inside|all {N}s in) {0}|(pls|just|now) list {0}|(ls|dir|list|tree) {0}|(Have|Take) a look (into|inside|at) [the (folder|directory)] {0}|"
     "(Look|Peek) (into|inside) (the folder|the directory|) {0}|(Is|Are) there (anything|any files|{N}s|any {N}s) in {0}?|{0}[:|,] (what is in there|list it|list the files|show the contents)[?]|(Tell|Show) me (what|which files|which {N}s) {0} (contains|has|holds)|(All|The) (files|{N}s) (in|of|under) {0}[, please|, pls]|How many (files|{N}s) are in {0}?"),
    ("run execute", "text", "(Run|Execute|Start|Do) [the] (command|{N}|script) {0}|(Run|Execute) {0} [in the {N}|now]|please (run|execute): {0}|"
     "(Could|Can|Would) you (run|execute|start) [the (command|script)][:] {0}?|(i wanna|I want to|I need to|I want you to) (run|execute)[:] {0}|(pls|just|now|go and) (run|execute)[:] {0}|(Type|Enter|Call|Launch|Invoke|Fire) {0} [in the {N}]|(In|On) the {N}[,|:] (run|execute|start|do) {0}|(exec|run|sh|bash|cmd|command)[:] {0}|(The|My) (command|{N}) (is|to run is)[:] {0}|(Let's|Let us) (run|execute|try) {0}|"
     "(See|Check|Show me) what {0} (prints|gives|does|returns)"),
    ("search find grep look", "word folder?", "(Search|Look|Find) [for] {0} in {1}|(Find|Search for|Look for) {0} [in the {N}]|(Where is|Is there) {0} in {1}?|(grep|search|find) {0} {1}|"
     "(Could|Can|Would) you (search|look) for {0} in {1}?|(i wanna|I want to|I need to) (find|search for|look for) {0} in {1}|(pls|just|now) (search|find|look for|grep) {0} (in|under) {1}|(Does|Is) {0} (occur|appear|mentioned|found|used) (anywhere |) in {1}?|(In|Under|Inside) {1}[,|:] (find|search for|look for|where is) {0}|(Where|In which file) (do we use|does {1} mention|in {1} is) {0}?|"
     "(Find|Show|List) (all|every|any|me every) (mention|use|occurrence|place|line) of {0} (in|under) {1}|(pls|just|now|could you|can you) (find|search for|look for) {0}|(I am looking|I'm searching|We look) for {0}[ in {1}]"),
    ("search find google", "text", "(Search|Look) [in|on] [the] {N} for {0}|(Search for|Look up|Find) {0} [online|on the {N}|in the {N}|]|{N} search[:] {0}|What does the {N} say about {0}?|"
     "(Could|Can|Would) you (search|look up|look) (the {N} for|on the {N} for|in the {N} for) {0}?|(i wanna|I want to|I need to) (search|look) (the {N}|on the {N}|in the {N}) for {0}|(pls|just|now) (search|look up|google|find)[:] {0}|(Ask|Query|Consult|Check) the {N} (for|about|on)[:] {0}|(On|In) the {N}[,|:] (search|look|find|search for) {0}|"
     "(Is there|Find) (anything|something|an entry) (about|on|for) {0} (on|in) the {N}[?]|(I am looking|I'm searching|We look) (on|in) the {N} for {0}|(search|query|look up|find)[:] {0}|(What|Anything) (can|does|on) the {N} (tell|say|) (us |me |)about {0}?"),
    ("fetch open download load", "url", "(Open|Fetch|Load|Download|Get|Visit) [the] [page|{N}|website] {0}|What (is|'s) (on|at) {0}?|(Show|Give) me [the page] {0}|"
     "(whats|what's) (on|at|behind) {0}?|(Could|Can|Would) you (open|fetch|load|get|download|visit) [the (page|site)] {0}?|(i wanna|I want to|I need to|let me) (see|read|open|visit) {0}|(pls|just|now) (open|fetch|load|get|visit) {0}|(Go|Browse|Navigate|Surf) to {0}|(Take|Have) a look at [the (page|site)] {0}|(Look at|Read|Check out|Grab|Pull|Retrieve) [the (page|site)] {0}|"
     "{0}[:|,] (open it|load it|fetch it|what is there|what does it say)[?]|(What|Which text) (does the page|does) {0} (say|show|contain)?"),
    ("convert change exchange", "number word word", "(Convert|Change|Exchange) {0} {1} (to|into|in) {2}|(How much|How many) (is|are) {0} {1} in {2}?|{0} {1} (in|to) {2}[, please]|What is {0} {1} in {2}?|"
     "(Could|Can|Would) you (convert|change|exchange) {0} {1} (to|into|in) {2}?|(whats|what's|how much's|how many's) {0} {1} (in|to) {2}?|(i wanna|I want to|I need to) (convert|change|exchange|turn) {0} {1} (to|into) {2}|(pls|just|now) (convert|change) {0} {1} (to|into) {2}|(I have|I've got|We have) {0} {1}[,|:] (how much|how many) (is that|are that|would that be) in {2}?|"
     "{0} {1} (makes|gives|equals|is|=) how (many|much) {2}?|{0} {1} -> {2}|(Turn|Put|Express|Give me) {0} {1} (into|in|as) {2}|What do I get for {0} {1} in {2}?"),
    ("translate", "text word", "(Translate|Put) {0} (to|into) {1}|How do you say {0} in {1}?|{0} in {1}[, please]|(What is|What's) {0} in {1}?|(Say|Write) {0} in {1}|"
     "(Could|Can|Would) you (translate|put|say) {0} (to|into|in) {1}?|(whats|how do u say|how would you say|how does one say|how do I write) {0} in {1}?|(i need|I want|I'd like|we need) {0} (in|translated to|translated into) {1}|(pls|just|now) (translate|put) {0} (to|into) {1}|(Into|To|In) {1}[,|:] [please |translate ]{0}|(What|Which) is the {1} (for|word for|version of) {0}?|{0} -> {1}|"
     "{0}[,|:] (now|translate it|translated|say it|the same) (to|into|in) {1}|(Give|Tell|Write) me {0} (in|into) {1}"),
    ("find search book get", "city city date?", "(Find|Search|Book|Get) [me] (a|the) {N} from {0} to {1} [on {2}]|{N}s from {0} to {1} [on {2}]|(I want|I need|I'd like) (a|to take a) {N} from {0} to {1} [on {2}]|(How far is it|What is the {N}) (from|between) {0} (to|and) {1}?|{0} to {1} by {N}|"
     "(Could|Can|Would) you (find|search|book|get) [me] a {N} from {0} to {1} [on {2}]?|(i wanna|I want to|we have to|I need to) (go|get|travel) from {0} to {1} (by {N}|with a {N}|by {N} on {2})|(pls|just|now) (find|book|get|search) a {N} from {0} to {1} [on {2}]|(any|is there a|which|are there) {N}s (from|between) {0} (to|and) {1}?|{N} {0} to {1}[ on {2}][, please|, pls|?]|"
     "(I'm|I am|We are) (in|at) {0} and (want|need|have) to (get|go) to {1}[ on {2}][,|:] (find|book|get|which) a {N}|(From|Starting in|Leaving) {0} to {1}[ on {2}][,|:] (a|one|I need a|find a) {N}[, please]|(On {2}|On {2},) (find|book|get) a {N} from {0} to {1}|{0} -> {1}[, {N}| by {N}| with the {N}]"),
    ("set start create", "int", "(Set|Start|Make) (a|the) {N} (for|of) {0} (minutes|seconds|hours|rounds)|(Remind|Wake|Call) me in {0} minutes[ with the {N}|]|{N} {0} minutes[, please]|(Start|Set) a {0} minute {N}|"
     "(Could|Can|Would) you (set|start|make) a {N} (for|of) {0} (minutes|seconds|hours|rounds)?|(i need|i want|I'd like|we need|gimme) a {N} (for|of) {0} (minutes|seconds|hours|mins)|(pls|just|now) (set|start) a {N} (for|of) {0} [minutes|seconds|mins]|{0} (minutes|min|mins|seconds) {N}[, please|, pls]|(Count|Run|Let run) the {N} (for|) {0} (minutes|seconds)|{N}[:|,] {0} (minutes|seconds|min)|"
     "(In|After) {0} minutes[,|] the {N} should (ring|stop|end|go off)|(Ping|Tell|Alert|Remind) me (in|after) {0} (minutes|mins)"),
    ("set create wake", "time text?", "(Set|Make|Create) (a|an|the) {N} (for|at) {0} [called {1}|saying {1}|with the text {1}]|(Wake|Remind|Call) me at {0} [about {1}]|{N} at {0}[, please]|(I need|I want) a {N} at {0}|"
     "(Could|Can|Would) you (set|make|create) a {N} (for|at) {0}[ (called|saying|with the text) {1}]?|(i need|i want|I'd like|we need|gimme) a {N} (at|for) {0}[ (called|saying|with the text) {1}]|(pls|just|now) (set|make|create) a {N} (at|for) {0}|(Wake|Remind|Call|Ping|Alert|Ring) me at {0}[ (about|because of|with the text|and say) {1}][, please]|(At|For) {0}[,|:] (set a {N}|a {N}|remind me|wake me)[, please]|"
     "{N}[:| for|,] {0}|I (have to|must|need to) (get up|wake up|be up|leave) at {0}[, (set a {N}|so set the {N}|wake me)]|{0} {N}[, please|, pls]"),
    ("play start show", "text person?", "(Play|Start|Put on|Show|I want to hear) [the {N}] {0} [by {1}]|{N} {0} by {1}[, please]|I'd like to (hear|see) {0} [by {1}]|"
     "(Could|Can|Would) you (play|put on|start) [the {N}] {0} [by {1}]?|(i wanna|I want to|let me|we'd like to) (hear|listen to|see|play) [the {N}] {0} [by {1}]|(pls|just|now) (play|start|put on) {0} [by {1}]|(Let's|Let us) (hear|play|have) [the {N}] {0} [by {1}]|(Next|Now)[,|:] [the {N}] {0} [by {1}][, please]|(I'm|I am) in the mood for [the {N}] {0} [by {1}]|{0} by {1}[, please|, pls|, play it]|"
     "(Queue|Spin|Turn on|Give me) [the {N}] {0} [by {1}]"),
    ("create add register invite", "person email", "(Create|Add|Register|Make) (a|the) [new] {N} {0} with [the] (email|address|e-mail) {1}|(Add|Register|Invite) {0} ({1})|New {N}: {0}, {1}|{0} is a new {N}, (his|her|the) address is {1}|"
     "(Could|Can|Would) you (create|add|register|make) a [new] {N} {0} with [the] (email|address) {1}?|(i wanna|I want to|we need to) (add|register|create|invite) {0} (as a {N} |)(with|using|at) [the] (email|address) {1}|(pls|just|now) (add|register|invite) {0}, {1}|(A|One) new {N}[:|,] {0}[,| at| with the email] {1}|(Please |)(put|enter|sign up|enroll|enrol) {0} (as a {N} |)(with|under) [the] (email|address) {1}|"
     "{0} (wants|would like|needs) to (be|become) a {N}[,|:] [the] (email|address|e-mail) [is] {1}|{N} {0} <{1}>|(The|Our) new {N} is {0}[,| with|, address] {1}"),
    ("get list show count", "", "(What|Which) {N}s (are there|do we have|do I have)?|(Show|List|Give me) (all|the|my|all the) {N}s|How many {N}s are there?|(Get|Check|Show) the {N}|What (is|'s) the {N} [now]?|"
     "(whats|hows|what's|how is|how's) the {N} [now|today|doing]?|(Could|Can|Would) you (show|list|get|check|tell me) (the|all|my|our) {N}s?|(i wanna|I want to|I need to|let me) (see|know|have) (the|all|my|our) {N}s|(pls|just|now) (list|show|get|check) the {N}|(all|my|the|our) {N}s[, please|, pls|?]|(Is|Are) there (any|a|some) {N}s?|(Tell|Give) me the {N} [now|please]|"
     "(Report|Read out|Print|Display|Fetch|Look up) (the|all|my) {N}s|(Which|What) {N}s (exist|have we got|does the system have|are left)?|(the|current|latest|today's) {N}[, please|, pls|?]|(Any|Got any|Do you have any) {N}s?"),
    ("replace edit change", "path text text", "(In|In the file) {0} (replace|change) {1} (with|by|to) {2}|(Replace|Change) {1} (with|by|to) {2} in {0}|(Edit|Fix) {0}: {1} (should become|becomes|->) {2}|"
     "(Could|Can|Would) you (replace|change) {1} (with|by|to|into) {2} in {0}?|(i want|I'd like|we need) {1} (replaced by|changed to|to become) {2} in {0}|(pls|just|now) (replace|change) {1} (with|by) {2} in {0}|(Open|Take|Edit) {0} and (replace|change|swap) {1} (with|by|for|to) {2}|(In|Inside|Within) {0}[,|:] {1} (should be|must become|has to be|becomes|->) {2}|(Swap|Exchange|Substitute) {1} (for|with|by) {2} in {0}|"
     "{0}[:|,] {1} -> {2}|(There is|I made) (a mistake|an error|a typo) in {0}[,|:] {1} (should be|must be|has to become) {2}|(Rewrite|Turn) {1} (as|into) {2} in {0}"),
]
# a verb and a noun with parameters that the request names
OWN_REQUEST = ("{V} the {N}{A}|{V} (a|my|this|our) {N}{A}|(Please|Can you|Could you|I want to|I need you to|Would you|Let's|Go ahead and|We have to|It is time to) {v} (the|a|my|this|our) {N}{A}|{v} {N}{A}|the {N}: {v} it{A}|"
               "(pls|just|now|ok now|next|go|quick,|hey,|first|finally) {v} (the|a|my|our|that) {N}{A}|(i wanna|i want you to|I'd like to|I would like to|we wanna|we need to|i gotta|you should|you must|u need to|it would be nice to) {v} (the|a|my|this|our) {N}{A}|(My boss|A customer|My wife|The team|Someone) (wants me to|wants you to|asks you to|told me to|needs us to) {v} (the|a|our|this) {N}{A}|"
               "(Can|Could|Will|Would) (u|you|we) [please|pls|kindly|quickly] {v} (the|a|my|this|our|that) {N}{A}|(Time to|Let us|How about we|Be so kind and|Do me a favor and|Make sure to|Try to|Remember to|Don't forget to|Help me|Help me to) {v} (the|a|my|this|our) {N}{A}|{V} {N}[, please|, pls]{A}|(I have|There is|We have|Here is) (a|this|that|another) {N}, {v} it{A}|{N}[:|,] {v}{A}|(One|Another|A) {N} to {v}{A}|{V} (one|another|some|any|that|the next) {N}{A}|"
               "(The {N} (needs|has|is) to be done|This is about the {N}|As for the {N}|Regarding the {N}|About the {N})[,|:] {v} it{A}|(The task|My request|The job|What I need|My wish)[ is|:] [to] {v} (the|a|my) {N}{A}|(Is it possible|Are you able|I am trying|We are trying|I need help) to {v} (the|a|my|this) {N}{A}")
DESCRIBE = "{V} (a|the) {N}|{V} {N}s|{V} the given {N}|(Use this to|Lets you|Can|Helps to) {v} (a|the) {N}|{V} {N} (data|information|entries)|This (tool|function) can {v} a {N}"


class Tool:
    def __init__(self, r):
        x = r.random()
        self.noun = w.pick(r, w.NOUNS) if x < .35 else w.pick(r, w.SUBJECTS) if x < .6 else w.word(r)
        if r.random() < .12:
            self.noun = w.word(r) + " " + self.noun
        self.scheme = r.choice(SCHEMES) if r.random() < .62 else None
        if self.scheme:
            self.verb = r.choice(self.scheme[0].split(" "))
            self.params = [Param(r, k.rstrip("?")) for k in self.scheme[1].split()]
            self.optional = [k.endswith("?") for k in self.scheme[1].split()]
        else:
            self.verb = w.pick(r, w.VERBS) if r.random() < .7 else w.word(r)
            self.params = [Param(r, r.choice(list(KINDS))) for _ in range(r.choice([0, 1, 1, 2, 2, 3]))]
            self.optional = [r.random() < .3 for _ in self.params]
        seen = set()
        for p in self.params:
            while p.name in seen:
                p.name += "_" + w.word(r)
            seen.add(p.name)
        parts = [self.verb] + self.noun.split(" ")
        x = r.random()
        self.name = spelled(r, parts if x < .8 else parts[1:] if x < .88 else parts[1:] + [self.verb] if x < .95 else [w.word(r)] + parts)
        self.text = fill(expand(r, DESCRIBE), N=self.noun, v=self.verb, V=self.verb.capitalize())
        if r.random() < .25:
            self.text += expand(r, "(.|. Returns the (result|{x}).|, for example a {x})").replace("{x}", w.word(r))

    def schema(self, r):
        props = {}
        for p in self.params:
            props[p.name] = {"type": p.type, **({"enum": p.enum} if p.enum else {})}
        params = {"type": "object", "properties": props}
        required = [p.name for p, o in zip(self.params, self.optional) if not o]
        if required and r.random() < .85:
            params["required"] = required
        return {"type": "function", "function": {"name": self.name, "description": self.text, "parameters": params}}

    def request(self, r):
        """-> what the user says, arguments"""
        if not self.scheme:
            return self.own_request(r)
        text = expand(r, self.scheme[2])
        used = sorted({int(i) for i in re.findall(r"\{(\d)\}", text)})
        values = {i: self.params[i].value(r) for i in used}
        if len(self.params) == 1 and self.params[0].kind == "text" and text.endswith("{0}") and r.random() < .3:
            values[0] = (values[0][1],) * 2
        text = style(r, text)
        said = fill(text, N=self.noun, v=self.verb, V=self.verb.capitalize(), **{str(i): v[0] for i, v in values.items()})
        return said, {self.params[i].name: values[i][1] for i in used}

    def own_request(self, r):
        bits, args = [], {}
        for p, optional in zip(self.params, self.optional):
            if optional and r.random() < .5:
                continue
            said, args[p.name] = p.value(r)
            label = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", p.name).replace("_", " ").lower() if r.random() < .85 else p.name
            bits.append(fill(expand(r, "({k} {v}|{k} {v}|{k} {v}|{k} = {v}|{k}: {v}|[the] {k} is {v}|{k} set to {v}|a {k} of {v}|{v} as [the] {k}|{v} for [the] {k})"), k=label, v=said))
        order = list(bits)
        if r.random() < .2:
            r.shuffle(order)
        a = r.choice([" with ", " with ", ", ", ": ", " using ", ". Use "]) + (", ".join(order[:-1]) + r.choice([" and ", ", "]) + order[-1] if len(order) > 1 else order[0]) if order else ""
        text = style(r, expand(r, OWN_REQUEST).replace("{A}", "" if not a else "{A}"))
        return fill(text, N=self.noun, v=self.verb, V=self.verb.capitalize(), A=a), args


def toolset(r, most=4):
    tools = [Tool(r) for _ in range(min(most, r.choice([1, 1, 2, 2, 2, 3, 3, 4])))]
    if r.random() < .3:  # one that differs from another only in its noun or its verb
        a, b = tools[0], Tool(r)
        if r.random() < .5:
            b.noun = a.noun
        elif not a.scheme and not b.scheme:
            b.verb = a.verb
        b.name = spelled(r, [b.verb] + b.noun.split(" "))
        b.text = fill(expand(r, DESCRIBE), N=b.noun, v=b.verb, V=b.verb.capitalize())
        if (a.noun, a.verb) != (b.noun, b.verb):
            tools.append(b)
    r.shuffle(tools)
    names = {}
    for t in tools:
        names.setdefault((t.name.lower()), t)
    return list(names.values())


def result(r):
    """-> what the tool said, the sentence about it"""
    x = r.random()
    if x < .25:
        said = r.choice(["ok", "OK", "done", "success", "Done.", '{"status": "ok"}', '{"success": true}', '{"ok": true}', "true", "Success"])
        return said, "Done."
    if x < .33:
        e = r.choice(["not found", "permission denied", "timeout", "no such file", "service unavailable", w.words(r, 1, 3)])
        return r.choice([f"Error: {e}", f"error: {e}", json.dumps({"error": e})]), f"That did not work: {e}."
    if x < .55:
        s = r.choice([w.sentence, w.sentence, w.time, w.date, lambda r: str(w.integer(r)), lambda r: f"{w.integer(r)} {w.word(r)}"])(r)
        return (s if r.random() < .6 else json.dumps({r.choice(["result", "text", "output", "content", "message"]): s})), f"The result is: {s}"
    keys = w.distinct(r, r.choice([1, 1, 2, 2, 3]), lambda r: r.choice("temperature condition price time count state name level code total distance humidity balance phone date score".split()) if r.random() < .5 else w.word(r) if r.random() < .8 else w.words(r, 2, 2, "_"))
    values = [r.choice([w.integer, w.integer, w.word, w.word, w.name, w.time, w.date, lambda r: round(r.uniform(0, 99), 1)])(r) for _ in keys]
    facts = [f"the {k.replace('_', ' ')} is {v}" for k, v in zip(keys, values)]
    s = ", ".join(facts[:-1]) + " and " + facts[-1] if len(facts) > 1 else facts[0]
    return json.dumps(dict(zip(keys, values))), s[0].upper() + s[1:] + "."


def unfit(r, tools):
    """A request for a tool that is not there, often close to one that is."""
    t = Tool(r)
    taken = " ".join(x.name + " " + x.text + " " + x.noun for x in tools).lower()
    if r.random() < .4 and not t.scheme:
        near = r.choice(tools)
        if not near.scheme and t.verb not in near.name.lower() + near.text.lower():
            t.noun = near.noun
            return t.request(r)[0]
    if any(part in taken for part in t.noun.lower().split(" ")):
        return None
    if t.scheme and "{N}" not in t.scheme[2]:
        return None
    for _ in range(4):
        said = t.request(r)[0]
        if t.noun.lower() in said.lower():
            return said
    return None


# several requests in one message: what is between them, and frames for two and for three
BETWEEN = [" and ", ", and ", " and then ", ". ", ". Then ", "; ", ". Also ", " and also ", "\n", ", then ", ", also ", " then ", ". After that ", ". And ", ". Next, ", ", and after that ", ", and also ", " plus ", " & ", " and at the same time ", ". Oh and ",
           ". Besides, ", ". Additionally, ", ". Finally ", ". While you're at it, ", " and while you're at it ", ". When that is done, ", " and, if you can, ", ". One more thing: ", ". P.S. ", ", as well as: ", "; then ", "\nand ", "\nThen ", "\n- ", ". Btw, ", " and afterwards ", "? And ", "! Then ", ", oh and "]
TWO = ("First {a}, then {b}|First {a}, (second|secondly|after that|and then|next) {b}|(Two things|Two tasks|Two requests|2 things|I need two things|Please do two things|Do both|Do these two): {a}[,|;] and {b}|(Two things|Two tasks|To do|Todo|Please|Tasks)[:]\n1. {a}\n2. {b}|1. {a} 2. {b}|1: {a} 2: {b}|- {a}\n- {b}|A: {a} B: {b}|Both[, please|]: {a} and {b}|(First of all,|To begin with,|Start with this:) {a}[,|.] (then|and then|afterwards) {b}|"
       "After (this|that one): {a}, (do this|also): {b}|{a}, and (when you are done|when that is done|once that is done|right after|if there is time|in the same go) {b}|(Hi|Hello|Hey|ok|So)[!|,] {a}, and (also|then|) {b}[, please| thanks|]|(At the same time|In parallel|Together|At once): {a} and {b}|{a} [but |and ]also {b}|On the one hand {a}, on the other hand {b}|I need (you to do |) this: {a}, and this: {b}|(One|Number one): {a}. (Two|Number two): {b}")
THREE = "First {a}, then {b}, (then|and then|and finally|finally) {c}|(Three things|Three tasks|3 things|To do|Tasks|Please)[:] {a}, {b}[,] and {c}|1. {a} 2. {b} 3. {c}|(Tasks|Please|Todo|Three things)[:]\n1. {a}\n2. {b}\n3. {c}|- {a}\n- {b}\n- {c}|{a}; {b}; {c}|{a}, {b}, {c}|{a}, {b} and (then|also|finally|) {c}|{a}. Then {b}. (Finally|And then|After that|At last) {c}|{a}, after that {b} and (at the end|last) {c}"
STARTS = {x for s in SCHEMES for x in re.findall(r"\b[A-Z][a-z]+\b", s[2])} - set(w.FIRST)
# two values for one tool
AGAIN = "{0} and {1}|{0} and {1}|{0} and also {1}|both {0} and {1}|{0} as well as {1}|{0} plus {1}|{0} & {1}|{0}, {1}|{0} and then {1}|{0}, and {1}|{0} and (after that|afterwards|additionally) {1}|{0}, also {1}|{0} and {1} too|{0} and {1} as well|first {0} and then {1}|{0}, then {1}|{0} + {1}|{0} / {1}|{0} and the same for {1}|{0} and likewise {1}|{0} together with {1}|not only {0} but also {1}|{0} and not to forget {1}"


def again(text):
    """Ways of naming two values where the request has one."""
    before = re.search(r"\b(in|for|of|at|near) \{0\}", text)
    return AGAIN + ("|{0} and x {1}|{0} and also x {1}|{0}, and x {1}|{0} as well as x {1}|{0} and then x {1}|{0}, x {1}".replace("x", before[1]) if before else "")


def together(r, said, calls):
    """Requests as one message. What ends in a value keeps its last character; only a request before another loses its mark."""
    if len(said) == 1:
        return said[0]
    ends = [tuple(str(v) for v in c["arguments"].values()) for c in calls]
    bare = [s[:-1] if s[-1] in ".?" and not s.endswith(e) else s for s, e in zip(said, ends)]
    if r.random() < .5:  # in the middle of a sentence
        bare[1:] = [s[:1].lower() + s[1:] if s.split(" ")[0] in STARTS else s for s in bare[1:]]
    if r.random() < .35 and len(said) < 4:
        return fill(expand(r, TWO if len(said) == 2 else THREE), **dict(zip("abc", bare)))
    if len(bare) < 3 or r.random() < .5:
        return r.choice(BETWEEN).join(bare)
    return bare[0] + "".join(r.choice(BETWEEN) + s for s in bare[1:])


def conversation(r, most=3, several=False, most_tools=4):
    """-> tools, turns; a turn with tools has calls, and results that the next reply tells about. several: a lesson in more
    calls than one, and in nothing else."""
    tools = toolset(r, most_tools)
    turns = []
    for _ in range(min(most, r.choice([1, 1, 2, 2, 3]))):
        x = r.uniform(.57, .72) if several else r.random()
        if x < .72:
            n = 1 if x < .57 else r.choice([2, 2, 2, 2, 3])
            if n > 1 and r.random() < .45:
                chosen = [r.choice(tools)] * n
            else:
                chosen = [r.choice(tools) for _ in range(n)]
            said, calls = [], []
            for t in chosen:
                s, a = t.request(r)
                said.append(s), calls.append(dict(name=t.name, arguments=a))
            t = chosen[0]
            if n == 2 and chosen[0] is chosen[1] and len(t.params) == 1 and t.params[0].kind in ("city", "person", "word", "path", "code") and r.random() < .7:
                p, q = t.params[0].value(r), t.params[0].value(r)
                text = expand(r, t.scheme[2] if t.scheme else "{v} the {N} {0}")
                text = style(r, text)
                if text.count("{0}") == 1:
                    said = [fill(text.replace("{0}", expand(r, again(text))), **{"0": p[0], "1": q[0]}, N=t.noun, v=t.verb, V=t.verb.capitalize())]
                    calls = [dict(name=t.name, arguments={t.params[0].name: v[1]}) for v in (p, q)]
            user = together(r, said, calls)
            tn = turn(user, "", "call" if len(calls) == 1 else "calls", calls=calls)
            turns.append(tn)
            if r.random() < .75 and not several:
                done = [result(r) for _ in calls]
                tn["results"] = [d[0] for d in done]
                answer = " ".join(d[1] for d in done)
                if len(done) > 1 and all(d[1] == "Done." for d in done):
                    answer = "Done."
                tn["answer"] = answer
        elif x < .85:
            made = r.choice([small_talk, identity, faq, instruct, fallback])(r)
            for t in made[:1]:
                t["skill"] = "no call"
            turns += made[:1]
        else:
            said = unfit(r, tools)
            if said:
                turns.append(turn(said, NO_TOOL, "no fit"))
    if r.random() < .08 and not several:
        turns = recall(r)[:4] + turns
    return tools, turns
