"""Values of JSON Schemas, and whether jsonschema says that they are valid, for package callform.

    python tools/golden/schema.py internal/callform/testdata/schema.json

Values are made at random for a schema's own properties, and then spoiled: types changed, members taken out, names that
nobody has put in. The schemas are of the kinds that tools have.
"""
import json
import random
import sys
from importlib.metadata import version
from pathlib import Path

from jsonschema import Draft202012Validator

JSONSCHEMA = "4.26.0"

SCHEMAS = [
    {"type": "object", "properties": {"city": {"type": "string"}, "unit": {"enum": ["c", "f"]}, "days": {"type": "integer"}}, "required": ["city"], "additionalProperties": False},
    {"type": "object", "properties": {"path": {"type": "string"}, "edits": {"type": "array", "items": {"type": "object", "properties": {"old": {"type": "string"}, "new": {"type": "string"}, "all": {"type": "boolean"}}, "required": ["old", "new"], "additionalProperties": False}}}, "required": ["path", "edits"], "additionalProperties": False},
    {"type": "object", "properties": {"q": {"anyOf": [{"type": "string"}, {"type": "null"}]}, "limit": {"anyOf": [{"type": "integer"}, {"enum": ["all", "none"]}]}}, "required": ["q", "limit"], "additionalProperties": False},
    {"type": "object", "properties": {"tree": {"$ref": "#/$defs/node"}}, "required": ["tree"], "additionalProperties": False, "$defs": {"node": {"type": "object", "properties": {"value": {"type": "number"}, "kids": {"type": "array", "items": {"$ref": "#/$defs/node"}}}, "required": ["value"], "additionalProperties": False}}},
    {"type": "object", "properties": {"headers": {"type": "object", "additionalProperties": {"type": "string"}}, "body": {}, "kind": {"const": "http"}}, "required": ["kind"], "additionalProperties": False},
    {"type": "object", "properties": {"at": {"oneOf": [{"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"], "additionalProperties": False}, {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"], "additionalProperties": False}]}, "flags": {"type": "array", "items": {"enum": [1, 10, "1", True, None]}}}, "additionalProperties": False},
    {"type": "object", "properties": {"any": {"type": ["string", "integer", "null"]}, "deep": {"allOf": [{"$ref": "#/$defs/d"}]}}, "additionalProperties": {"type": "boolean"}, "$defs": {"d": {"type": "array", "items": {"type": "array", "items": {"type": "number"}}}}},
]

r = random.Random(5)
SOME = ["", "Paris", "a \"b\" \\ c", "ü", "c", "all", 0, -3, 12, 1.5, True, False, None, [], [1], ["x"], {}, {"x": 1}, {"name": "n"}, "http", "1"]


def some(schema, root, level=0):
    """A value that has a chance to be valid."""
    if not schema or r.random() < .06 or level > 5:
        return r.choice(SOME)
    if "$ref" in schema:
        return some(root["$defs"][schema["$ref"].split("/")[-1]], root, level + 1)
    for key in ("anyOf", "oneOf", "allOf"):
        if key in schema:
            return some(r.choice(schema[key]), root, level + 1)
    if "enum" in schema:
        return r.choice(schema["enum"])
    if "const" in schema:
        return schema["const"]
    kind = schema.get("type", "string")
    if isinstance(kind, list):
        kind = r.choice(kind)
    if kind == "object":
        props = schema.get("properties", {})
        out = {k: some(v, root, level + 1) for k, v in props.items() if r.random() < (.97 if k in schema.get("required", []) else .6)}
        if isinstance(schema.get("additionalProperties"), dict) and r.random() < .6:
            out["more"] = some(schema["additionalProperties"], root, level + 1)
        if r.random() < .08:
            out["other"] = r.choice(SOME)
        items = list(out.items())
        r.shuffle(items)
        return dict(items)
    if kind == "array":
        return [some(schema["items"], root, level + 1) for _ in range(r.choice([0, 1, 1, 2, 3]))]
    return {"string": lambda: r.choice([x for x in SOME if isinstance(x, str)]), "integer": lambda: r.randint(-20, 2000), "number": lambda: r.choice([1, -2.5, 1e30, 0]),
            "boolean": lambda: r.random() < .5, "null": lambda: None}[kind]()


def main():
    if version("jsonschema") != JSONSCHEMA:
        sys.exit(f"jsonschema {version('jsonschema')} is installed, goldens are made with {JSONSCHEMA}: refusing")
    out = []
    for schema in SCHEMAS:
        cases = {True: {}, False: {}}
        while min(map(len, cases.values())) < 25:
            value = some(schema, schema)
            if isinstance(value, dict):
                text = json.dumps(value, ensure_ascii=False, indent=r.choice([None, None, 1]))
                cases[Draft202012Validator(schema).is_valid(value)][text] = 1
        out.append({"schema": schema, "valid": list(cases[True])[:25], "invalid": list(cases[False])[:25]})
    golden = {"made": {"script": "tools/golden/schema.py", "jsonschema": JSONSCHEMA}, "cases": out}
    Path(sys.argv[1]).parent.mkdir(parents=True, exist_ok=True)
    Path(sys.argv[1]).write_text(json.dumps(golden, ensure_ascii=False, indent=1) + "\n")


if __name__ == "__main__":
    main()
