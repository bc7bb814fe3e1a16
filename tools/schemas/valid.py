"""Validates what TestGenerations wrote (-generations-out FILE) by Python's jsonschema: lines of JSON with a schema and a text each."""

import json
import re
import sys
from decimal import Decimal, getcontext

from jsonschema import Draft202012Validator, FormatChecker


class Dates(FormatChecker):
    """RFC 3339 has a year 0 and leap seconds. Python's datetime has neither, and dates are checked by it."""

    checkers = Draft202012Validator.FORMAT_CHECKER.checkers

    def check(self, instance, format):
        if format in ("date", "time", "date-time") and isinstance(instance, str):
            instance = re.sub(r":60(?=[.Zz+-])", ":59", re.sub("^0000-", "2000-", instance))
        super().check(instance, format)


getcontext().prec = 500


def number(text):
    """The number of a text, which is whole where its value is. By floats no multiple of 0.01 is one."""
    n = Decimal(text)
    return int(n) if n.adjusted() < 500 and n == n.to_integral_value() else n


def exact(text):
    return json.loads(text, parse_float=number)


def errors(schema, text):
    """What is wrong with a text by a schema whose numbers are exact."""
    return [e.message for e in Draft202012Validator(schema, format_checker=Dates()).iter_errors(exact(text))]


def main():
    valid = wrong = 0
    for line in sys.stdin:
        case = exact(line)
        if found := errors(case["schema"], case["text"]):
            wrong += 1
            print(case["text"], found)
        else:
            valid += 1
    print(f"{valid} valid, {wrong} not")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
