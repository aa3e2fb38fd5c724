import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";

const css = readFileSync("src/style/theme.css", "utf8");

/** The colour tokens of one rule, by name. */
function tokens(rule: string): Map<string, string> {
  const start = css.indexOf(rule);
  const body = css.slice(start, css.indexOf("}", start));
  return new Map(
    [...body.matchAll(/--([a-z0-9-]+): (#[0-9a-f]{6})/g)].map((m) => [m[1] ?? "", m[2] ?? ""]),
  );
}

function light(colour: string): number {
  const [r = 0, g = 0, b = 0] = [1, 3, 5].map((at) => {
    const part = parseInt(colour.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrast(a: string, b: string): number {
  const [high = 0, low = 0] = [light(a), light(b)].sort((x, y) => y - x);
  return (high + 0.05) / (low + 0.05);
}

/** Each text colour with every surface it stands on. */
const PAIRS: [string, string[], number][] = [
  ["text", ["bg", "card", "sunken", "accent-tint"], 7],
  ["text-2", ["bg", "card", "sunken"], 4.5],
  ["quiet", ["bg", "card", "sunken"], 4.5],
  ["accent", ["bg", "card"], 4.5],
  ["on-accent", ["accent"], 4.5],
  ["needs", ["needs-tint", "bg", "card", "sunken"], 4.5],
  ["force", ["force-tint"], 4.5],
  ["bad", ["bad-tint", "bg", "card"], 4.5],
  ["unknown", ["unknown-tint", "bg"], 4.5],
  ["border", ["bg", "card", "sunken"], 3],
];

test("every text is readable on each of its surfaces, in both themes", () => {
  for (const rule of [":root {", ':root:not([data-look="light"]) {', ':root[data-look="dark"] {']) {
    const theme = tokens(rule);
    for (const [text, surfaces, least] of PAIRS) {
      for (const surface of surfaces) {
        const ratio = contrast(theme.get(text) ?? "", theme.get(surface) ?? "");
        assert.deepEqual([rule, text, surface, ratio >= least], [rule, text, surface, true]);
      }
    }
  }
});

test("the dark theme is the same whether the system or the person chose it", () => {
  assert.deepEqual(tokens(':root:not([data-look="light"]) {'), tokens(':root[data-look="dark"] {'));
});
