#!/usr/bin/env python3
"""Runs the suites on copies of the tree that each hold one planted bug. See README.md."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PLANTS = Path(__file__).resolve().parent
ROOT = PLANTS.parents[2]
SUITES = ["domain", "agent", "store", "engine", "sim"]
SUITE_SECONDS_MAX = 1_800


def heading(text, word):
    found = re.search(rf"^# *{word}:? *(.*)$", text, re.MULTILINE)
    return found.group(1).strip() if found else None


def planted_files():
    """Every file that some plant changes."""
    names = set()
    for plant in PLANTS.glob("*.patch"):
        names |= set(re.findall(r"^\+\+\+ b/(\S+)", plant.read_text(), re.MULTILINE))
    return names


def copy_tree(folder):
    planted = planted_files()
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True
    ).stdout
    for name in listed.decode().split("\0"):
        source = ROOT / name
        if name and source.is_file():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            # With its time, so that what did not change is not compiled again; but what a plant may
            # have changed before must be, or that plant's build would be tested once more.
            copy = shutil.copy if name in planted else shutil.copy2
            copy(source, target)


def tests(folder, suite, environment):
    """The outcome of one suite: green, or the first failing test, or why it did not run."""
    has_nextest = shutil.which("cargo-nextest") is not None
    nextest = ["cargo", "nextest", "run", "--no-tests=pass", "--fail-fast"]
    command = nextest if has_nextest else ["cargo", "test"]
    try:
        done = subprocess.run(
            command + ["-p", suite], cwd=folder, env=environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SUITE_SECONDS_MAX,
        )
    except subprocess.TimeoutExpired:
        return "hung", f"{suite}: no end after {SUITE_SECONDS_MAX} s"
    if done.returncode == 0:
        return "green", None
    failed = re.search(
        r"^\s*(?:FAIL|TIMEOUT|ABORT|SIG\w+) \[[^\]]*\] *(?:\([^)]*\) *)?(.+)$",
        done.stdout, re.MULTILINE,
    )
    failed = failed or re.search(r"^test (\S+) \.\.\. FAILED$", done.stdout, re.MULTILINE)
    if failed:
        return "caught", failed.group(1).strip()
    errors = re.findall(r"^error.*$", done.stdout, re.MULTILINE)
    return "broken", (errors or done.stdout.splitlines()[-1:] or ["it failed without a word"])[0]


def run(name, text, environment, parent):
    folder = Path(parent) / "tree"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    copy_tree(folder)
    verdict = {"plant": name, "rule": heading(text, "breaks"), "caught": False}
    verdict |= {"by": None, "suite": None}
    begun = time.monotonic()
    if text:
        applied = subprocess.run(
            ["patch", "-p1", "--silent", "--forward"], cwd=folder, input=text, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )
        if applied.returncode != 0:
            return verdict | {"error": "the patch does not apply: " + applied.stdout.strip()[:300]}
    for suite in (heading(text, "suites") or " ".join(SUITES)).split():
        print(f"{name}: {suite}", file=sys.stderr, flush=True)
        outcome, what = tests(folder, suite, environment)
        if outcome in ("caught", "hung"):
            verdict |= {"caught": True, "by": what, "suite": suite}
        elif outcome == "broken":
            verdict |= {"error": what, "suite": suite}
        if outcome != "green":
            break
    return verdict | {"seconds": round(time.monotonic() - begun)}


def main(arguments):
    target = os.environ.get("PLANTS_TARGET_DIR", str(ROOT / "target" / "plants"))
    environment = os.environ | {"CARGO_TARGET_DIR": target, "CARGO_TERM_COLOR": "never",
                                "ADJUTANT_SKIP_PAGE": "1", "NO_COLOR": "1"}
    base = "--base" in arguments
    wanted = [a for a in arguments if not a.startswith("--")]
    plants = [] if base else sorted(PLANTS.glob("*.patch"))
    plants = [p for p in plants if not wanted or p.stem in wanted or p.name in wanted]
    if not plants and not base:
        print("there is no such plant", file=sys.stderr)
        return 2
    fine = True
    with tempfile.TemporaryDirectory(prefix="adjutant-plants-") as parent:
        for name, text in [("base", "")] if base else [(p.stem, p.read_text()) for p in plants]:
            verdict = run(name, text, environment, parent)
            print(json.dumps(verdict), flush=True)
            green = not verdict["caught"] and "error" not in verdict
            fine &= green if base else verdict["caught"]
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
