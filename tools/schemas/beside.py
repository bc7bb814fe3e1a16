"""Answers about JSON Schemas by llguidance, and by Python's jsonschema: a request and an answer are a line of JSON each.

go test ./internal/grammar/jsonschema -run TestBeside -beside PYTHON runs it; make schema-fuzz does that.
"""

import itertools
import json
import random
import sys
import time

from llguidance import LLMatcher, LLTokenizer

from valid import errors, exact

TOKENIZER = LLTokenizer("byte")
SPACING = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}


def takes(grammar, text):
    m = LLMatcher(TOKENIZER, grammar)
    tokens = TOKENIZER.tokenize_bytes(text.encode())
    if m.validate_tokens(tokens) < len(tokens):
        return False
    m.consume_tokens(tokens)
    return m.is_accepting()


def written(grammar, r):
    """A text of the grammar, drawn byte by byte; None if none ends soon."""
    m = LLMatcher(TOKENIZER, grammar)
    out = bytearray()
    while len(out) < 300:
        mask = m.compute_bitmask()
        may = [b for b in range(256) if mask[b // 8] >> b % 8 & 1]
        if m.is_accepting() and (not may or r.random() < 0.3):
            return out.decode()
        if not may or m.is_error():
            return None
        closing = [b for b in may if chr(b) in '"]}0,']
        b = r.choice(closing if closing and r.random() < 0.5 else may)
        m.consume_token(b)
        out.append(b)
    return None


def valid(schema, text):
    """What Python's jsonschema says of a text, None if it doesn't know."""
    try:
        return not errors(schema, text)
    except Exception:  # a pattern that is none in Python, no JSON, a recursion without end
        return None


def compiled(schema):
    """A grammar, or why there is none."""
    try:
        g = LLMatcher.grammar_from_json_schema(json.dumps(schema), SPACING)
        error = LLMatcher(TOKENIZER, g).get_error()
    except Exception as e:
        error = str(e)
    return (None, error.split("\n")[0]) if error else (g, "")


def formless(schema):
    """The schema with no format in it."""
    if isinstance(schema, list):
        return [formless(s) for s in schema]
    if isinstance(schema, dict):
        return {k: formless(v) for k, v in schema.items() if k != "format"}
    return schema


def orders(value):
    """The texts of a value with its members in any order."""
    if isinstance(value, dict):
        for names in itertools.permutations(value):
            for members in itertools.product(*(orders(value[name]) for name in names)):
                yield "{" + ", ".join(f"{json.dumps(name, ensure_ascii=False)}: {m}" for name, m in zip(names, members)) + "}"
    elif isinstance(value, list):
        for items in itertools.product(*(orders(v) for v in value)):
            yield "[" + ", ".join(items) + "]"
    else:
        yield json.dumps(value, ensure_ascii=False)


def reordered(grammar, text):
    """Whether the value of a text is taken with its members in some other order."""
    try:
        return any(takes(grammar, t) for t in itertools.islice(orders(json.loads(text)), 1000))
    except ValueError:
        return False


def main():
    grammar = schema = numbers = None
    for line in sys.stdin:
        q = json.loads(line)
        answer = {}
        if "schema" in q:
            schema, numbers = q["schema"], exact(line)["schema"]
            grammar, answer["error"] = compiled(schema)
        if grammar:
            r = random.Random(q.get("seed", 0))
            answer["written"] = [t for t in (written(grammar, r) for _ in range(q.get("write", 0))) if t is not None]
            answer["takes"] = [takes(grammar, t) for t in q.get("texts") or []]
        if judge := q.get("judge"):
            answer["bare"] = formless(schema)
            free = compiled(answer["bare"])[0]
            answer["valid"] = [valid(numbers, t) for t in judge]
            answer["formless"] = [free is not None and takes(free, t) for t in judge]
            answer["reordered"] = [reordered(grammar, t) for t in judge]
        answer["cpu"] = time.process_time()
        print(json.dumps(answer), flush=True)


main()
