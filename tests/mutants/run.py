#!/usr/bin/env python3
"""Changes the decisions about effects one small bug at a time, and lists those that no test notices.

    python3 tests/mutants/run.py [--minutes N]     N: 60 unless said

The bugs are made by cargo-mutants, in copies of the tree; the tests are those of `domain` that are about
effects. A bug that no test notices is a survivor. `survivors.txt` beside this file explains each that is
known, one a line: the bug as cargo-mutants names it without its place in the file, ` | `, and why no test
can or should notice it. The run ends with 0 if bugs were tested, every survivor is explained and every
explanation is still needed; what there was no time for is counted as untested.
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
VERSION = "27.1.0"
FILES = ["crates/domain/src/effect.rs", "crates/domain/src/effect/*.rs"]
TESTS = "test(effect::) + binary(effect_machine)"


def tool():
    if shutil.which("cargo-mutants") is None:
        subprocess.run(["cargo", "install", "--quiet", "--locked", f"cargo-mutants@{VERSION}"], check=True)


def name(mutant):
    """The bug without its place, which moves with every edit: `file: what`."""
    return re.sub(r"^([^:]+):\d+:\d+: ", r"\1: ", mutant["name"])


def explained():
    lines = (HERE / "survivors.txt").read_text().splitlines()
    pairs = [line.split(" | ", 1) for line in lines if line.strip() and not line.startswith("#")]
    return {bug: why for bug, why in pairs}


def run(minutes, folder):
    files = [part for file in FILES for part in ("--file", file)]
    command = ["cargo", "mutants", "--package", "domain", *files, "--output", folder, "--jobs", "2",
               "--timeout", "120", "--test-tool", "nextest", "--no-shuffle", "--colors", "never",
               "--", "-E", TESTS]
    listed = subprocess.run(["cargo", "mutants", "--package", "domain", *files, "--list", "--json"],
                            cwd=ROOT, check=True, capture_output=True, text=True)
    process = subprocess.Popen(command, cwd=ROOT)
    try:
        process.wait(timeout=minutes * 60)
    except subprocess.TimeoutExpired:
        process.send_signal(2)
        process.wait()
    return len(json.loads(listed.stdout))


def main(arguments):
    minutes = int(arguments[arguments.index("--minutes") + 1]) if "--minutes" in arguments else 60
    tool()
    with tempfile.TemporaryDirectory(prefix="adjutant-mutants-") as folder:
        total = run(minutes, folder)
        file = Path(folder) / "mutants.out" / "outcomes.json"
        outcomes = json.loads(file.read_text())["outcomes"] if file.exists() else []
    by = {}
    for outcome in outcomes:
        if outcome["scenario"] == "Baseline":
            if outcome["summary"] != "Success":
                print("the tests fail without a planted bug")
                return 1
            continue
        by.setdefault(outcome["summary"], []).append(name(outcome["scenario"]["Mutant"]))
    missed, known = set(by.get("MissedMutant", [])), explained()
    tested = sum(len(names) for names in by.values())
    if tested == 0:
        print(f"none of {total} bugs was tested: the files or the time are wrong")
        return 1
    counts = {summary: len(names) for summary, names in sorted(by.items())}
    print(json.dumps({"mutants": total, "untested": total - tested} | counts))
    for bug in sorted(missed):
        print(f"survivor: {bug} | {known.get(bug, 'NOT EXPLAINED')}")
    stale = sorted(set(known) - missed) if tested == total else []
    for bug in stale:
        print(f"no survivor any more, take its line out: {bug}")
    return 1 if stale or missed - set(known) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
