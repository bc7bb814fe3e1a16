"""Runs prompts through a running hearth server and scores the replies, greedily.

python evaluate.py URL [--prompts heldout.json] [--out scores.json] [--show N]      hearth serve FOLDER must be running
python evaluate.py --report OUT.md NAME=scores.json ...                            the table of several runs
"""
import argparse
import concurrent.futures
import json
import os
import re
import urllib.request

from progress import progress

HERE = os.path.dirname(os.path.abspath(__file__))
COLORS = set("red blue green yellow orange purple pink brown black white gray grey cyan magenta gold silver violet teal indigo maroon beige turquoise".split())
TARGET = {"identity": 95, "fallback": 95, "faq": 85, "recall": 95, "instructions": 85, "letters": 60, "obey": 90, "call": 85, "two calls": 70, "no call": 90, "answer": 85, "sums": 98, "products": 70}
MARKUP = re.compile(r"<\|?(im_|think|/think|tool_|/tool_|end)")


def post(url, body):
    req = urllib.request.Request(url + "/v1/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(req, timeout=300) as f:
        return json.load(f)["choices"][0]


def converse(url, item):
    """Says the turns one after the other; the model's own replies stay in between. -> content, calls, thought, finish, transcript"""
    messages = [dict(role="system", content=item["system"])] if item.get("system") else []
    for text in item["turns"]:
        messages.append(dict(role="user", content=text))
        for i, d in enumerate(item.get("done", [])):
            call = dict(id=f"call_{i}", type="function", function=dict(name=d["call"]["name"], arguments=json.dumps(d["call"]["arguments"])))
            messages += [dict(role="assistant", content="", tool_calls=[call]), dict(role="tool", tool_call_id=call["id"], content=d["result"])]
        body = dict(model="default", messages=messages, temperature=0, max_tokens=400, enable_thinking=bool(item.get("think")))
        if item.get("tools"):
            body["tools"] = item["tools"]
        c = post(url, body)
        m = c["message"]
        messages.append({k: m[k] for k in ("role", "content", "tool_calls") if m.get(k) is not None})
    calls = []
    for x in m.get("tool_calls") or []:
        try:
            calls.append(dict(name=x["function"]["name"], arguments=json.loads(x["function"]["arguments"])))
        except ValueError:
            calls.append(None)
    return dict(content=(m.get("content") or "").strip(), calls=calls, thought=m.get("reasoning_content") or m.get("reasoning") or "", finish=c["finish_reason"], messages=messages)


def right(check, out):
    text, calls = out["content"], out["calls"]
    (kind, want), = check.items()
    if kind == "calls":
        return calls == want
    if calls or not text or MARKUP.search(text):
        return False
    if kind == "re" or kind == "nocall":
        return bool(re.search(want, text))
    if kind == "has":
        return all(x in text for x in want)
    if kind == "sentence":  # the facts, in a sentence and not as they came
        return all(x in text for x in want) and len(text.split()) > 2 and "{" not in text
    if kind == "exact":
        return text.strip("\"'. ") == want.strip(". ")
    if kind == "colors":
        found = re.findall(r"[a-z]+", text.lower())
        return len(set(found)) == want and set(found) <= COLORS
    if kind == "json":
        try:
            return json.loads(text) == want
        except ValueError:
            return False
    if kind == "key":
        try:
            return list(json.loads(text)) == [want]
        except (ValueError, TypeError):
            return False
    if kind == "list":
        return [x for x in re.split(r"[,\s]+", text.rstrip(".")) if x] == want
    if kind == "letters":
        return re.fullmatch(r"[\W_]*".join(want), text, re.I) is not None and len(text) > len(want)
    if kind == "ends":
        return text.rstrip(".!").endswith(want.rstrip(".!")) and len(text) > len(want)
    if kind == "starts":
        return text.startswith(want) and len(text) > len(want)
    if kind == "upper":
        return text == text.upper()
    if kind == "number":
        n = re.findall(r"-?\d+", text)
        return bool(n) and int(n[-1]) == want
    raise KeyError(kind)


def run(url, items):
    def one(i):
        try:
            return converse(url, i)
        except OSError as e:
            return dict(content="", calls=[], thought="", finish=f"error: {e}", messages=[])
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        outs = []
        for o in pool.map(one, items):
            outs.append(o)
            progress(len(outs) / len(items), f"{len(outs)} of {len(items)} prompts")
    skills = {}
    for i, o in zip(items, outs):
        o["ok"] = right(i["check"], o)
        skills.setdefault(i["skill"], []).append(o["ok"])
    loops = sum(o["finish"] == "length" for o in outs)
    leaks = sum(bool(MARKUP.search(o["content"])) for o in outs)
    return dict(skills={k: [sum(v), len(v)] for k, v in skills.items()}, loops=loops, leaks=leaks, errors=sum(o["finish"].startswith("error") for o in outs), items=[dict(item=i, out=o) for i, o in zip(items, outs)])


def percent(pair):
    return 100 * pair[0] / pair[1]


def report(path, runs):
    """A table with a column a run, in Markdown."""
    loaded = [(n, json.load(open(f, encoding="utf-8"))) for n, f in (r.split("=", 1) for r in runs)]
    lines = ["| skill | prompts | must reach | " + " | ".join(n for n, _ in loaded) + " |", "|---|---|---|" + "---|" * len(loaded)]
    for s in TARGET:
        if any(s in d["skills"] for _, d in loaded):
            count = next(d["skills"][s][1] for _, d in loaded if s in d["skills"])
            lines.append(f"| {s} | {count} | {TARGET[s]} | " + " | ".join(f"{percent(d['skills'][s]):.1f}" if s in d["skills"] else "" for _, d in loaded) + " |")
    total = [[sum(v[i] for v in d["skills"].values()) for i in (0, 1)] for _, d in loaded]
    lines.append(f"| all | {total[0][1]} | | " + " | ".join(f"{percent(t):.1f}" for t in total) + " |")
    lines.append("| replies that ran into the limit | | 0 | " + " | ".join(str(d["loops"]) for _, d in loaded) + " |")
    lines.append("| replies with markup in them | | 0 | " + " | ".join(str(d["leaks"]) for _, d in loaded) + " |")
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n".join(lines) + "\n")
    print("\n".join(lines))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("url", nargs="?")
    ap.add_argument("runs", nargs="*")
    ap.add_argument("--prompts", default=os.path.join(HERE, "heldout.json"))
    ap.add_argument("--out")
    ap.add_argument("--show", type=int, default=0, help="failures to print for each skill")
    ap.add_argument("--report")
    a = ap.parse_args()
    if a.report:
        return report(a.report, [a.url, *a.runs])
    res = run(a.url, json.load(open(a.prompts, encoding="utf-8")))
    if a.out:
        json.dump(res, open(a.out, "w", encoding="utf-8"), ensure_ascii=False)
    print(json.dumps({k: f"{v[0]}/{v[1]} {percent(v):.1f}" for k, v in res["skills"].items()}, indent=1))
    print({k: res[k] for k in ("loops", "leaks", "errors")})
    shown = {}
    for x in res["items"]:
        s = x["item"]["skill"]
        if not x["out"]["ok"] and shown.setdefault(s, 0) < a.show:
            shown[s] += 1
            print("--", s, x["item"]["turns"][-1][:200], "| want", x["item"]["check"], "| got", x["out"]["content"][:200], x["out"]["calls"], x["out"]["finish"])


if __name__ == "__main__":
    main()
