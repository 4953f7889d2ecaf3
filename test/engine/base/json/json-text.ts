/** JSON text as fast-check draws it: odd spacing, escapes, numbers and repeated keys included. */
import fc from "fast-check";

const space = fc.constantFrom("", "", "", " ", "\n", "\t \r\n");
const character = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom("a", "b", "c", "@", "~", " ", "0") },
  {
    weight: 2,
    arbitrary: fc.constantFrom("\\n", '\\"', "\\\\", "\\/", "\\b", "\\u0041", "\\u001f", "\\u001F"),
  },
  {
    weight: 2,
    arbitrary: fc.constantFrom(
      "é",
      "日",
      "😀",
      "\u007f",
      "\u2028",
      "\\ud83d\\ude00",
      "\\ud800",
      "\\uDC00",
    ),
  },
);
const stringText = fc.array(character, { maxLength: 6 }).map((parts) => `"${parts.join("")}"`);
const keyText = fc.oneof(
  fc.constantFrom('"a"', '"b"', '"c"', '"\\u0061"', '""', '"__proto__"', '"@metadata"'),
  stringText,
);
const numberText = fc.oneof(
  fc.integer().map(String),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => JSON.stringify(value)),
  fc.constantFrom(
    "-0",
    "-0.0",
    "1.50",
    "1E5",
    "1e+5",
    "0e1",
    "-0e0",
    "1e-400",
    "9".repeat(30),
    "1e400",
  ),
);
const scalar = fc.oneof(numberText, stringText, fc.constantFrom("true", "false", "null"));

function spaced(open: string, parts: readonly string[], close: string, gap: string): string {
  return `${gap}${open}${gap}${parts.join(`${gap},${gap}`)}${gap}${close}${gap}`;
}

const { value } = fc.letrec<{ value: string }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    scalar,
    fc
      .tuple(fc.array(tie("value"), { maxLength: 4 }), space)
      .map(([items, gap]) => spaced("[", items, "]", gap)),
    members(tie("value"), 5),
  ),
}));

function members(of: fc.Arbitrary<string>, maxLength: number): fc.Arbitrary<string> {
  return fc.tuple(fc.array(fc.tuple(keyText, of), { maxLength }), space).map(([pairs, gap]) =>
    spaced(
      "{",
      pairs.map(([key, item]) => `${key}${gap}:${gap}${item}`),
      "}",
      gap,
    ),
  );
}

/** Text of any JSON value; some of its numbers are out of range. */
export const valueText: fc.Arbitrary<string> = value;
/** Text of a document. */
export const documentText: fc.Arbitrary<string> = members(value, 6);
