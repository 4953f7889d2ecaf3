/** Error messages of the server: one sentence for people, and the position of the error. */

/** Names of .NET classes before a message. */
const className = /^(?:[A-Za-z_]\w*\.)+[\w+]*Exception: /;
const scriptFailure = /^(?:At \d+:\d+ )?Script failed for document ID '([^']*)'\. (.*)$/s;
const compileFailure = /^Failed to compile index '[^']*': (.*?) \(<anonymous>:\d+:\d+\)/s;

/** Returns a message without class names, position, and the text of the query. */
export function sentenceOf(message: string): string {
  const text = message
    .replace(className, "")
    .replace(/\nQuery: [\s\S]*$/, "")
    .replace(/\nAt Line : \d+, Column : \d+/, "")
    .replace(/^\d+:\d+ /, "")
    .replace(/^Failed to execute .*? Exception: /s, "");
  const script = scriptFailure.exec(text);
  if (script !== null) return `${reasonIn(script[2] ?? "")} (${script[1]})`;
  return (compileFailure.exec(text)?.[1] ?? text).split("\n")[0] as string;
}

/** Returns the message of a value that a script has thrown, as JSON. */
function reasonIn(thrown: string): string {
  try {
    return (JSON.parse(thrown) as { message?: string }).message ?? thrown;
  } catch {
    return thrown;
  }
}

/** The start of the script in a query, and the length of the server's text before it by which columns are shifted. */
const scripts = [
  { complaint: "Update clause", start: /\bupdate\s*\{/i, shift: 16 },
  { complaint: "Select clause", start: /\bselect\s*\{/i, shift: 7 },
];

/** Returns the range in `text` that an error message of the server is about, or null. */
export function rangeOf(message: string, text: string): { from: number; to: number } | null {
  const offset = offsetOf(message.replace(className, ""), text);
  if (offset === null) return null;
  const from = Math.max(0, Math.min(text.length, offset));
  const word = /^(?:[\w$]+|\S)/.exec(text.slice(from))?.[0].length ?? 0;
  return word === 0 ? { from: Math.max(0, from - 1), to: from } : { from, to: from + word };
}

function offsetOf(message: string, text: string): number | null {
  // A line feed counts as the first column of the following line.
  const inQuery = /^(\d+):(\d+) /.exec(message);
  if (inQuery !== null) return offsetAt(text, inQuery, Number(inQuery[1]) > 1 ? 2 : 1);
  const compiled = /\(<anonymous>:(\d+):(\d+)\)/.exec(message);
  if (compiled !== null) return offsetAt(text, compiled, 1);
  const thrown = /^At (\d+):(\d+) /.exec(message);
  const syntax = /\nAt Line : (\d+), Column : (\d+)/.exec(message);
  const script =
    thrown === null ? scripts.find(({ complaint }) => message.startsWith(complaint)) : scripts[0];
  const start = script?.start.exec(text);
  if (script === undefined || start == null) return null;
  const body = start.index + start[0].length;
  if (thrown !== null) return body + offsetAt(text.slice(body), thrown, 1);
  if (syntax === null) return start.index;
  const shift = syntax[1] === "1" ? script.shift : 0;
  return body - 1 + offsetAt(text.slice(body - 1), syntax, shift);
}

/** Returns the offset of a line, from 1, and a column, of which the first is `first`. */
function offsetAt(text: string, [, line, column]: readonly string[], first: number): number {
  const before = text.split("\n").slice(0, Number(line) - 1);
  return before.reduce((sum, one) => sum + one.length + 1, 0) + Number(column) - first;
}
