"""Holds what the training and its evaluation stand on; needs nothing but Python.

python check.py      the same seed gives the same conversations whatever the hashes of strings are; heldout.json is what
                     heldout.py makes, and none of it is in conversations of the generator
"""
import hashlib
import os
import random
import subprocess
import sys

import heldout
import mix

HERE = os.path.dirname(os.path.abspath(__file__))


def digest(count=1500):
    """Of the conversations of a seed, very long ones among them."""
    r, h = random.Random(3), hashlib.sha256()
    for i in range(count):
        h.update(mix.text(mix.long(r) if i % 500 == 0 else mix.conversation(r)).encode())
    return h.hexdigest()


def main():
    if sys.argv[1:] == ["--digest"]:
        return print(digest())
    run = lambda seed: subprocess.run([sys.executable, "-B", os.path.abspath(__file__), "--digest"], env=dict(os.environ, PYTHONHASHSEED=seed), check=True, capture_output=True).stdout
    if run("1") != run("2"):
        raise SystemExit("the generator is not the same twice: something in it goes by the order of a set")
    heldout.make()
    with open(os.path.join(HERE, "heldout.json"), encoding="utf-8") as f:
        if f.read() != heldout.file():
            raise SystemExit("heldout.json is not what heldout.py makes: run python heldout.py")
    heldout.check(5000)


if __name__ == "__main__":
    main()
