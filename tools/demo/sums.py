"""Arithmetic. With thinking the digits are worked on from the right, so both numbers are first written backwards."""
import words as w
from chat import turn
from grammar import expand, fill, style

TOO_HARD = "That sum needs thinking, which is turned off here."


def column(a, b, sign):
    """Lines of a column addition or subtraction, a >= b; the last is the result."""
    n = max(len(str(a)), len(str(b)))
    x, y = str(a).zfill(n)[::-1], str(b).zfill(n)[::-1]
    lines, carry, digits = [x + sign + y], 0, ""
    for p, q in zip(x, y):
        p, q = int(p), int(q)
        if sign == "+":
            v = p + q + carry
            lines.append(f"{p}+{q}+{carry}={v}")
            digits, carry = digits + str(v % 10), v // 10
        else:
            v = p - q - carry
            low = v % 10
            lines.append(f"{p}-{q}-{carry}={v}" + (f"+10={low}" if v < 0 else ""))
            digits, carry = digits + str(low), int(v < 0)
    if carry:
        digits += str(carry)
    return lines + [digits, str(a + b if sign == "+" else a - b)]


def times_digit(a, d):
    lines, carry, digits = [f"{str(a)[::-1]}*{d}"], 0, ""
    for p in str(a)[::-1]:
        v = int(p) * d + carry
        lines.append(f"{p}*{d}={int(p) * d}+{carry}={v}")
        digits, carry = digits + str(v % 10), v // 10
    if carry:
        digits += str(carry)
    return lines + [digits, str(a * d)]


def working(a, sign, b):
    if sign == "+":
        return column(a, b, "+")
    if sign == "-":
        return column(a, b, "-") if a >= b else [f"{b}>{a}"] + column(b, a, "-") + [str(a - b)]
    if b > a:
        a, b = b, a
    if b < 10:
        return times_digit(a, b)
    return times_digit(a, b % 10) + times_digit(a, b // 10) + column(a * (b // 10) * 10, a * (b % 10), "+")


def operand(r):
    x = r.random()
    return r.randint(1, 9) if x < .08 else r.randint(10, 99) if x < .5 else r.randint(100, 999)


WORDED = {"+": "plus", "-": "minus", "*": "times"}
ASK = ("(What is|What's|How much is|Calculate|Compute|Work out|Tell me|Solve|Evaluate|Give me|Find|I need|Determine|Do you know|) {a}[ ]{s}[ ]{b}[?| = ?| =]|{a} {s} {b}[?| = ?|=|]|(What|How much) (is|are|makes|do you get for) {a} {word} {b}?|{a} {word} {b}[?]|(What|Which) number is {a} {word} {b}?|(the|What is the) (result|value|answer) of {a} {s} {b}[?]|(Can|Could) you (calculate|compute|work out|do) {a} {s} {b}?|{a}{s}{b}|"
       "(quick sum|quick one|maths|math|arithmetic|homework|sum|my calculator is broken|I can't do this in my head|for the bill)(:|,| -|;) {a} {s} {b}[?| =|, please]|{a} {s} {b} (is|makes|gives|equals|comes to|=) (what|how much|?)[?]|(what does|wats|whats|what would) {a} {s} {b} (make|give|come to|equal|be|)[?]|"
       "(how much do|what do) (I|you|we) get (for|from|out of|if I do|with) {a} {s} {b}?|(Please |Just |Now |Next: |)(do|solve|reckon|figure out|run|try) {a} {s} {b}[ for me| please|.]|I (want|need|would like|'m looking for) (the (result|answer|outcome) of|to know|to know what is|) {a} {s} {b}[.]|(And|So|Okay,|Then) (what is|what's|how much is|) {a} {word} {b}?|"
       "{a} {word} {b} (is|makes|gives|equals) (what|how much)[?]|(Take|Start with|Begin with) {a}[,] {word} {b}[. What (is it|do I get|comes out)?]|(give|tell|show|send) me {a} {s} {b}[ please| pls|.]|the number you get from {a} {word} {b}[?|, please]|{a} {s} {b}, (what is it|the answer|how much|quick|go)[?]")
BY_SIGN = {"+": "(Add|Sum|Sum up|Add up) {a} and {b}|[What is|Tell me|Give me] the (sum|total) of {a} and {b}[?]|(I have|{n} has|We have) {a} {t} and (get|buy|find)s {b} more[. How many (is that|are there|in total)?]|If I add {b} to {a}, what do I get?|Add {b} to {a}|"
           "(what is|whats|tell me|) {a} increased by {b}[?]|{b} (more than|on top of|added to) {a}[ is| makes| =][?]|(put|count) {a} and {b} together[.| please]|(how much|what) (is|are|makes) {a} and {b} (together|in total|combined|added up)?|(First|In May|On Monday) {a} {t}, then {b}[ more]: how many (altogether|in all|is that)?|"
           "A (room|box|shop|truck|farm) has {a} {t} and (another|the next|a second one) has {b}. (How many together?|What is the total?|How many {t} in all?)|{n} (paid|walked|read|wrote|earned|collected) {a} and {n} {b}[; the total?|. How much together?|, how many in all?]|the (total|sum) if (there are|you have) {a} and {b}[?]|{a} {t} plus another {b} {t}[, how many?|?]",
           "-": "(Subtract|Take|Deduct) {b} (from|away from) {a}|[What is|Tell me|Give me] the difference (of|between) {a} and {b}[?]|{n} has {a} {t} and (sells|loses|gives away) {b}. How many (are left|remain)?|(What is|How much is) {a} less {b}?|{a} take away {b}|"
           "(what is|whats|tell me|) {a} (reduced|lowered|decreased|diminished) by {b}[?]|(how much|what) (is left|remains|stays) (of|from) {a} (if|when|after) (I|you|we) (take|remove|spend|lose|use) {b}?|(remove|drop|knock off|cut) {b} (from|off) {a}[. What (is left|remains)?]|how much (more|bigger|larger|higher) is {a} than {b}?|how (far|much) (is it from|below) {a} (is|to) {b}?|"
           "{n} (had|saved|baked|planted|owned) {a} {t}[,] but {b} (are gone|broke|were sold|got lost|were eaten)[. How many (now|left|remain)?]|(Of|Out of) {a} {t}, {b} (are gone|left|broke|were used)[; how many remain?|. How many are left?]|{a} with {b} (taken off|taken away|removed|less)[?| =]|from {a} (subtract|take|deduct) {b}|if {a} {t} (lose|drop|shrink by) {b}, (how many|what) (are left|remain)?",
           "*": "Multiply {a} (by|with|and) {b}|[What is|Tell me|Give me] the product of {a} and {b}[?]|There are {a} boxes with {b} {t} each. How many {t} [are there]?|{a} (groups|rows) of {b}[, how many]?|"
           "(what is|whats|tell me|) {a} multiplied by {b}[?]|(how much|what) (is|makes|are) {a} (lots|sets|packs|bags) of {b}?|{a} {t} (at|for) {b} (coins|euros|dollars) (each|apiece)[, how much?|. What do I pay?|; the total?]|{n} (buys|needs|sells|orders) {a} (packs|bags|crates) of {b} {t}[. How many {t} (is that|in all)?|; how many {t}?]|(take|get|do) {a} (times|by) {b}|{a} {t} (a day|a week|per box|per row) for {b} (days|weeks|boxes|rows)[, how many?| makes?]|(the|a) (field|wall|floor|screen) of {a} by {b}[, what area?|: how many tiles?]|work out {a} (times|by) {b}[ please|.]"}


def question(r, a, sign, b):
    g = ASK if r.random() < .7 else BY_SIGN[sign]
    symbol = sign if sign != "*" else r.choice(["*", "*", "*", "x", "×"])
    q = expand(r, g)
    return fill(style(r, q), a=a, b=b, s=symbol, word=WORDED[sign], n=w.name(r), t=w.pick(r, w.NOUNS) + "s")


def hard(r, sign=None):
    """A sum that needs thinking."""
    sign = sign or r.choice("++---***")
    a, b = operand(r), operand(r)
    if sign == "-" and r.random() < .2:  # with digits that are alike, and results that are short
        b = int("".join(x if r.random() < .5 else str(r.randint(1 if i == 0 else 0, 9)) for i, x in enumerate(str(a))))
    if sign == "*":
        a, b = (r.randint(10, 99), r.randint(10, 99)) if r.random() < .7 else r.choice([(operand(r), r.randint(2, 9)), (r.randint(2, 9), operand(r))])
    if sign == "-" and b > a and r.random() < .7:
        a, b = b, a
    v = {"+": a + b, "-": a - b, "*": a * b}[sign]
    return [turn(question(r, a, sign, b), f"{a} {sign} {b} = {v}", "sum" + sign, thought="\n".join(working(a, sign, b)))]


def easy(r):
    """A sum without thinking: small ones are known by heart, others are declined."""
    sign = r.choice("+-*")
    a, b = r.randint(0, 10), r.randint(0, 10)
    if r.random() < .2:
        a, b = r.randint(21, 999), r.randint(21, 999)
        return [turn(question(r, a, sign, b), TOO_HARD, "easy sum")]
    if sign == "-" and b > a:
        a, b = b, a
    v = {"+": a + b, "-": a - b, "*": a * b}[sign]
    return [turn(question(r, a, sign, b), f"{a} {sign} {b} = {v}", "easy sum")]
