/**
 * Compares a history with the final contents of a cluster, and with reads during the run. Pure:
 * each check returns its findings as text.
 *
 * Registers (compare-exchange values, documents with expected change vectors) are checked by
 * Porcupine (`linearizable.ts`).
 */
import type { History, Outcome } from "./history.ts";

/** The final contents of a node. */
export interface Contents {
  readonly documents: ReadonlyMap<string, Readonly<Record<string, unknown>>>;
  /** By "document/name". */
  readonly counters: ReadonlyMap<string, number>;
  /** SHA-256 in hexadecimal of contents, by "document/name". */
  readonly attachments: ReadonlyMap<string, string>;
  /** Text of values, by key. */
  readonly values: ReadonlyMap<string, string>;
}

/** Returns a line for each violation; empty if there are no violations. */
export function checkHistory(history: History, contents: Contents): string[] {
  return [
    ...checkPuts(history, contents),
    ...checkAppends(history, contents),
    ...checkCounts(history, contents),
    ...checkAttachments(history, contents),
    ...checkDeletions(history, contents),
    ...checkEvents(history, contents),
    ...checkReads(history),
  ];
}

/** The last acknowledged number is present, or one with unknown outcome. */
function checkPuts(history: History, { documents }: Contents): string[] {
  const wrong: string[] = [];
  for (const [id, events] of groupBy(history.of("put"), ({ id }) => id)) {
    const acknowledged = events.filter(({ outcome }) => outcome === "ok").map(({ n }) => n);
    const last = Math.max(0, ...acknowledged);
    const allowed = new Set(
      events.filter(({ outcome }) => outcome === "unknown").map(({ n }) => n),
    ).add(last);
    const now = Number(documents.get(id)?.["n"] ?? 0);
    if (!allowed.has(now)) {
      wrong.push(
        `${id} has ${now}, not ${[...allowed]}: acknowledged puts are lost, or refused ones there`,
      );
    }
  }
  return wrong;
}

/**
 * Each acknowledged item is present once, in the order of one sender's acknowledgments; failed ones
 * are absent.
 */
function checkAppends(history: History, { documents }: Contents): string[] {
  const wrong: string[] = [];
  const known = new Map<string, Set<string>>();
  for (const { ids, item, outcome, isRepeated } of history.of("append")) {
    for (const id of ids) {
      known.set(id, (known.get(id) ?? new Set()).add(item));
      const items = (documents.get(id)?.["items"] ?? []) as string[];
      const count = items.filter((one) => one === item).length;
      if (outcome === "ok" && count === 0) wrong.push(`${id} has lost ${item}`);
      if (outcome === "failed" && count > 0) wrong.push(`${id} has ${item}, which was refused`);
      if (count > 1 && !isRepeated) wrong.push(`${id} has ${item} ${count} times`);
    }
    const counts = new Set(
      ids.map((id) => ((documents.get(id)?.["items"] ?? []) as string[]).includes(item)),
    );
    // A query patches each document separately; a batch is one transaction.
    if (counts.size > 1 && ids.length === 2) wrong.push(`${ids} have half of ${item}`);
  }
  for (const [id, items] of known) {
    const strangers = ((documents.get(id)?.["items"] ?? []) as string[]).filter(
      (one) => !items.has(one),
    );
    if (strangers.length > 0) wrong.push(`${id} has ${strangers}, which nobody added`);
  }
  return wrong;
}

function checkCounts(history: History, { counters }: Contents): string[] {
  const wrong: string[] = [];
  for (const [id, events] of groupBy(history.of("count"), ({ id }) => id)) {
    const sum = (outcome: Outcome) =>
      events.reduce((total, one) => total + (one.outcome === outcome ? one.delta : 0), 0);
    // After an unknown outcome, the worker uses another counter, so each counter has at most one.
    const unknown = events.filter(({ outcome }) => outcome === "unknown").map(({ delta }) => delta);
    const allowed = new Set([0]);
    for (const delta of unknown) for (const before of [...allowed]) allowed.add(before + delta);
    const extra = (counters.get(id) ?? 0) - sum("ok");
    if (!allowed.has(extra)) {
      wrong.push(`counter ${id} is ${extra} off ${sum("ok")}; without an answer: ${unknown}`);
    }
  }
  return wrong;
}

function checkAttachments(history: History, { attachments }: Contents): string[] {
  const wrong: string[] = [];
  for (const { id, name, hash, outcome } of history.of("attach")) {
    const now = attachments.get(`${id}/${name}`);
    if (outcome === "ok" && now === undefined) wrong.push(`${id} has lost the attachment ${name}`);
    if (outcome === "failed" && now !== undefined)
      wrong.push(`${id} has ${name}, which was refused`);
    if (now !== undefined && now !== hash) wrong.push(`${id} has other bytes as ${name}`);
  }
  return wrong;
}

function checkDeletions(history: History, { documents }: Contents): string[] {
  return history
    .of("delete")
    .filter(({ id, outcome }) => {
      const isThere = documents.has(id);
      return (outcome === "ok" && isThere) || (outcome === "failed" && !isThere);
    })
    .map(({ id, outcome }) => `${id} is ${outcome === "ok" ? "still there" : "gone"}`);
}

/** Each document of the subscription was delivered, and no other. */
function checkEvents(history: History, { documents }: Contents): string[] {
  const wrong: string[] = [];
  const delivered = new Set(history.of("delivered").map(({ id }) => id));
  const put = new Set<string>();
  for (const { id, outcome } of history.of("event")) {
    put.add(id);
    if (outcome === "ok" && !documents.has(id)) wrong.push(`${id} is lost`);
    if (documents.has(id) && !delivered.has(id)) wrong.push(`${id} was never delivered`);
    if (outcome === "failed" && delivered.has(id)) wrong.push(`${id} was refused and delivered`);
  }
  for (const id of delivered) if (!put.has(id)) wrong.push(`${id} was delivered and never put`);
  return wrong;
}

/** Reads of a session never go back, and never return values that were not written. */
function checkReads(history: History): string[] {
  const wrong: string[] = [];
  const puts = groupBy(history.of("put"), ({ id }) => id);
  const reads = groupBy(history.of("read"), ({ session, id }) => `${session} ${id}`);
  for (const [name, events] of reads) {
    const ordered = events.toSorted((a, b) => a.call - b.call);
    let before = 0;
    for (const { id, n, call, isAtLeader } of ordered) {
      const own = puts.get(id) ?? [];
      if (n < before) wrong.push(`session ${name} read ${n} after ${before}`);
      before = Math.max(before, n);
      const written = own.find((put) => put.n === n);
      if (n > 0 && (written === undefined || written.outcome === "failed" || written.call > call)) {
        wrong.push(`session ${name} read ${n}, which was not written`);
      }
      if (!isAtLeader) continue;
      const acknowledged = own.filter((put) => put.outcome === "ok" && put.return <= call);
      const last = Math.max(0, ...acknowledged.map((put) => put.n));
      if (n < last)
        wrong.push(`session ${name} wrote ${last} at the leader, and then read ${n} there`);
    }
  }
  return wrong;
}

/** Returns the differences between the contents of two nodes. */
export function checkSame(contents: ReadonlyMap<string, Contents>): string[] {
  const wrong: string[] = [];
  const [first, ...others] = contents;
  if (first === undefined) return wrong;
  const [firstName, expected] = first;
  for (const [name, actual] of others) {
    for (const part of ["documents", "counters", "attachments", "values"] as const) {
      const keys = new Set([...expected[part].keys(), ...actual[part].keys()]);
      const different = [...keys].filter(
        (key) => textOf(expected[part].get(key)) !== textOf(actual[part].get(key)),
      );
      if (different.length === 0) continue;
      const [key = ""] = different;
      wrong.push(
        `${different.length} of ${keys.size} ${part} differ, e.g. ${key}: ${firstName} has ${textOf(expected[part].get(key))}, ${name} has ${textOf(actual[part].get(key))}`,
      );
    }
  }
  return wrong;
}

const textOf = (value: unknown) => JSON.stringify(value) ?? "nothing";

function groupBy<Item>(items: readonly Item[], keyOf: (item: Item) => string): Map<string, Item[]> {
  const groups = new Map<string, Item[]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [item]);
    else group.push(item);
  }
  return groups;
}
