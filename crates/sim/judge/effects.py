"""The judge's rules about effects: what is sent was released, once, before every stop."""

import re

from history import rule


def stood(pause, at):
    """Whether a pause stood at a change number of its owner."""
    placed, last = pause["seqs"]
    return placed < at and (pause["state"] == "active" or at < last)


@rule
def nothing_leaves_without_its_attempt(history):
    """P3, P5, DEL-09: what reached the world was an attempt on record, in its time, and once."""
    attempts = {attempt["operation"]: attempt for attempt in history.all("attempt")}
    actions = {action["id"]: action for action in history.all("action")}
    seen = set()
    for request in history.all("reached"):
        operation = request["operation"]
        attempt = attempts.get(operation)
        if operation in seen:
            yield f"operation {operation} was sent twice"
        seen.add(operation)
        if attempt is None:
            yield f"operation {operation} reached the world and is no attempt on record"
            continue
        if not attempt["created"] <= request["when"] <= attempt["send_by"]:
            yield f"operation {operation} left at {request['when']}, out of its time"
        action = actions[attempt["action"]]
        frozen = {key: value for key, value in action["arguments"].items() if key != "client_ref"}
        if request["arguments"] != {**frozen, "client_ref": operation}:
            yield f"operation {operation} was sent with other arguments than were frozen"
        if attempt["operation"].split(".")[0] != action["id"]:
            yield f"operation {operation} is no operation of action {action['id']}"
    for act in history.said("act"):
        if act["operation"] not in attempts:
            yield f"operation {act['operation']} was performed and is no attempt on record"


@rule
def nothing_is_sent_unreleased(history):
    """ADM-08..11: an attempt needs a release of exactly its content, by a tap or inside a grant."""
    who = {principal["id"]: principal["kind"] for principal in history.all("principal")}
    grants = {grant["id"]: grant for grant in history.all("grant")}
    taps = {(tap["action"], tap["digest"]) for tap in history.said("tap") if tap["what"] == "approve"}
    sent = {attempt["action"] for attempt in history.all("attempt")}
    for action in history.all("action"):
        name = f"action {action['id']}"
        if action["bytes"] != action["digest"]:
            yield f"{name}: its bytes are not the frozen ones"
        own = [a for a in history.all("approval") if a["action"] == action["id"]]
        used = [a for a in own if a["state"] == "consumed"]
        if (action["id"] in sent) != (len(used) == 1):
            yield f"{name}: {len(used)} approvals were used"
        for approval in used:
            if approval["digest"] != action["digest"]:
                yield f"{name}: what was released is not what was sent"
            first = [a["seqs"][0] for a in history.all("attempt") if a["action"] == action["id"]]
            if first and approval["seqs"][0] >= min(first):
                yield f"{name}: it was released after it was sent"
        for approval in own:
            if approval["state"] not in ("granted", "consumed", "voided"):
                continue
            by = who.get(approval["by"])
            if approval["state"] == "voided" and by is None:
                continue
            grant = grants.get(approval["grant"])
            if by == "user":
                if (action["id"], approval["digest"]) not in taps:
                    yield f"{name} was released in the user's name without a tap"
            elif by != "policy" or grant is None:
                yield f"{name} was released by {by}"
            elif (grant["tool"], grant["duty"]) != (action["tool"], action["duty"]):
                yield f"{name} was released by a grant of something else"
            elif who.get(grant["confirmed_by"]) != "user":
                yield f"{name} was released by a grant that the user did not confirm"
            elif grant["each"] is not None and (action["minor"] or 0) > grant["each"]:
                yield f"{name} is more than its grant allows at once"


@rule
def grants_are_never_exceeded(history):
    """ADM-05, G-32: what was sent or may have happened stays inside each grant, and is counted."""
    reserved = ("admitted", "dispatched", "unknown")
    spent = ("accepted", "effective")
    for grant in history.all("grant"):
        own = [a for a in history.all("action") if a["draws_on"] == grant["id"]]
        for states, count, minor in ((reserved, "reserved", "reserved_minor"),
                                     (spent, "spent", "spent_minor")):
            of = [action for action in own if action["state"] in states]
            if grant[count] != len(of) or grant[minor] != sum(a["minor"] or 0 for a in of):
                yield f"grant {grant['id']} counts {grant[count]} {count}, and there are {len(of)}"
        both = [action for action in own if action["state"] in reserved + spent]
        if len(both) > grant["times"] or sum(a["minor"] or 0 for a in both) > (grant["total"] or 0):
            yield f"grant {grant['id']} was exceeded"


@rule
def a_stop_wins_from_its_commit(history):
    """P8, ADM-16: no attempt has a number in which a pause that concerns it stood."""
    actions = {action["id"]: action for action in history.all("action")}
    for attempt in history.all("attempt"):
        at, duty = attempt["seqs"][0], actions[attempt["action"]]["duty"]
        for pause in history.all("pause"):
            if pause["duty"] in (None, duty) and stood(pause, at):
                yield f"attempt {attempt['id']} was made while pause {pause['id']} stood"
        for line in history.said("stop"):
            resumed = [r["at"] for r in history.said("resume") if r["at"] > line["at"]]
            if line["duty"] == duty and line["at"] < attempt["created"] < min(resumed, default=1e18):
                yield f"attempt {attempt['id']} was made while its duty was stopped"
    withdrawn = {t["action"]: t["at"] for t in history.said("tapped")
                 if t["what"] in ("withdraw", "deny") and not t["conflict"]}
    for attempt in history.all("attempt"):
        if withdrawn.get(attempt["action"], 1e18) < attempt["created"]:
            yield f"attempt {attempt['id']} was made after its action was taken back"


@rule
def an_errand_is_done_once(history):
    """ADM-03, G-25: a world has at most one booking for an errand, whatever was lost on the way."""
    errands = {}
    attempts = {attempt["operation"]: attempt for attempt in history.all("attempt")}
    actions = {action["id"]: action for action in history.all("action")}
    for booking in history.all("booking"):
        attempt = attempts.get(booking["operation"])
        if attempt is None:
            yield f"booking {booking['number']} comes from no attempt on record"
            continue
        action = actions[attempt["action"]]
        key = (action["session"], action["tool"], action["errand"])
        errands.setdefault(key, []).append(booking["number"])
    for numbers in errands.values():
        if len(numbers) > 1:
            yield f"one errand has the bookings {', '.join(numbers)}"


@rule
def in_force_is_what_was_found(history):
    """P3, TOOL-05, ADM-22: in force needs a look that found it while it was there."""
    begin = history.said("begin")[0]
    booked = {booking["operation"]: booking for booking in history.all("booking")}
    asked = {m["action"] for m in history.all("message")
             if m["action"] and m["text"].startswith("Did this happen?")}
    stated = {line["action"]: line["happened"] for line in history.said("state")}
    paused = any(pause["state"] == "active" for pause in history.all("pause"))
    for action in history.all("action"):
        name, state = f"action {action['id']}", action["state"]
        operations = [a["operation"] for a in history.all("attempt") if a["action"] == action["id"]]
        looks = [l for l in history.all("looked") if l["operation"] in operations]
        there = [l for l in looks if l["exists"] and not l["ended"]]
        if state == "effective" and action["receipt"] not in [l["receipt"] for l in there]:
            yield f"{name} is in force and was never found"
        if action["contradicted"] and action["id"] not in asked:
            yield f"{name} is contradicted and nobody was asked"
        if action["authority"] == "user" and action["id"] not in stated:
            yield f"{name} was settled in the user's name"
        own = [booked[operation] for operation in operations if operation in booked]
        kept = [b for b in own if not b["cancelled_by"] and not b["forgotten"]]
        fits = {
            "effective": bool(own),
            "accepted": bool(own) and action["authority"] == "user",
            "blocked": not kept,
            "authorized": paused and not own,
        }
        ended = ("denied", "expired", "superseded", "withdrawn", "cancelled", "abandoned")
        good = fits.get(state, state in ended and not own)
        if not good and (begin.get("keeps", True) or action["id"] not in asked):
            yield f"{name} is {state}, and the bookings are {[b['number'] for b in own]}"
