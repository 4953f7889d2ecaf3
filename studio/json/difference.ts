/**
 * Line-based difference of two texts: unchanged, removed and added lines, with the words that differ between a
 * removed line and its replacement.
 *
 * Invariants:
 * - The lines "same" and "removed" are the first text, "same" and "added" are the second text, in order.
 * - JSON is compared as text: numbers keep their digits.
 * - The cost is bounded: if the texts have too little in common, everything between their common prefix and suffix is
 *   one change.
 */
import { diffArrays, diffWordsWithSpace } from "diff";
import { type JsonMembers, type JsonNode, parseSource, printSource } from "./json-source.ts";

export interface Part {
  readonly text: string;
  /** True if the part is absent from the other line. */
  readonly isChanged: boolean;
}

export interface DifferenceLine {
  readonly kind: "same" | "removed" | "added";
  /** Line numbers in the first and second text, from 1; 0 if the line is absent. */
  readonly left: number;
  readonly right: number;
  readonly parts: readonly Part[];
}

/** Limits of the search for common lines. */
const editsMax = 5000;
const searchMsMax = 150;
/** Limits of the word comparison within lines. */
const wordCharactersMax = 1000;
const wordLinesMax = 1000;
/** Maximum number of shown characters of a common part of a long line. */
const shownCharacters = 400;

/** Formats both texts for comparison: JSON with one value per line; key order is significant only with `keepsOrder`. */
export function asLines(before: string, after: string, keepsOrder: boolean): [string, string] {
  let left: JsonNode;
  let right: JsonNode;
  try {
    left = parseSource(before);
    right = parseSource(after);
  } catch {
    return [before, after];
  }
  return [printSource(left), printSource(keepsOrder ? right : orderedAs(left, right))];
}

/** Returns `node` with its members ordered like those of `model`, followed by the others. */
function orderedAs(model: JsonNode | undefined, node: JsonNode): JsonNode {
  if (Array.isArray(node)) {
    const models = Array.isArray(model) ? model : [];
    return node.map((one, n) => orderedAs(models[n], one));
  }
  if (!(node instanceof Map) || !(model instanceof Map)) return node;
  const names = new Set([...model.keys()].filter((name) => node.has(name)));
  // A new member stays after its predecessor.
  const ordered: string[] = [...names];
  let previous = -1;
  for (const name of node.keys()) {
    if (names.has(name)) previous = ordered.indexOf(name);
    else ordered.splice(++previous, 0, name);
  }
  const result: JsonMembers = new Map();
  for (const name of ordered)
    result.set(name, orderedAs(model.get(name), node.get(name) as JsonNode));
  return result;
}

export function difference(before: string, after: string): DifferenceLine[] {
  const left = before.split("\n");
  const right = after.split("\n");
  const found: DifferenceLine[] = [];
  let l = 0;
  let r = 0;
  const changed = (removed: readonly string[], added: readonly string[]) => {
    const isSmall = removed.length <= wordLinesMax;
    const pairs = isSmall ? removed.map((line, n) => partsOf(line, added[n])) : [];
    removed.forEach((line, n) => {
      found.push({
        kind: "removed",
        left: ++l,
        right: 0,
        parts: pairs[n]?.[0] ?? [whole(line)],
      });
    });
    added.forEach((line, n) => {
      found.push({ kind: "added", left: 0, right: ++r, parts: pairs[n]?.[1] ?? [whole(line)] });
    });
  };
  const same = (lines: readonly string[]) => {
    for (const line of lines)
      found.push({ kind: "same", left: ++l, right: ++r, parts: [whole(cut(line))] });
  };
  const head = commonHead(left, right);
  const tail = commonTail(left, right, head);
  same(left.slice(0, head));
  const [oldMiddle, newMiddle] = [
    left.slice(head, left.length - tail),
    right.slice(head, right.length - tail),
  ];
  const changes = diffArrays(oldMiddle, newMiddle, {
    maxEditLength: editsMax,
    timeout: searchMsMax,
  });
  if (changes === undefined) changed(oldMiddle, newMiddle);
  else {
    let removed: readonly string[] = [];
    for (const change of changes) {
      if (change.removed) {
        removed = change.value;
        continue;
      }
      if (change.added) changed(removed, change.value);
      else {
        changed(removed, []);
        same(change.value);
      }
      removed = [];
    }
    changed(removed, []);
  }
  same(left.slice(left.length - tail));
  return found;
}

function commonHead(left: readonly string[], right: readonly string[]): number {
  let head = 0;
  const most = Math.min(left.length, right.length);
  while (head < most && left[head] === right[head]) head++;
  return head;
}

function commonTail(left: readonly string[], right: readonly string[], head: number): number {
  let tail = 0;
  const most = Math.min(left.length, right.length) - head;
  while (tail < most && left.at(-1 - tail) === right.at(-1 - tail)) tail++;
  return tail;
}

function whole(text: string): Part {
  return { text: cut(text), isChanged: false };
}

/** Returns the parts of a removed line and of its replacement. */
function partsOf(removed: string, added: string | undefined): [Part[], Part[]] {
  if (added === undefined) return [[whole(removed)], []];
  if (removed.length + added.length > wordCharactersMax) return partsOfLong(removed, added);
  const changes = diffWordsWithSpace(removed, added);
  const common = changes.reduce(
    (sum, { value, added: isNew, removed: isGone }) =>
      sum + (isNew || isGone ? 0 : value.trim().length),
    0,
  );
  // Word marks are omitted if the lines have little in common.
  if (common * 4 < Math.min(removed.trim().length, added.trim().length))
    return [[whole(removed)], [whole(added)]];
  const side = (isOther: "added" | "removed", isOwn: "added" | "removed") =>
    changes
      .filter((change) => !change[isOther])
      .map((change) => ({ text: change.value, isChanged: change[isOwn] }));
  return [side("added", "removed"), side("removed", "added")];
}

/** Marks the differing middle of long lines. */
function partsOfLong(removed: string, added: string): [Part[], Part[]] {
  const most = Math.min(removed.length, added.length);
  let head = 0;
  while (head < most && removed.charCodeAt(head) === added.charCodeAt(head)) head++;
  let tail = 0;
  while (
    tail < most - head &&
    removed.charCodeAt(removed.length - 1 - tail) === added.charCodeAt(added.length - 1 - tail)
  )
    tail++;
  const start = removed.slice(0, head);
  const end = tail === 0 ? "" : removed.slice(-tail);
  const side = (line: string): Part[] => [
    {
      text: start.length > shownCharacters ? `…${start.slice(-shownCharacters)}` : start,
      isChanged: false,
    },
    { text: cut(line.slice(head, line.length - tail)), isChanged: true },
    whole(end),
  ];
  return [side(removed), side(added)];
}

function cut(text: string): string {
  return text.length > 10 * shownCharacters ? `${text.slice(0, shownCharacters)}…` : text;
}

/** A run of lines; unchanged lines far from a change are folded. */
interface Run {
  readonly isFolded: boolean;
  /** Index of the first line in the difference. */
  readonly from: number;
  readonly to: number;
}

const contextLines = 3;

export function foldedRuns(lines: readonly DifferenceLine[]): Run[] {
  const runs: Run[] = [];
  let from = 0;
  const add = (isFolded: boolean, to: number) => {
    if (to > from) runs.push({ isFolded, from, to });
    from = to;
  };
  for (let at = 0; at < lines.length; ) {
    let end = at;
    while (end < lines.length && lines[end]?.kind === "same") end++;
    const first = at === 0 ? 0 : at + contextLines;
    const last = end === lines.length ? end : end - contextLines;
    // A placeholder takes one line, so folding a single line saves nothing.
    if (last - first > 1) {
      add(false, first);
      add(true, last);
    }
    at = end + 1;
  }
  add(false, lines.length);
  return runs;
}
