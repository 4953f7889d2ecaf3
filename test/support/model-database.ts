/**
 * A model of the database: maps in memory. It applies the same operations, and describes as text
 * the expected contents of the database.
 */

import { EngineError } from "../../engine/base/errors.ts";
import { compileBytePatch } from "../../engine/patching/byte-patch.ts";
import { patchDocument } from "../../engine/patching/patch.ts";
import { scriptCache } from "../../engine/scripting/script-cache.ts";
import { bodyTextOf, idOf } from "../../engine/state/documents/document-record.ts";
import type { Transaction } from "../../engine/state/store/transaction.ts";
import { deleteAttachment, putAttachment } from "../../engine/writes/attachments.ts";
import { deleteCompareExchange, putCompareExchange } from "../../engine/writes/compare-exchange.ts";
import { deleteCounter, incrementCounter } from "../../engine/writes/counters.ts";
import { deleteDocument, nextIdentity, putParsed } from "../../engine/writes/documents.ts";
import { appendToSeries, deleteFromSeries } from "../../engine/writes/time-series.ts";

/** Concurrency check: expects that it does not exist, is as last seen, or (`wrong`) a value that it never has. */
type Expected = "any" | "absent" | "present" | "wrong";

export type Operation =
  | { kind: "put"; id: string; body: string; expected?: Expected }
  | { kind: "delete"; id: string; expected?: Expected }
  | { kind: "increment"; id: string; name: string; by: number }
  | { kind: "deleteCounter"; id: string; name: string }
  | { kind: "attach"; id: string; name: string; content: string }
  | { kind: "detach"; id: string; name: string }
  | { kind: "append"; id: string; name: string; from: number; count: number; value: number }
  | { kind: "deleteRange"; id: string; name: string; from: number; to: number }
  | { kind: "identity"; name: string }
  | { kind: "exchange"; key: string; text: string | null; expected: Expected }
  | { kind: "value"; key: string; value: unknown }
  | { kind: "patchAll"; n: number }
  | { kind: "fail" };

export type Batch = readonly Operation[];

/** A batch that must be rejected: the database throws an EngineError for it. */
export class Refused extends Error {
  override readonly name = "Refused";
}

/** Matches bodies that `patchAll` changes. */
const patchable = /^\{"n":\d+/;

interface ModelDocument {
  id: string;
  body: string;
  counters: Map<string, { name: string; value: number }>;
  attachments: Map<string, { name: string; content: string }>;
  /** Values by time. */
  series: Map<string, { name: string; values: Map<number, number> }>;
}

export class ModelDatabase {
  readonly documents: Map<string, ModelDocument>;
  readonly identities: Map<string, number>;
  readonly exchange: Map<string, { text: string; index: number }>;
  readonly values: Map<string, unknown>;

  constructor(before?: ModelDatabase) {
    this.documents = structuredClone(before?.documents ?? new Map());
    this.identities = new Map(before?.identities);
    this.exchange = structuredClone(before?.exchange ?? new Map());
    this.values = new Map(before?.values);
  }

  /**
   * The state after the batch; this one is not changed. @throws Refused if the batch must be
   * rejected
   */
  after(batch: Batch): ModelDatabase {
    const next = new ModelDatabase(this);
    for (const operation of batch) next.#apply(operation);
    return next;
  }

  /** The same text as `describeDatabase`. */
  text(): string {
    const documents = [...this.documents].sort(byKey).map(([, document]) => ({
      id: document.id,
      body: document.body,
      counters: [...document.counters].sort(byKey).map(([, { name, value }]) => [name, `${value}`]),
      attachments: [...document.attachments]
        .sort(byKey)
        .map(([, { name, content }]) => [name, content]),
      series: [...document.series]
        .sort(byKey)
        .map(([, { name, values }]) => [name, [...values].sort(([a], [b]) => a - b)]),
    }));
    return describe({
      documents,
      identities: [...this.identities].sort(byKey),
      exchange: [...this.exchange].sort(byKey).map(([key, { text }]) => [key, text]),
      values: [...this.values].sort(byKey),
    });
  }

  #apply(operation: Operation): void {
    switch (operation.kind) {
      case "put":
        this.#put(operation);
        return;
      case "delete": {
        const key = operation.id.toLowerCase();
        // A deletion cannot expect absence.
        if (operation.expected === "absent") throw new Refused("absent");
        check(operation.expected, this.documents.has(key));
        this.documents.delete(key);
        return;
      }
      case "increment": {
        const { counters } = this.#need(operation.id);
        const key = operation.name.toLowerCase();
        const counter = counters.get(key) ?? { name: operation.name, value: 0 };
        counters.set(key, { name: counter.name, value: counter.value + operation.by });
        return;
      }
      case "deleteCounter":
        this.#need(operation.id).counters.delete(operation.name.toLowerCase());
        return;
      case "attach": {
        const { name, content } = operation;
        this.#need(operation.id).attachments.set(name.toLowerCase(), { name, content });
        return;
      }
      case "detach":
        this.documents
          .get(operation.id.toLowerCase())
          ?.attachments.delete(operation.name.toLowerCase());
        return;
      case "append": {
        const { series } = this.#need(operation.id);
        const key = operation.name.toLowerCase();
        const { name, values } = series.get(key) ?? { name: operation.name, values: new Map() };
        for (let i = 0; i < operation.count; i++) values.set(operation.from + i, operation.value);
        series.set(key, { name, values });
        return;
      }
      case "deleteRange": {
        const { series } = this.#need(operation.id);
        const values = series.get(operation.name.toLowerCase())?.values;
        for (const time of [...(values?.keys() ?? [])]) {
          if (time >= operation.from && time <= operation.to) values?.delete(time);
        }
        if (values?.size === 0) series.delete(operation.name.toLowerCase());
        return;
      }
      case "identity":
        this.#nextIdentity(operation.name);
        return;
      case "exchange":
        this.#exchange(operation);
        return;
      case "value":
        if (operation.value === undefined) this.values.delete(operation.key);
        else this.values.set(operation.key, operation.value);
        return;
      case "patchAll":
        for (const document of this.documents.values()) {
          document.body = document.body.replace(patchable, `{"n":${operation.n}`);
        }
        return;
      case "fail":
        throw new Refused("asked for");
    }
  }

  #put({ id, body, expected }: Operation & { kind: "put" }): void {
    const name = id.endsWith("|") ? `${id.slice(0, -1)}/${this.#nextIdentity(id)}` : id;
    const key = name.toLowerCase();
    const before = this.documents.get(key);
    check(expected, before !== undefined);
    this.documents.set(key, {
      id: name,
      body,
      counters: before?.counters ?? new Map(),
      attachments: before?.attachments ?? new Map(),
      series: before?.series ?? new Map(),
    });
  }

  #exchange({ key, text, expected }: Operation & { kind: "exchange" }): void {
    const before = this.exchange.get(key.toLowerCase());
    const isRight =
      expected === "any" || (expected === "absent" ? before === undefined : expected !== "wrong");
    if (!isRight || (expected === "present" && before === undefined)) return;
    if (text === null && before === undefined) return;
    const index = Number(this.values.get("compare-exchange-index") ?? 0) + 1;
    this.values.set("compare-exchange-index", index);
    if (text === null) this.exchange.delete(key.toLowerCase());
    else this.exchange.set(key.toLowerCase(), { text, index });
  }

  #nextIdentity(name: string): number {
    const key = name.toLowerCase().endsWith("|") ? name.toLowerCase() : `${name.toLowerCase()}|`;
    const next = (this.identities.get(key) ?? 0) + 1;
    this.identities.set(key, next);
    return next;
  }

  #need(id: string): ModelDocument {
    const document = this.documents.get(id.toLowerCase());
    if (document === undefined) throw new Refused("no such document");
    return document;
  }
}

function check(expected: Expected | undefined, exists: boolean): void {
  if (expected === "wrong") throw new Refused("wrong");
  if (expected === "absent" && exists) throw new Refused("exists");
  if (expected === "present" && !exists) throw new Refused("does not exist");
}

function byKey([one]: readonly [string, unknown], [other]: readonly [string, unknown]): number {
  return one < other ? -1 : one > other ? 1 : 0;
}

/** The common text form of model and database. */
export function describe(state: {
  documents: {
    id: string;
    body: string;
    counters: unknown[];
    attachments: unknown[];
    series: unknown[];
  }[];
  identities: unknown[];
  exchange: unknown[];
  values: unknown[];
}): string {
  return JSON.stringify(state);
}

/** Hash and size by content, of attachments stored before the transaction begins. */
type StoredContents = ReadonlyMap<string, { hash: string; size: number }>;

/** Applies the operation to the database. @throws EngineError if it is rejected */
export function applyTo(
  transaction: Transaction,
  operation: Operation,
  contents: StoredContents,
): void {
  switch (operation.kind) {
    case "put": {
      const { parser } = transaction.state;
      const bytes = Buffer.from(operation.body);
      const expected = vectorOf(transaction, operation.id, operation.expected);
      putParsed(transaction, operation.id, parser.parse(bytes, 0, bytes.length), expected);
      return;
    }
    case "delete":
      deleteDocument(
        transaction,
        operation.id,
        vectorOf(transaction, operation.id, operation.expected),
      );
      return;
    case "increment":
      incrementCounter(transaction, operation.id, operation.name, BigInt(operation.by));
      return;
    case "deleteCounter":
      deleteCounter(transaction, operation.id, operation.name);
      return;
    case "attach": {
      const content = contents.get(operation.content);
      if (content === undefined) throw new Error("the content was stored before");
      const attachment = {
        name: operation.name,
        contentType: "text/plain",
        hash: content.hash,
        size: content.size,
      };
      putAttachment(transaction, operation.id, attachment);
      return;
    }
    case "detach":
      deleteAttachment(transaction, operation.id, operation.name);
      return;
    case "append": {
      const { id, name, from, count, value } = operation;
      const entries = Array.from({ length: count }, (_, i) => ({
        time: from + i,
        values: [value],
        tag: null,
      }));
      appendToSeries(transaction, id, name, entries);
      return;
    }
    case "deleteRange":
      deleteFromSeries(transaction, operation.id, operation.name, operation.from, operation.to);
      return;
    case "identity":
      nextIdentity(transaction, operation.name);
      return;
    case "exchange": {
      const { key, text, expected } = operation;
      const { compareExchange } = transaction.keyspaces;
      const current = transaction.entry(compareExchange, key.toLowerCase())?.index ?? 0;
      if (expected === "present" && current === 0) return;
      const index = expected === "wrong" ? 999_999 : expected === "absent" ? 0 : current;
      if (text === null) deleteCompareExchange(transaction, key, index);
      else putCompareExchange(transaction, key, index, text);
      return;
    }
    case "value":
      transaction.putEntry(transaction.keyspaces.values, operation.key, operation.value);
      return;
    case "patchAll":
      patchAll(transaction, operation.n);
      return;
    case "fail":
      throw new EngineError("invalid-operation", "asked for");
  }
}

/**
 * Sets `n` of all documents whose body begins with that field: on their bytes, as patches by query do, or by the
 * script.
 */
function patchAll(transaction: Transaction, n: number): void {
  const script = "this.n = $n";
  const values = JSON.stringify({ n });
  const patch = compileBytePatch(scriptCache.get(script, { kind: "patch" }), values);
  if (patch === null) throw new Error("the script is an assignment");
  const all = transaction.withIdPrefix("");
  all.sort((one, other) => transaction.etagOf(one) - transaction.etagOf(other));
  const isOwn = (document: number): boolean => transaction.documents.newestOf(document) >= 0;
  // Documents written in this transaction can only be patched by the script.
  const own = all.filter(isOwn);
  const batch = Uint32Array.from(all.filter((document) => !isOwn(document)));
  const range = { batch, at: 0, end: batch.length, etagMax: Infinity, count: 0 };
  for (;;) {
    patch.run(transaction, range);
    const document = range.batch[range.at++] ?? own.pop();
    if (document === undefined) return;
    const { bytes, start } = transaction.recordOf(document);
    if (!patchable.test(bodyTextOf(bytes, start))) continue;
    patchDocument(transaction, { id: idOf(bytes, start), patch: { script, values } });
  }
}

function vectorOf(
  transaction: Transaction,
  id: string,
  expected: Expected | undefined,
): string | undefined {
  if (expected === undefined || expected === "any") return undefined;
  if (expected === "absent") return "";
  if (expected === "wrong") return "A:999999-wrong";
  const document = transaction.find(id);
  if (document < 0) return "A:1-absent";
  return transaction.changeVectorAt(transaction.etagOf(document));
}
