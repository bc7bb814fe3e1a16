"""Runs the fuzz targets, one after the other, and writes a table of what they did.

    python3 tools/fuzz/fuzz.py [--each 30s | --all 45m] [--run REGEXP] [--table FILE]
    python3 tools/fuzz/fuzz.py --keep 4096 [--run REGEXP]

Time is processor time of the target's own processes. --each gives every target as much, --all divides it by WORTH. Targets have
one worker, the least priority and a corpus of their own in bin/fuzz, which the next run goes on from; bin/fuzz/results.jsonl has
a line for each target and run, and the table their sums. An input that fails is left where Go puts it, in testdata/fuzz of the
package, the next target goes on, and the end is 1.

--keep puts inputs of bin/fuzz into testdata/fuzz: those that reach statements of the package's family which neither the seeds
nor a smaller input reach, smallest first, and no more than so many bytes a target.
"""

import argparse
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUT = ROOT / "bin" / "fuzz"
RESULTS = OUT / "results.jsonl"

# What a target is worth: the first expression that its name ("wire/openai FuzzChat") matches, else 1.
WORTH = [
    (r"^kernel |^grammar FuzzMatcher|FuzzStopper|FuzzStretches|FuzzTape|FuzzFit$|FuzzSplice|FuzzAppendString", 0.4),  # nothing from outside alone
    (r"^dialect FuzzFamilies|^jinja FuzzRender|^tokenizer FuzzParse|^wire FuzzParse|FuzzMessages|FuzzChat|FuzzResponses", 3),
    (r"FuzzCost|FuzzSchemaCost|FuzzTokenizerCost|FuzzWork", 1.5),  # their seeds are costly
    (r"^wire|^server|^grammar|^remote|^safetensors|^mcp|^tier|^model FuzzFolder|^tokenizer|^script|^config", 1.5),
]


VAIN = 100  # inputs of one target, one after the other, that reach nothing new: those after them are larger and not tried


def targets(pattern):
    """(package below internal, function) of every target that matches."""
    found = []
    for path in sorted((ROOT / "internal").rglob("*_test.go")):
        package = path.parent.relative_to(ROOT / "internal").as_posix()
        found += [(package, f) for f in re.findall(r"^func (Fuzz\w+)\(", path.read_text(), re.M)]
    return [t for t in sorted(found) if re.search(pattern, " ".join(t))]


def worth(target):
    return next((w for pattern, w in WORTH if re.search(pattern, " ".join(target))), 1)


def seconds(text):
    number, unit = re.fullmatch(r"([\d.]+)([smh])", text).groups()
    return float(number) * {"s": 1, "m": 60, "h": 3600}[unit]


def folder(package):
    return ROOT / "internal" / package


def binary(package, *flags, of="fuzz"):
    """A package's tests, built once a run."""
    name = OUT / (package.replace("/", "_") + "." + of + ".test")
    if name not in binary.built:
        OUT.mkdir(parents=True, exist_ok=True)
        subprocess.run(["go", "test", "-c", *flags, "-o", name, "./internal/" + package], cwd=ROOT, check=True)
        binary.built.add(name)
    return name


binary.built = set()


def run_once(target, wall):
    """Fuzzes for so many seconds of the clock, and gives what was said, whether it failed, and seconds of processor time."""
    package, name = target
    program = binary(package, "-fuzz=.")
    cache = OUT / "corpus" / package
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile("w+") as said:
        child = subprocess.Popen(
            [program, "-test.run=^$", f"-test.fuzz=^{name}$", f"-test.fuzztime={wall:.0f}s", "-test.fuzzcachedir", cache, "-test.parallel=1",
             "-test.fuzzminimizetime=10x", "-test.timeout=0"], cwd=folder(package), stdout=said, stderr=subprocess.STDOUT, preexec_fn=lambda: os.nice(19))
        _, status, used = os.wait4(child.pid, 0)  # with what its children took, which it has waited for
        said.seek(0)
        return said.read(), status != 0, used.ru_utime + used.ru_stime


def lasting(target, said):
    """Whether the input that a target has failed with fails alone too. One that does not is removed: a process that is kept from
    running for ten seconds, as on a busy machine, counts as hung, and when its time is over then, the end is an error without an input."""
    package, name = target
    written = re.search(r"Failing input written to (testdata/fuzz/\S+)", said)
    if not written:
        return "context deadline exceeded" not in said
    alone = subprocess.run([binary(package, "-fuzz=."), f"-test.run=^{name}$/^{os.path.basename(written[1])}$", "-test.timeout=5m"],
                           cwd=folder(package), capture_output=True)
    if alone.returncode == 0 and "hung or terminated" in said:
        (folder(package) / written[1]).unlink()
        return False
    return True


def fuzz(target, share):
    """Runs one target for its share of seconds of processor time; the clock shows more where others want the processor too."""
    r = {"target": " ".join(target), "execs": 0, "cpu": 0.0, "new": 0, "faults": 0}
    slow = 1
    while r["cpu"] < 0.9 * share and not r["faults"]:
        wall = max(share - r["cpu"], 2) * slow
        said, failed, used = run_once(target, wall)
        slow = min(max(wall / max(used, 0.1), 1), 4)
        line = re.findall(r"execs: (\d+) .*?new interesting: (\d+) ", said) or [(0, 0)]
        r["execs"] += int(line[-1][0])
        r["new"] += int(line[-1][1])
        r["cpu"] = round(r["cpu"] + used, 1)
        if failed and lasting(target, said):
            r["faults"] = 1
            print(said[-4000:], flush=True)
    return r


def commit():
    return subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True).stdout.strip()


def table(pattern):
    """Sums of all runs, as Markdown."""
    sums = {}
    for line in RESULTS.read_text().splitlines():
        r = json.loads(line)
        s = sums.setdefault(r["target"], {"execs": 0, "cpu": 0, "new": 0, "faults": 0})
        for k in s:
            s[k] += r[k]
    rows = [(" ".join(t), sums[" ".join(t)]) for t in targets(pattern) if " ".join(t) in sums]
    out = ["| target | executions | processor time, s | new inputs | faults |", "|---|---|---|---|---|"]
    for name, s in [*rows, ("**all**", {k: sum(s[k] for _, s in rows) for k in ("execs", "cpu", "new", "faults")})]:
        package, _, function = name.partition(" ")
        label = f"{package} `{function}`" if function else package
        out.append(f"| {label} | {s['execs']:,} | {s['cpu']:,.0f} | {s['new']:,} | {s['faults']} |")
    return "\n".join(out) + "\n"


def reached(program, package, name, entry, scratch):
    """The statements that one input reaches; None where it fails."""
    profile = scratch / "profile"
    ran = subprocess.run([program, f"-test.run=^{name}${'/^' + entry + '$' if entry else ''}", f"-test.coverprofile={profile}"],
                         cwd=folder(package), capture_output=True, preexec_fn=lambda: os.nice(19))
    if ran.returncode != 0:
        return None
    return {line.rsplit(" ", 2)[0] for line in profile.read_text().splitlines()[1:] if not line.endswith(" 0")}


def keep(target, most):
    """Keeps the inputs of one target that are worth it."""
    package, name = target
    cache = OUT / "corpus" / package / name
    if not cache.is_dir():
        return
    program = binary(package, f"-coverpkg=./internal/{package.split('/')[0]}/...", of="cover")
    corpus = folder(package) / "testdata" / "fuzz" / name
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        known = reached(program, package, name, "", scratch)
        if known is None:
            sys.exit(f"{package} {name} fails with its seeds")
        left, kept, vain = most, 0, 0
        for path in sorted(cache.iterdir(), key=lambda p: (p.stat().st_size, p.name)):
            text = path.read_bytes()
            entry = corpus / hashlib.sha256(text).hexdigest()[:16]
            if len(text) > left or vain == VAIN:
                break
            if entry.exists():
                continue
            corpus.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, entry)
            new = reached(program, package, name, entry.name, scratch)
            if new is not None and new - known:
                known |= new
                left, kept, vain = left - len(text), kept + 1, 0
            else:
                entry.unlink()
                vain += 1
        if corpus.is_dir() and not any(corpus.iterdir()):
            corpus.rmdir()
    print(f"{package} {name}: {kept} inputs, {most - left} bytes", flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--each", default="30s", help="processor time of a target")
    p.add_argument("--all", help="processor time of all targets, divided by what they are worth")
    p.add_argument("--run", default="", metavar="REGEXP", help="only targets whose package and name, a space between them, match")
    p.add_argument("--table", metavar="FILE", help="where the table goes; left out: to the output")
    p.add_argument("--keep", type=int, metavar="BYTES", help="runs nothing, keeps inputs of earlier runs")
    o = p.parse_args()
    chosen = targets(o.run)
    if o.keep:
        for t in chosen:
            keep(t, o.keep)
        return 0
    worths = sum(worth(t) for t in chosen)
    OUT.mkdir(parents=True, exist_ok=True)
    faults = []
    for t in chosen:
        r = fuzz(t, seconds(o.all) * worth(t) / worths if o.all else seconds(o.each))
        r["commit"] = commit()
        print(f"{r['target']}: {r['execs']:,} executions in {r['cpu']} s, {r['new']} new inputs" + (", FAULT" if r["faults"] else ""), flush=True)
        with RESULTS.open("a") as f:
            f.write(json.dumps(r) + "\n")
        faults += [r["target"]] * r["faults"]
    text = table(o.run)
    if o.table:
        pathlib.Path(o.table).write_text(text)
    else:
        print(text)
    if faults:
        print("faults:", ", ".join(faults))
    return 1 if faults else 0


sys.exit(main())
