#!/usr/bin/env python3
"""Compares the slots of random cron expressions with those of another program, PyPI's croniter.

    tests/cron/compare.py            10 000 expressions
    tests/cron/compare.py COUNT SEED another number of them, from another seed

Each expression is asked for its next slots in UTC and in five zones, half of the time near a change
of the clock. In a zone there are two comparisons: with croniter's wall clock, put into the zone by
Python under our policy, which must agree to the second; and with croniter's own answer for it.

A difference must be of a kind that DIFFERENCES.md has a section for, by the rules of the
functions below that name kinds. Anything else is printed and fails.

The packages go into target/cron-compare (a virtual environment made at the first run).
Exit codes: 0 good, 1 a difference outside the list, 77 not possible here (the last line says why).
"""

import collections
import datetime
import multiprocessing
import os
import pathlib
import random
import re
import subprocess
import sys
import time
import typing

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))
from environment import install

ROOT = HERE.parent.parent
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()
VENV = TARGET / "cron-compare"
REQUIREMENTS = HERE / "requirements.txt"
# Zones come from the package of a fixed version, not from this machine.
os.environ["PYTHONTZPATH"] = ""
SKIPPED = 77

EXPRESSIONS = 10_000
SEED = 20261130
SLOTS = 2
UTC_INSTANTS = 1
ZONES = [
    "Asia/Hong_Kong",
    "America/New_York",
    "Europe/Berlin",
    "Australia/Lord_Howe",
    "America/Sao_Paulo",
]
# Sao Paulo changed its clocks until 2019.
YEARS = (2016, 2032)
HOUR = 3_600
DAY = 86_400


def skip(reason: str) -> typing.NoReturn:
    print(f"skipped: cron comparison because {reason}", flush=True)
    raise SystemExit(SKIPPED)


# ---- random expressions -------------------------------------------------------------------------

MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
WEEKDAYS = "sun mon tue wed thu fri sat".split()
FIELDS = [(0, 59, {}), (0, 23, {}), (1, 31, {})]
FIELDS += [(1, 12, dict(enumerate(MONTHS, 1))), (0, 7, dict(enumerate(WEEKDAYS)))]


def random_value(rng: random.Random, low: int, high: int, names: dict) -> str:
    if rng.random() < 0.004:
        return str(rng.choice([high + 1, low - 1 if low else high + 2, 100]))
    value = rng.randint(low, high)
    if value in names and rng.random() < 0.4:
        return rng.choice([names[value], names[value].upper()])
    return str(value)


def random_part(rng: random.Random, low: int, high: int, names: dict) -> str:
    shape = rng.random()
    step = f"/{rng.randint(1, high)}" if rng.random() < 0.98 else rng.choice(["/0", f"/{high + 9}"])
    if shape < 0.12:
        return "*" + step
    if shape < 0.18:
        return random_value(rng, low, high, names) + step
    if shape < 0.45:
        ends = sorted(rng.sample(range(low, high + 1), 2))
        if rng.random() < 0.03:
            ends[1] = ends[0]
        if rng.random() < 0.03:
            ends.reverse()
        ends = [names.get(end, end) if rng.random() < 0.3 else end for end in ends]
        return f"{ends[0]}-{ends[1]}" + (step if rng.random() < 0.3 else "")
    return random_value(rng, low, high, names)


def random_field(rng: random.Random, low: int, high: int, names: dict, star: float) -> str:
    if rng.random() < star:
        return "*" if rng.random() < 0.995 else "*,5"
    parts = [random_part(rng, low, high, names)]
    while rng.random() < 0.25 and len(parts) < 5:
        parts.append(random_part(rng, low, high, names))
    if rng.random() < 0.003:
        parts.append("*")
    return ",".join(parts)


def random_expression(rng: random.Random) -> str:
    if rng.random() < 0.003:
        return rng.choice(["@hourly", "@daily", "@midnight", "@weekly", "@monthly", "@yearly"])
    stars = [0.1, 0.45, 0.55, 0.7, 0.55]
    fields = [random_field(rng, *field, star) for field, star in zip(FIELDS, stars)]
    if rng.random() < 0.003:
        fields = fields[: rng.randint(3, 4)]
    return " ".join(fields)


# ---- instants -----------------------------------------------------------------------------------


def changes(zone) -> list[int]:
    """The hours (in seconds since 1970) in which the zone's clock changes."""
    first = int(datetime.datetime(YEARS[0], 1, 1, tzinfo=datetime.timezone.utc).timestamp())
    last = int(datetime.datetime(YEARS[1], 1, 1, tzinfo=datetime.timezone.utc).timestamp())
    offset = lambda at: datetime.datetime.fromtimestamp(at, zone).utcoffset()
    found = []
    for day in range(first, last, DAY):
        if offset(day) != offset(day + DAY):
            hours = range(day, day + DAY, HOUR // 2)
            found.append(next(at for at in hours if offset(at) != offset(at + HOUR // 2)))
    return found


def random_instant(rng: random.Random, near: list[int]) -> int:
    if near and rng.random() < 0.5:
        return rng.choice(near) + rng.randint(-8 * HOUR, 4 * HOUR)
    seconds = (YEARS[1] - YEARS[0]) * 365 * DAY
    start = int(datetime.datetime(YEARS[0], 1, 1, tzinfo=datetime.timezone.utc).timestamp())
    return start + rng.randrange(seconds)


# ---- what croniter says -------------------------------------------------------------------------


class Other:
    """An expression as croniter reads it. `refused` says why it does not."""

    def __init__(self, expression: str):
        import croniter

        self.never = croniter.CroniterBadDateError
        self.refused, self.cron = None, None
        try:
            self.cron = croniter.croniter(expression, 0.0, implement_cron_bug=True)
        except croniter.CroniterError as error:
            self.refused = str(error)

    def in_zone(self, zone, after: int, count: int) -> list[int]:
        """Its own answer for a zone."""
        self.cron.set_current(datetime.datetime.fromtimestamp(after, zone))
        return [int(self.cron.get_next(float)) for _ in range(count)]

    def by_wall_clock(self, zone, after: int, count: int) -> list[int]:
        """Its wall clock, each minute of which is put into the zone: what Python's zones say for
        fold 0 is the first of two such times, and for a skipped one the time as much later."""
        offset = lambda at: datetime.datetime.fromtimestamp(at, zone).utcoffset()
        quiet = lambda first, last: offset(first - DAY) == offset(first) == offset(last + DAY)
        local = datetime.datetime.fromtimestamp(after, zone).replace(tzinfo=None)
        early = datetime.timedelta(hours=0 if quiet(after, after) else 2)
        self.cron.set_current(local - early)
        slots, end = set(), None
        while True:
            minute = self.cron.get_next(datetime.datetime)
            slot = int(minute.replace(tzinfo=zone, fold=0).timestamp())
            if slot > after:
                slots.add(slot)
            if len(slots) < count:
                continue
            last = sorted(slots)[count - 1]
            if quiet(after, last) or slot > last + 2 * HOUR:
                return sorted(slots)[:count]


# ---- kinds of differences; each has a section in DIFFERENCES.md ----------------------------------


NUMBERS = {name: value for value, name in enumerate(WEEKDAYS)}
NUMBERS |= {name: value for value, name in enumerate(MONTHS, 1)}


def parts_of(field: str) -> list[tuple[str, list[int], str]]:
    """Each part with its one or two numbers (none for a star) and its step."""
    parts = []
    for part in field.lower().split(","):
        ends, _, step = part.partition("/")
        words = [end for end in ends.split("-") if end != "*"]
        parts.append((part, [NUMBERS[w] if w in NUMBERS else int(w) for w in words], step))
    return parts


def kind_of_refusal(expression: str, why: str) -> str | None:
    """Which kind of expression it is that we refuse and croniter does not."""
    for field, (_, high, _) in zip(expression.split(), FIELDS):
        for part, ends, step in parts_of(field):
            if why.startswith(f'"{part}" runs backwards') and ends[0] > ends[1]:
                return "backward range"
            if why.startswith(f'"{part}" is no ') and step and int(step) > high:
                return "large step"
    return None


def days_of(field: str, index: int) -> set[int]:
    """The days that a day field names, Sunday as 0."""
    low, high, _ = FIELDS[index]
    days = set()
    for _, ends, step in parts_of(field):
        first = ends[0] if ends else low
        last = ends[-1] if len(ends) == 2 or ends and not step else high
        days |= set(range(first, last + 1, int(step or 1)))
    return {day % 7 for day in days} if index == 4 else days


def as_we_read_it(expression: str) -> tuple[set[str], str]:
    """The expression with every part that croniter reads in another way written so that it reads it
    in ours, and the kinds of those parts."""
    kinds, fields = set(), []
    for index, field in enumerate(expression.split()):
        parts = []
        for part, ends, step in parts_of(field):
            if len(ends) == 2 and (ends[0] == ends[1] or (index == 4 and ends == [7, 0])):
                kinds.add("range of one")
                part = str(ends[0])
            if index == 4 and len(ends) == 1 and step:
                kinds.add("weekday with a step")
                part = "7" if ends[0] == 7 else f"{ends[0]}-7/{step}"
            parts.append(part)
        fields.append(",".join(parts))
    month_days, weekdays = fields[2], fields[4]
    whole = len(days_of(month_days, 2)) == 31 or len(days_of(weekdays, 4)) == 7
    if whole and not month_days.startswith("*") and not weekdays.startswith("*"):
        kinds.add("list of every day")
        fields[2] = fields[4] = "*"
    return kinds, " ".join(fields)


def kind_of_change(zone, slot: int, ours: bool) -> str | None:
    """Which kind of difference around a change a slot may be that only one side has."""
    at = datetime.datetime.fromtimestamp(slot, zone)
    before = datetime.datetime.fromtimestamp(slot - DAY, zone).utcoffset()
    jump = (at.utcoffset() - before).total_seconds()
    if at.fold == 1 and not ours:
        return "repeated time"
    if jump > 0:
        # Within the jump after the change, counted from the instant of the change.
        earlier = datetime.datetime.fromtimestamp(slot - jump, zone).utcoffset()
        if earlier == before:
            return "skipped time"
    return None


# ---- comparing ----------------------------------------------------------------------------------


class Comparison:
    """One expression in all its cases: counts, and what is outside the list."""

    def __init__(self, expression: str):
        self.expression = expression
        self.counts, self.outside = collections.Counter(expressions=1), []

    def differs(self, *what) -> None:
        self.outside.append(f"{self.expression}: " + " ".join(str(part) for part in what))

    def refusal(self, refused: str | None, other: Other, zone, after: int) -> None:
        """For an expression that one side refuses at least."""
        try:
            accepted = other.cron and other.by_wall_clock(zone, after, 1)
        except other.never:
            accepted = None
        if refused and not accepted:
            self.counts["refused by both"] += 1
        elif kind := refused and kind_of_refusal(self.expression, refused):
            self.counts[kind] += 1
        else:
            self.differs("refused by one:", refused or other.refused)

    def case(self, other: Other, zone, after: int, slots: list[int]) -> None:
        self.counts["cases"] += 1
        self.counts["slots"] += len(slots)
        expected = other.by_wall_clock(zone, after, SLOTS)
        if slots != expected:
            kinds, ours = as_we_read_it(self.expression)
            for kind in kinds:
                self.counts[kind] += 1
            again = Other(ours).by_wall_clock(zone, after, SLOTS)
            if slots != again:
                self.differs(zone, "after", after, slots, "not", expected, "nor, as", ours, again)
            return
        own = expected if zone.key == "UTC" else other.in_zone(zone, after, SLOTS)
        last = min(slots[-1], own[-1])
        for slot in sorted(set(slots) ^ set(own)):
            if slot <= last:
                kind = kind_of_change(zone, slot, slot in slots)
                self.counts[kind] += 1
                if not kind:
                    self.differs(zone, "after", after, slots, "not as for the zone", own)


def compare(work: tuple) -> Comparison:
    import zoneinfo

    expression, cases = work
    comparison, other = Comparison(expression), Other(expression)
    refused = next((ours[2:] for _, _, ours in cases if ours.startswith("!")), None)
    if refused or other.refused:
        comparison.refusal(refused, other, zoneinfo.ZoneInfo("UTC"), cases[0][1])
        return comparison
    for name, after, ours in cases:
        slots = [int(slot) for slot in ours.split()]
        comparison.case(other, zoneinfo.ZoneInfo(name), after, slots)
    return comparison


def our_slots(requests: list[str]) -> list[str]:
    build = ["cargo", "build", "--quiet", "--locked", "--package", "domain"]
    build += ["--example", "cron_slots"]
    environment = os.environ | {"CARGO_TARGET_DIR": str(TARGET)}
    subprocess.run(build, check=True, cwd=ROOT, env=environment)
    program = TARGET / "debug" / "examples" / "cron_slots"
    text = "\n".join(requests) + "\n"
    answer = subprocess.run([program], input=text, capture_output=True, text=True, check=True)
    lines = answer.stdout.splitlines()
    assert len(lines) == len(requests), "one line of output for each of input"
    return lines


def main() -> None:
    import zoneinfo

    began = time.monotonic()
    count = int(sys.argv[1]) if len(sys.argv) > 1 else EXPRESSIONS
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else SEED
    rng = random.Random(seed)
    near = {name: changes(zoneinfo.ZoneInfo(name)) for name in ZONES}
    cases = []
    for _ in range(count):
        expression = random_expression(rng)
        places = ["UTC"] * UTC_INSTANTS + ZONES
        cases.append(
            (expression, [(name, random_instant(rng, near.get(name, []))) for name in places])
        )
    requests = [
        f"{name}\t{after}\t{SLOTS}\t{expression}"
        for expression, instants in cases
        for name, after in instants
    ]
    answers = iter(our_slots(requests))
    work = [
        (expression, [(name, after, next(answers)) for name, after in instants])
        for expression, instants in cases
    ]
    counts, outside = collections.Counter(), []
    with multiprocessing.Pool(os.cpu_count()) as pool:
        for one in pool.imap_unordered(compare, work, chunksize=50):
            counts += one.counts
            outside += one.outside
    kinds = re.findall(r"^## (.+)$", (HERE / "DIFFERENCES.md").read_text(), re.MULTILINE)
    plain = {"expressions", "cases", "slots", "refused by both", None}
    unlisted = sorted(kind for kind in counts if kind not in plain and kind not in kinds)
    for line in outside[:40]:
        print(line)
    for name, number in sorted(counts.items(), key=str):
        print(f"{number:8} {name}")
    print(f"seed {seed}, {time.monotonic() - began:.0f} s")
    if unlisted or outside:
        print(f"{len(outside)} differences outside DIFFERENCES.md; unlisted kinds: {unlisted}")
        raise SystemExit(1)


if __name__ == "__main__":
    python = install(VENV, REQUIREMENTS, skip)
    if pathlib.Path(sys.prefix).resolve() != VENV.resolve():
        os.execv(python, [str(python), *sys.argv])
    main()
