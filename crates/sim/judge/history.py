"""A history, and the list of rules that the judge holds it to."""


class History:
    """One history, sorted into what happened and what was on record at the end."""

    def __init__(self):
        self.lines = []
        self.rows = {}

    def add(self, line):
        if line["t"] == "row":
            self.rows.setdefault(line["noun"], []).append(line)
        else:
            self.lines.append(line)

    def said(self, *kinds):
        return [line for line in self.lines if line["t"] in kinds]

    def all(self, noun):
        return self.rows.get(noun, [])


RULES = []


def rule(function):
    """Registers a rule: a generator of texts, one for each breach."""
    RULES.append(function)
    return function
