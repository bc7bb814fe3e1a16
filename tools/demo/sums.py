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
ASK = ("(What is|What's|How much is|Calculate|Compute|Work out|Tell me|Solve|Evaluate|Give me|Find|I need|Determine|Do you know|) {a}[ ]{s}[ ]{b}[?| = ?| =]|{a} {s} {b}[?| = ?|=|]|(What|How much) (is|are|makes|do you get for) {a} {word} {b}?|{a} {word} {b}[?]|(What|Which) number is {a} {word} {b}?|(the|What is the) (result|value|answer) of {a} {s} {b}[?]|(Can|Could) you (calculate|compute|work out|do) {a} {s} {b}?|{a}{s}{b}")
BY_SIGN = {"+": "(Add|Sum|Sum up|Add up) {a} and {b}|[What is|Tell me|Give me] the (sum|total) of {a} and {b}[?]|(I have|{n} has|We have) {a} {t} and (get|buy|find)s {b} more[. How many (is that|are there|in total)?]|If I add {b} to {a}, what do I get?|Add {b} to {a}",
           "-": "(Subtract|Take|Deduct) {b} (from|away from) {a}|[What is|Tell me|Give me] the difference (of|between) {a} and {b}[?]|{n} has {a} {t} and (sells|loses|gives away) {b}. How many (are left|remain)?|(What is|How much is) {a} less {b}?|{a} take away {b}",
           "*": "Multiply {a} (by|with|and) {b}|[What is|Tell me|Give me] the product of {a} and {b}[?]|There are {a} boxes with {b} {t} each. How many {t} [are there]?|{a} (groups|rows) of {b}[, how many]?"}


def question(r, a, sign, b):
    g = ASK if r.random() < .7 else BY_SIGN[sign]
    symbol = sign if sign != "*" else r.choice(["*", "*", "*", "x", "×"])
    q = expand(r, g)
    return fill(style(r, q), a=a, b=b, s=symbol, word=WORDED[sign], n=w.name(r), t=w.pick(r, w.NOUNS) + "s")


def hard(r, sign=None):
    """A sum that needs thinking."""
    sign = sign or r.choice("++--***")
    a, b = operand(r), operand(r)
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
