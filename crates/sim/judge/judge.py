#!/usr/bin/env python3
"""The independent judge: reads histories that `sim` wrote and says whether every rule held.

    judge.py HISTORY.jsonl...      one verdict as a JSON object

Ends with 0 (every rule held), 1 (a rule was broken) or 2 (the history cannot be read).

A file may hold several histories one after the other, each from a line `begin` to a line `end`. The
judge shares no code with the program: it knows the history's format and the rules, nothing else.
Needs nothing but Python's standard library.
"""

import hashlib
import json
import re
import sys
from datetime import datetime, timedelta, timezone

import effects  # noqa: F401  registers its rules
from history import RULES, History, rule

MINUTE = 60_000_000
OUTSIDE = ("webhook", "file", "feed_entry", "page_changed")
DAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]


@rule
def acknowledged_input_is_handled(history):
    """P1, EVT-03, EVT-13: what was acknowledged is handled once or failed visibly."""
    events = {event["id"]: event for event in history.all("event")}
    known = {}
    for ack in history.said("ack"):
        event = events.get(ack["event"])
        if event is None:
            yield f"message {ack['id']} was acknowledged and is not on record"
        elif event["external"] != ack["id"]:
            yield f"message {ack['id']} was acknowledged as event of {event['external']}"
        if known.setdefault(ack["id"], ack["event"]) != ack["event"]:
            yield f"message {ack['id']} became two events"
    notices = [m["text"] for m in history.all("message") if m["kind"] == "notice"]
    stopped = {d["id"] for d in history.all("duty") if d["state"] in ("stopped", "closed")}
    stopped |= {line["duty"] for line in history.said("stop")}
    paused = {pause["duty"] for pause in history.all("pause") if pause["state"] == "active"}
    lanes = {duty["session"]: duty["id"] for duty in history.all("duty")}
    for event in events.values():
        item, name = event["item"], f"event {event['id']} ({event['kind']})"
        if item["state"] == "failed":
            told = any(event["text"][:60] in text for text in notices)
            recorded = (event["disposition"] or "").startswith("recorded")
            withdrawn = event["duty"] in stopped and recorded
            if not told and not withdrawn:
                yield f"{name} failed and nobody was told"
        elif item["state"] == "background":
            # It waits for whichever run of its session comes next.
            continue
        elif item["state"] == "pending" and event["kind"] != "user_message" and (
            None in paused or lanes.get(item["session"]) in paused - {None}
        ):
            # While it is paused, what comes in is kept and waits.
            continue
        elif item["state"] != "done":
            yield f"{name} is still {item['state']}"
        if not event["disposition"]:
            yield f"{name} has no disposition"
    runs = {run["id"]: run for run in history.all("run")}
    for event in events.values():
        words = (event["disposition"] or "").split()
        if words[:3] == ["handled", "by", "run"]:
            run = runs.get(words[3])
            if run is None or run["state"] not in ("completed", "budget_exhausted"):
                yield f"event {event['id']} was handled by a run that did not complete"
            elif event["item"]["run"] != words[3]:
                yield f"event {event['id']} is named by two runs"


@rule
def what_was_delivered_is_one_event(history):
    """P1, EVT-03, EVT-04: what a sender was acknowledged for is one event of its source."""
    names = {source["id"]: source["name"] for source in history.all("source")}
    known = {}
    for event in history.all("event"):
        known.setdefault((names.get(event["source"]), event["external"]), []).append(event["id"])
    for ack in history.said("delivered"):
        found = known.get((ack["source"], ack["id"]), [])
        if found != [ack["event"]]:
            yield f"delivery {ack['id']} of {ack['source']} is on record as {found}"


@rule
def classes_come_from_the_ingress(history):
    """EVT-02, QUE-03: only a device of the user makes a user item; what is outside stays outside."""
    sources = {source["id"]: source for source in history.all("source")}
    for event in history.all("event"):
        source, name = sources.get(event["source"]), f"event {event['id']} ({event['kind']})"
        if source is None:
            yield f"{name} comes from a source that is not on record"
            continue
        device = source["kind"] == "device"
        if (event["item"]["class"] == "user" or event["trust"] == "user") and not device:
            yield f"{name} came through {source['name']} and counts as the user's"
        if device and (event["kind"] != "user_message" or event["item"]["class"] != "user"):
            yield f"{name} came from a device and counts as {event['item']['class']}"
        if event["kind"] in OUTSIDE and event["trust"] != "outside":
            yield f"{name} is trusted as {event['trust']}"
        if event["kind"] in OUTSIDE and event["item"]["class"] not in (None, "external", "background"):
            yield f"{name} is of the class {event['item']['class']}"


@rule
def nothing_wakes_without_a_reason(history):
    """EVT-06..09: what a run read from outside met a wait, a subscription, or a candidate's duty."""
    waits = {wait["id"]: wait for wait in history.all("wait")}
    said = {line["event"]: line for line in history.all("attribution")}
    noted = {line["event"]: line["dial"] for line in history.all("note")}
    links = {}
    for link in history.all("link"):
        links.setdefault(link["event"], []).append(link)
        event = link["event"]
        if link["how"] == "wait":
            wait = waits.get(link["record"])
            if wait is None or wait["by"] != event or wait["session"] != link["session"]:
                yield f"event {event} woke for wait {link['record']}, which it did not meet"
        elif link["how"] == "attribution":
            answer = said.get(event)
            if answer is None or link["duty"] not in answer["chosen"]:
                yield f"event {event} went to duty {link['duty']}, which nobody chose"
        elif link["how"] == "dial" and noted.get(event) != "auto":
            yield f"event {event} was looked at, and the dial did not say so"
    for event in history.all("event"):
        if event["kind"] not in OUTSIDE:
            continue
        own = links.get(event["id"], [])
        if event["item"]["delivered"] is not None:
            if event["item"]["session"] not in [link["session"] for link in own]:
                yield f"event {event['id']} was read by a run for no reason"
        for wait in waits.values():
            same = (wait["kind"], wait["key"]) == (event["kind"], event["key"])
            over = wait["state"] != "open" and wait["by"] != event["id"]
            if same and over and wait["moved"] < event["received"]:
                if any(link["how"] in ("attribution", "dial") for link in own):
                    yield f"event {event['id']} woke for wait {wait['id']}, which had ended"
    for event, answer in said.items():
        numbers = [int(n) for n in re.findall(r"\d+", answer["answer"] or "")]
        shown = answer["candidates"]
        if not set(answer["chosen"]) <= set(shown):
            yield f"event {event} was given to a duty that was no candidate"
        beyond = [n for n in numbers if n > len(shown)]
        plain = re.fullmatch(r"[\d\s,.，、。]*", answer["answer"] or "")
        if answer["chosen"] and (beyond or not plain):
            yield f"event {event}: an answer outside the set was taken: {answer['answer']}"
        if answer["chosen"] and answer["refused"]:
            yield f"event {event}: a refused answer was taken"


# Words that no hold may be released against by the policy alone. The program's own list is longer.
STOPS = ["先别", "停", "取消", "别订", "stop", "halt", "cancel", "don't", "not yet"]


def judged_at(history, when):
    """The events of the messages that the run read which called settle_message at this instant."""
    tails = {s["run"]: s["text"] for s in history.all("step") if s["kind"] == "tail"}
    for step in history.all("step"):
        if step["tool"] == "settle_message" and step["when"] == when:
            yield from re.findall(r"- message (\S+) from the user", tails[step["run"]])


@rule
def holds_end_by_a_verdict_or_the_user(history):
    """QUE-09..12, G-07: a hold per message; it falls by a verdict of a run that read it, or a tap."""
    who = {principal["id"]: principal["kind"] for principal in history.all("principal")}
    taps = {line["hold"]: line for line in history.said("release") if line["done"]}
    pauses = {pause["id"]: pause for pause in history.all("pause")}
    texts = {event["id"]: event["text"] for event in history.all("event")}
    held = {hold["event"] for hold in history.all("hold")}
    for event in history.all("event"):
        if (event["kind"] == "user_message") != (event["id"] in held):
            yield f"event {event['id']} ({event['kind']}) has the wrong number of holds"
    for hold in history.all("hold"):
        name, by = f"hold {hold['id']}", who.get(hold["by"])
        ends = {"placed": (None,), "released": ("policy", "user"), "promoted": ("policy", "user")}
        if by not in ends[hold["state"]]:
            yield f"{name} was {hold['state']} by {by}"
        verdicts = {"released": "not_a_stop", "promoted": "stop"}
        if by == "policy":
            if hold["verdict"] != verdicts[hold["state"]]:
                yield f"{name} was {hold['state']}, and the verdict was {hold['verdict']}"
            if hold["event"] not in judged_at(history, hold["moved"]):
                yield f"{name} was judged by no run that had read its message"
            text = texts.get(hold["event"], "").lower()
            if hold["state"] == "released" and any(word in text for word in STOPS):
                yield f"{name} was released against the words of its message"
        if hold["asked"] and hold["event"] not in judged_at(history, hold["asked"]):
            yield f"{name}: the user was asked, and no run had read its message"
        if by == "user" and hold["state"] == "released" and hold["id"] not in taps:
            yield f"{name} was released in the user's name without a tap"
        if (hold["state"] == "promoted") != (hold["pause"] in pauses):
            yield f"{name} is {hold['state']}, and its pause is {hold['pause']}"


@rule
def control_is_written_by_user_or_policy(history):
    """P7, PRO-17: pauses, holds and ways in change by the user or by the policy, and it is audited."""
    who = {principal["id"]: principal["kind"] for principal in history.all("principal")}
    audited = {}
    for entry in history.all("audit"):
        audited.setdefault((entry["record"], entry["verb"]), []).append(who.get(entry["by"]))
        if entry["of"] in ("hold", "pause") and who.get(entry["by"]) not in ("user", "policy"):
            yield f"{entry['of']} {entry['record']}: {entry['verb']} by nobody"
        if entry["of"] in ("source", "owner", "device") and who.get(entry["by"]) != "user":
            yield f"{entry['of']} {entry['record']}: {entry['verb']} not by the user"
        if entry["verb"] in ("lift", "confirmed", "declined") and who.get(entry["by"]) != "user":
            yield f"{entry['of']} {entry['record']}: {entry['verb']} not by the user"
    stops = {hold["pause"] for hold in history.all("hold") if hold["verdict"] == "stop"}
    for pause in history.all("pause"):
        placed = who.get(pause["placed_by"])
        if audited.get((pause["id"], "pause")) != [placed]:
            yield f"pause {pause['id']} was placed by {placed}, and the audit does not say so"
        if placed == "policy" and pause["id"] not in stops:
            yield f"pause {pause['id']} comes from no message that says stop"
        if placed == "user" and not history.said("pause"):
            yield f"pause {pause['id']} was placed in the user's name"
        if pause["state"] == "lifted" and not any(line["done"] for line in history.said("lift")):
            yield f"pause {pause['id']} was lifted in the user's name"
    for hold in history.all("hold"):
        if hold["state"] != "placed":
            if audited.get((hold["id"], hold["state"])) != [who.get(hold["by"])]:
                yield f"hold {hold['id']} ended, and the audit does not say so"
    added = {line["name"] for line in history.said("source")}
    for source in history.all("source"):
        if source["kind"] not in ("device", "timer") and source["name"] not in added:
            yield f"source {source['name']} was added by nobody"


@rule
def sources_name_an_event_once(history):
    """EVT-04: unique per (source, external id)."""
    seen = set()
    for event in history.all("event"):
        key = (event["source"], event["external"])
        if key in seen:
            yield f"source {key[0]} has two events called {key[1]}"
        seen.add(key)


@rule
def no_journaled_step_is_asked_again(history):
    """DUR-10, DUR-12: the journaled answer is the answer to the last ask of that step."""
    steps = {(s["run"], s["n"]): s for s in history.all("step")}
    answers, asked = {}, {}
    for line in history.said("ask", "answer"):
        key = (line["run"], line["n"])
        if line["t"] == "ask":
            asked[key] = line
            answers.pop(key, None)
        else:
            answers[key] = line["answer"]
    for key, step in steps.items():
        if step["kind"] != "model":
            continue
        if key not in asked:
            yield f"step {key[1]} of run {key[0]} holds an answer that was never asked for"
        elif asked[key]["request"] != step["request"]:
            yield f"step {key[1]} of run {key[0]} names another request than was last asked"
        elif answers.get(key) != step["answer"]:
            yield f"step {key[1]} of run {key[0]} was asked again after it was journaled"
    for read in history.said("read"):
        step = steps.get((read["run"], read["n"]))
        if step and step["call"] != read["call"]:
            yield f"call {read['call']} was made as step {read['n']}, which is {step['call']}"
    for run, n in steps:
        if n > 0 and (run, n - 1) not in steps:
            yield f"run {run} lacks step {n - 1}"


@rule
def one_run_at_a_time(history):
    """P2, QUE-01: runs of a session follow each other."""
    sessions = {}
    for run in history.all("run"):
        sessions.setdefault(run["session"], []).append(run)
    for session, runs in sessions.items():
        runs.sort(key=lambda run: run["n"])
        if [run["n"] for run in runs] != list(range(len(runs))):
            yield f"the runs of session {session} are not numbered without gaps"
        for before, after in zip(runs, runs[1:]):
            if before["ended"] is None or before["ended"] > after["started"]:
                yield f"run {after['id']} began while run {before['id']} was open"


@rule
def fences_grow_and_hold(history):
    """P2, DUR-01, DUR-02: fences grow strictly, and an overtaken worker leaves no trace."""
    newest = {}
    for line in history.said("claim", "record"):
        session, fence = line["session"], line["fence"]
        if line["t"] == "claim":
            if fence <= newest.get(session, 0):
                yield f"session {session}: claim with fence {fence} after {newest[session]}"
            newest[session] = max(fence, newest.get(session, 0))
        elif fence != newest.get(session):
            yield f"session {session}: fence {fence} committed after {newest.get(session)}"


@rule
def changes_have_no_gaps(history):
    """CLI-05: the change sequence has no gaps, and commits came in its order."""
    for row in history.all("changes"):
        if row["seqs"] != list(range(1, len(row["seqs"]) + 1)):
            yield "the change sequence has gaps"
        for owner in history.all("owner"):
            if owner["change_seq"] != len(row["seqs"]):
                found = len(row["seqs"])
                yield f"the owner counts {owner['change_seq']} changes, and there are {found}"
    seqs = [line["seq"] for line in history.said("commit")]
    if seqs != sorted(set(seqs)):
        yield "commits were seen out of order or twice: something acknowledged was lost"


def part(data):
    return len(data).to_bytes(8, "big") + data


def uuid_bytes(text):
    return bytes.fromhex(text.replace("-", "")) if text else b""


@rule
def the_audit_chain_is_whole(history):
    """The hash of each entry covers the entry before it."""
    head = bytes(32)
    for n, entry in enumerate(sorted(history.all("audit"), key=lambda e: e["n"]), start=1):
        if entry["n"] != n:
            yield f"audit entry {n} is missing"
            return
        parts = [
            head,
            n.to_bytes(8, "big", signed=True),
            entry["when"].to_bytes(8, "big", signed=True),
            uuid_bytes(entry["by"]),
            entry["verb"].encode(),
            entry["of"].encode(),
            uuid_bytes(entry["record"]),
            bytes.fromhex(entry["digest"] or ""),
        ]
        head = hashlib.sha256(b"".join(part(p) for p in parts)).digest()
        if head.hex() != entry["hash"]:
            yield f"audit entry {n} does not hash to what is on record"
            return
    for owner in history.all("owner"):
        if owner["audit_head"] != head.hex():
            yield "the head of the audit chain is not the last entry's hash"


@rule
def waits_end_once(history):
    """DEL-10, EVT-06: a wait ends once, and nothing wakes for one that had ended otherwise."""
    waits = {wait["id"]: wait for wait in history.all("wait")}
    events = {event["id"]: event for event in history.all("event")}
    for wait in waits.values():
        if (wait["state"] == "satisfied") != (wait["by"] is not None):
            yield f"wait {wait['id']} is {wait['state']} by {wait['by']}"
        if wait["by"] is not None:
            event = events.get(wait["by"])
            if event is None or event["kind"] != wait["kind"] or event["key"] != wait["key"]:
                yield f"wait {wait['id']} was met by an event that it does not wait for"
    for event in events.values():
        if event["kind"] not in ("wait_timed_out", "wait_satisfied"):
            continue
        if event["kind"] == "wait_satisfied":
            # `related:EVENT:LANE`: the event itself went to another lane.
            _, met_by, lane = event["external"].split(":")
            ended = [w for w in waits.values() if w["by"] == met_by and w["session"] == lane]
        else:
            wait = waits.get(event["external"].removeprefix("wait:"))
            ended = [wait] if wait and wait["state"] == "timed_out" else []
        if not ended:
            yield f"event {event['id']} ({event['kind']}) woke for a wait that did not end that way"
    timed_out = {e["external"] for e in events.values() if e["kind"] == "wait_timed_out"}
    for wait in waits.values():
        if wait["state"] == "timed_out" and f"wait:{wait['id']}" not in timed_out:
            yield f"wait {wait['id']} timed out and woke nobody"


def slots(rule_, offset_s, after, until):
    """The slots of a rule in (after, until], computed from scratch."""
    zone = timezone(timedelta(seconds=offset_s))
    hour, minute = (int(word) for word in rule_["at"].split(":"))
    day = datetime.fromtimestamp(after / 1e6, zone).date()
    last = datetime.fromtimestamp(until / 1e6, zone).date()
    while day <= last:
        named = {
            "daily": True,
            "weekdays": day.weekday() < 5,
            "weekly": DAYS[day.weekday()] == (rule_.get("weekday") or "").lower(),
        }[rule_["kind"]]
        local = datetime(day.year, day.month, day.day, hour, minute, tzinfo=zone)
        at = int(local.timestamp()) * 1_000_000
        if named and after < at <= until:
            yield at
        day += timedelta(days=1)


def away(history, slot):
    """Whether the process was gone at a slot, and came back more than a minute after it."""
    gone = None
    for line in history.said("crash", "open"):
        if line["t"] == "crash":
            gone = line["at"]
        elif gone is not None and gone <= slot and slot + MINUTE < line["at"]:
            return True
    return False


@rule
def each_slot_fires_once(history):
    """Each slot fires once or is covered by one late catch-up that says how many it stands for."""
    begin, last = history.said("begin")[0], max(line["at"] for line in history.lines)
    controls = history.said("stop", "resume")
    for schedule in history.all("schedule"):
        name = f"schedule {schedule['id']}"
        pauses = [c for c in controls if c["duty"] == schedule["duty"] and c["done"]]
        told, fired = {}, {}
        for event in history.all("event"):
            words = event["external"].split(":")
            if words[0] == "schedule" and words[1] == schedule["id"]:
                missed = re.search(r"stands for (\d+) earlier", event["text"])
                slot, covers = int(words[2]), int(missed.group(1)) if missed else 0
                if slot in told:
                    yield f"{name}: slot {slot} was told twice"
                told[slot] = fired[slot] = (event["late"], covers, event["received"])
        if schedule["check"]:
            # A program looks at each slot first: the look stands for it, and tells or does not.
            fired = {}
            for check in history.all("check"):
                if check["schedule"] != schedule["id"]:
                    continue
                slot, state = check["slot"], check["state"]
                if slot in fired:
                    yield f"{name}: slot {slot} was looked at twice"
                fired[slot] = (check["late"], check["missed"], check["created"])
                if (slot in told) != (state in ("met", "failed")):
                    yield f"{name}: the look at slot {slot} was {state}, told: {slot in told}"
                elif slot in told and told[slot][:2] != fired[slot][:2]:
                    yield f"{name}: slot {slot} was looked at and told differently"
                if state == "due":
                    yield f"{name}: the look at slot {slot} was never taken"
            for slot in set(told) - set(fired):
                yield f"{name}: slot {slot} was told, and no program looked"
        start = max([schedule["created"]] + [c["at"] for c in pauses if c["t"] == "resume"])
        end = last if schedule["until"] is None else min(last, schedule["until"])
        due = list(slots(schedule["rule"], begin["utc_offset_s"], schedule["created"], end))
        covered = set(fired)
        for slot, (is_late, covers, received) in fired.items():
            if slot not in due:
                yield f"{name} fired at {slot}, which is no slot of it"
            late = covers > 0 or slot + MINUTE < received
            if is_late != late:
                yield f"{name}, slot {slot}: late is {is_late}, and it was {late}"
            if late and schedule["missed"] == "skip":
                yield f"{name}: slot {slot} is late and was not skipped"
            for other in ([s for s in due if s < slot][-covers:] if covers else []):
                if other in fired:
                    yield f"{name}: slot {other} fired and is covered by {slot} too"
                covered.add(other)
        if schedule["missed"] == "skip":
            # Only what passed while nobody was there may be let go.
            covered |= {slot for slot in due if away(history, slot)}
        if schedule["state"] in ("active", "expired"):
            for slot in due:
                if slot > start and slot not in covered and slot < last - MINUTE:
                    yield f"{name}: slot {slot} never fired"
            if schedule["state"] == "active" and schedule["next"] <= last - MINUTE:
                yield f"{name}: its next slot has passed"
        stops = [c["at"] for c in pauses if c["t"] == "stop"]
        for slot in due:
            if slot not in covered and not stops and schedule["state"] == "closed":
                closing = [c["at"] for c in history.said("decide")]
                if closing and slot < max(closing) - MINUTE and slot > schedule["created"]:
                    yield f"{name}: slot {slot} never fired before it was closed"


@rule
def no_message_twice_none_lost(history):
    """USR-01, USR-17: each call speaks once, each message comes from one call, and all arrive."""
    calls = {}
    for step in history.all("step"):
        if step["kind"] == "tool" and step["tool"] == "send_to_user":
            said = re.search(r"Message (\S+) is on its way", step["text"])
            if said:
                calls[(step["run"], step["call"])] = said.group(1)
    seen = set()
    for message in history.all("message"):
        if message["kind"] == "agent":
            key = (message["run"], message["call"])
            if key in seen:
                yield f"call {key[1]} of run {key[0]} spoke twice"
            seen.add(key)
            if calls.get(key) != message["id"]:
                yield f"message {message['id']} comes from no call on record"
        if message["state"] != "delivered":
            yield f"message {message['id']} is {message['state']} at the end"
    for key in calls:
        if key not in seen:
            yield f"call {key[1]} of run {key[0]} spoke and no message is on record"
    shown = {}
    for line in history.said("seen"):
        if shown.setdefault(line["message"], line["text"]) != line["text"]:
            yield f"message {line['message']} was shown with two texts"
    known = {message["id"]: message["text"] for message in history.all("message")}
    for message, text in shown.items():
        if known.get(message) != text:
            yield f"message {message} was shown and is not on record like that"
    for message in known:
        if message not in shown:
            yield f"message {message} was never shown"
    cards = {(p["run"], p["call"]) for p in history.all("proposal")}
    if len(cards) != len(history.all("proposal")):
        yield "a call proposed twice"


@rule
def nothing_runs_while_stopped(history):
    """While a duty is stopped no run of it begins or goes on, but for the step under way."""
    runs = {run["id"]: run for run in history.all("run")}
    for duty in history.all("duty"):
        spans, since = [], None
        for line in history.said("stop", "resume"):
            if line["duty"] != duty["id"] or not line["done"]:
                continue
            if line["t"] == "stop" and since is None:
                since = line["at"]
            elif line["t"] == "resume" and since is not None:
                spans.append((since, line["at"]))
                since = None
        if since is not None:
            spans.append((since, float("inf")))
        for begin, end in spans:
            for run in runs.values():
                if run["duty"] == duty["id"] and begin < run["started"] < end:
                    yield f"run {run['id']} began while its duty was stopped"
            for line in history.said("claim"):
                run = runs.get(line["run"])
                if run and run["duty"] == duty["id"] and begin < line["at"] < end:
                    yield f"run {run['id']} was taken up while its duty was stopped"
            late = {}
            for line in history.said("record"):
                run = runs.get(line["run"])
                if run and run["duty"] == duty["id"] and begin < line["at"] < end:
                    if line["what"] in ("model", "tool", "end", "failure"):
                        late[run["id"]] = late.get(run["id"], 0) + 1
            for run, steps in late.items():
                if steps > 1:
                    yield f"run {run} made {steps} steps after its duty was stopped"


@rule
def prefixes_change_for_a_cause(history):
    """CTX-05: a prefix or window changes only where a cause is on record."""
    for session in history.all("session"):
        changes = sorted(session["prefixes"], key=lambda change: change["run_n"])
        for change in changes:
            if "unexplained" in change["cause"] or not change["cause"]:
                name = f"session {session['id']}, run {change['run_n']}"
                yield f"{name}: the prefix changed without a cause"
        for run in history.all("run"):
            if run["session"] != session["id"]:
                continue
            now = [c for c in changes if c["run_n"] <= run["n"]]
            if not now or now[-1]["digest"] != run["prefix"]:
                yield f"run {run['id']} has a prefix that no change explains"
            elif now[-1]["window_start"] != run["window_start"]:
                yield f"run {run['id']} has a history window that no change explains"


@rule
def what_is_open_belongs_to_a_person(history):
    """At rest every record that can still move waits for a person or for its time."""
    last = max(line["at"] for line in history.lines)
    for run in history.all("run"):
        if run["state"] not in ("completed", "interrupted", "budget_exhausted", "failed"):
            yield f"run {run['id']} is {run['state']} at the end"
    for session in history.all("session"):
        if session["held"]:
            yield f"session {session['id']} is held at the end"
    for wait in history.all("wait"):
        if wait["state"] == "open" and wait["due"] <= last - MINUTE:
            yield f"wait {wait['id']} is open past its time"
    for key in (key for row in history.all("changes") for key in row["faults"]):
        yield f"fault {key} is open at the end"


def read(paths):
    """All histories of all files; a line outside of one is an error."""
    histories, current = [], None
    for path in paths:
        with open(path, encoding="utf-8") as file:
            for line in file:
                line = json.loads(line)
                if line["t"] == "begin":
                    current = History()
                    histories.append(current)
                if current is None:
                    raise ValueError(f"{path}: a line before any begin")
                current.add(line)
                if line["t"] == "end":
                    current = None
        if current is not None:
            raise ValueError(f"{path}: a history without an end")
    return histories


def main(paths):
    try:
        histories = read(paths)
        if not histories:
            raise ValueError("no history")
        breaches = []
        for n, history in enumerate(histories):
            begin = history.said("begin")[0]
            crash = [line["point"] for line in history.said("crash")]
            for check in RULES:
                breaches += [
                    {"history": n, "story": begin["story"], "seed": begin["seed"], "crashes": crash,
                     "rule": check.__name__, "breach": text}
                    for text in check(history)
                ]
    except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
        print(json.dumps({"verdict": "unreadable", "error": f"{type(error).__name__}: {error}"}))
        return 2
    verdict = {"verdict": "broken" if breaches else "held", "histories": len(histories),
               "rules": len(RULES), "breaches": len(breaches), "first": breaches[:20]}
    print(json.dumps(verdict, ensure_ascii=False))
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
