"""A check for schemathesis: the events of a stream are what the description of the API says."""

import json
import os

import jsonschema_rs
import schemathesis

with open(os.environ["OPENAPI"], encoding="utf-8") as f:
    DOC = json.load(f)
SCHEMAS = {}


def schema_of(operation, status):
    """The schema of the events of an operation's reply."""
    response = operation["responses"].get(str(status)) or operation["responses"].get(f"{status // 100}XX", {})
    return response.get("content", {}).get("text/event-stream", {}).get("x-event")


@schemathesis.check
def events(ctx, response, case):
    if not response.headers.get("content-type", [""])[0].startswith("text/event-stream"):
        return
    at = f"{case.method.upper()} {case.operation.path}"
    if at not in SCHEMAS:
        schema = schema_of(DOC["paths"][case.operation.path][case.method.lower()], response.status_code)
        assert schema, f"{at}: the document does not say what events are"
        SCHEMAS[at] = jsonschema_rs.validator_for({**schema, "components": DOC["components"]})
    for line in response.text.splitlines():
        data = line.removeprefix("data: ")
        if data != line and data != "[DONE]":
            value = json.loads(data)
            assert SCHEMAS[at].is_valid(value), f"{at}: {next(SCHEMAS[at].iter_errors(value)).message}: {data}"
