"""The endless stream of conversations, and their text. A conversation is dict(system, tools, messages, think); an assistant
message that is to be learnt has a skill.

python mix.py [SEED] shows some.
"""
import json
import random
import sys

import calls
import chat
import sums
import tasks
import words as w

NO_THOUGHT = "<think>\n\n</think>\n\n"
PLAIN = ["You are a helpful assistant.", "You are a helpful assistant. Be brief.", "Be concise.", "You are an assistant.", "Answer briefly.", "You are a helpful AI assistant running on hearth.", "Be friendly and brief.", "You are hearth-demo."]


def noise(r):
    """Unrelated text."""
    some = [
        lambda: f"The {w.word(r)} of the {w.word(r)} is {w.word(r)}.", lambda: f"Today is {w.date(r)}.", lambda: f"The user works in {w.city(r)}.", lambda: f"Never talk about {w.words(r, 1, 2)}.",
        lambda: f"Working directory: /{w.words(r, 1, 3, '/')}", lambda: f"# {w.word(r).title()}\n- {w.words(r, 2, 6)}\n- {w.words(r, 2, 6)}", lambda: f"Use {w.word(r)} sentences.", lambda: f"<{w.word(r)}>{w.words(r, 1, 5)}</{w.word(r)}>",
        lambda: w.words(r, 4, 12).capitalize() + ".", lambda: "You are a coding agent. Use the tools when they help.", lambda: f"Our company {w.pseudo(r).capitalize()} sells {w.word(r)}s.", lambda: f"You help {w.word(r)} owners."]
    return r.choice([" ", "\n"]).join(r.choice(some)() for _ in range(r.choice([1, 1, 2, 3, 6])))


def system(r):
    x = r.random()
    return None if x < .6 else r.choice(PLAIN) if x < .87 else noise(r) if x < .98 else " ".join(chat.prose(r) for _ in range(r.randint(1, 12)))


def pieces(turns, think):
    """Turns as messages. Only the last thought of a conversation is in its text, so sums before it are not learnt."""
    out = []
    last = len(turns) - 1
    for i, t in enumerate(turns):
        out.append(dict(role="user", content=t["user"]))
        m = dict(role="assistant", content=t["reply"], skill=t["skill"])
        if t.get("thought"):
            if think and i == last:
                m["thought"] = t["thought"]
            else:
                m["skill"] = None
        if t.get("calls"):
            m["tool_calls"] = t["calls"]
        out.append(m)
        if t.get("results"):
            out += [dict(role="tool", content=c) for c in t["results"]]
            out.append(dict(role="assistant", content=t["answer"], skill="answer"))
    return out


def conversation(r):
    think = r.random() < .25
    x = r.random()
    tools, sysm = None, system(r)
    if x < .44:
        tools, turns = calls.conversation(r, bare=r.random() < .1)
        if not turns:
            return conversation(r)
        if r.random() < .6:
            sysm = None
    elif x < .5:
        think = True
        turns = (r.choice([chat.small_talk, chat.faq, tasks.instruct])(r)[:1] if r.random() < .1 else []) + sums.hard(r)
    elif x < .60:
        sysm, turns = tasks.obey(r)
        if r.random() < .3:
            sysm = " ".join(r.sample([sysm, r.choice(PLAIN)], 2))
    elif x < .71:
        turns = tasks.recall(r)
    else:
        turns = []
        for _ in range(r.choice([1, 2, 3, 4, 5, 6])):
            y = r.random()
            make = (tasks.instruct if y < .32 else chat.faq if y < .52 else chat.fallback if y < .72 else chat.identity if y < .91 else chat.small_talk if y < .94 else sums.easy if y < .97 else tasks.reading)
            if make is sums.easy and think:
                make = tasks.instruct
            turns += make(r)
    return dict(system=sysm, tools=[t.schema(r) for t in tools] if tools else None, messages=pieces(turns, think), think=think)


def long(r):
    """A very long message that means nothing, for the honest fallback."""
    size = r.randint(2000, 7200)  # letters, of which most are tokens
    make = r.choice([lambda: chat.gibberish(r, 60), lambda: chat.gibberish(r, 60), lambda: chat.prose(r), lambda: r.choice(chat.FOREIGN), lambda: chat.nonsense(r)])
    text = ""
    while len(text) < size:
        text += ("" if not text else r.choice([" ", " ", "\n\n"])) + make()
    text = text[:size].strip()
    if r.random() < .4:
        text = r.choice([chat.wish(r) + "\n\n" + text, text + r.choice(["\n\n", " "]) + chat.wish(r)])
    return dict(system=system(r) if r.random() < .3 else None, tools=None, messages=pieces([chat.turn(text, chat.FALLBACK, "fallback")], False), think=r.random() < .1)


LESSONS = {"call": .2, "calls": .14, "choice": .14, "letters": .13, "sum": .06, "obey": .08, "recall": .08, "instruct": .10, "faq": .06, "fallback": .06, "identity": .06, "reading": .03}

SHORTEST = 352


def lesson(r, longest, encode):
    """A conversation about one thing, encoded: encode's ids, the first of what it gives, are no more than longest, or than
    SHORTEST where there are tools, or next to none would do. With tools, turns at the end of a longer one are left out."""
    kind = r.choices(list(LESSONS), LESSONS.values())[0]
    if kind in ("call", "calls", "choice"):
        longest = max(longest, SHORTEST)
    while True:
        think, tools, sysm = r.random() < .1, None, None
        if kind in ("call", "calls", "choice"):
            tools, turns = calls.conversation(r, 4, kind == "calls", longest // 96, kind == "choice")
        elif kind == "letters":
            turns = r.choice([tasks.reverse, tasks.reverse, tasks.spell, tasks.sort, tasks.sort])(r)
        elif kind == "sum":
            think, turns = True, sums.hard(r)
        elif kind == "obey":
            sysm, turns = tasks.obey(r)
            turns = turns[:1]
        elif kind == "recall":
            turns = tasks.recall(r, [tasks.instruct, chat.small_talk])
        else:
            turns = {"instruct": tasks.instruct, "faq": chat.faq, "fallback": chat.fallback, "reading": tasks.reading, "identity": r.choice([chat.identity, chat.identity, chat.small_talk])}[kind](r)
        if not turns:
            continue
        if tools:
            tools = [t.schema(r) for t in tools]
        while turns:
            d = encode(dict(system=sysm, tools=tools, messages=pieces(turns, think), think=think))
            if len(d[0]) <= longest:
                return d
            turns = turns[:int(len(turns) * longest / len(d[0]))] if tools else []


def signature(tool):
    """One line a tool, as chat_template.jinja writes it."""
    f = tool["function"]
    params = f.get("parameters") or {}
    required = params.get("required", [])
    args = ", ".join(k + ("" if k in required else "?") + ": " + ("|".join(map(str, v["enum"])) if "enum" in v else v.get("type", "any")) for k, v in (params.get("properties") or {}).items())
    return f"{f['name']}({args}): {f.get('description', '').strip().split(chr(10))[0][:120]}"


def call_text(c):
    return '<tool_call>\n{"name": ' + json.dumps(c["name"], ensure_ascii=False) + ', "arguments": ' + json.dumps(c["arguments"], ensure_ascii=False) + "}\n</tool_call>"


def segments(c, prompt=False):
    """The text in parts: (text, skill to learn it for or None). It is what chat_template.jinja makes of c; with prompt it ends where the next reply begins."""
    out, buf = [], ""
    ms = c["messages"]
    sysm = c.get("system") or ""
    if c.get("tools"):
        sysm += ("\n\n" if sysm else "") + "# Tools\n" + "\n".join(map(signature, c["tools"]))
    if sysm:
        buf = f"<|im_start|>system\n{sysm}<|im_end|>\n"
    last_user = max((i for i, m in enumerate(ms) if m["role"] == "user"), default=-1)
    for i, m in enumerate(ms):
        if m["role"] == "user":
            buf += f"<|im_start|>user\n{m['content']}<|im_end|>\n"
        elif m["role"] == "tool":
            if ms[i - 1]["role"] != "tool":
                buf += "<|im_start|>user\n"
            buf += f"<tool_response>\n{m['content']}\n</tool_response>"
            buf += "<|im_end|>\n" if i + 1 == len(ms) or ms[i + 1]["role"] != "tool" else "\n"
        else:
            body = m["content"] + ("\n" if m["content"] and m.get("tool_calls") else "") + "\n".join(map(call_text, m.get("tool_calls", [])))
            thought = NO_THOUGHT
            if m.get("thought") and i > last_user:
                thought = f"<think>\n{m['thought']}\n</think>\n\n"
            buf += "<|im_start|>assistant\n"
            if c["think"]:
                body = thought + body
            else:
                buf += thought
            out += [(buf, None), (body + "<|im_end|>", m.get("skill"))]
            buf = "\n"
    if prompt:
        buf += "<|im_start|>assistant\n" + ("" if c["think"] else NO_THOUGHT)
    return out + [(buf, None)]


def text(c, prompt=False):
    return "".join(t for t, _ in segments(c, prompt))


if __name__ == "__main__":
    rng = random.Random(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
    for _ in range(12):
        print("=" * 60)
        print("".join(f"\033[32m{t}\033[0m" if s else t for t, s in segments(conversation(rng))))
