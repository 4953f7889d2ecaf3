/**
 * The script host for patches: every access uses the script's transaction. Records the effects of the script, for the
 * debug and test modes.
 */

import { EngineError } from "../base/errors.ts";
import { foreverText, neverText } from "../base/timestamp.ts";
import type {
  ScriptHost,
  ScriptTimeSeries,
  ScriptTimeSeriesEntry,
  ScriptTimeSeriesStats,
} from "../scripting/script-host.ts";
import { scriptDocumentOf } from "../scripting/values/record-document.ts";
import type { ScriptDocument } from "../scripting/values/script-document.ts";
import type { ShapeHint } from "../scripting/values/shape-hint.ts";
import { doubleText } from "../scripting/values/value-text.ts";
import { compareExchangeKey } from "../state/keyspaces/compare-exchange.ts";
import { clampInt64 } from "../state/keyspaces/counters.ts";
import { pageOf } from "../state/keyspaces/time-series/series-page.ts";
import { isRollup } from "../state/keyspaces/time-series/series-policies.ts";
import {
  segmentPrefix,
  seriesKey,
  seriesTimeText,
  summaryOf,
} from "../state/keyspaces/time-series/time-series.ts";
import type { Transaction } from "../state/store/transaction.ts";
import { counterIn, deleteCounter, incrementCounter, requireDocument } from "../writes/counters.ts";
import { deleteDocument, putParsed } from "../writes/documents.ts";
import { segmentsIn } from "../writes/series-source.ts";
import { deleteFromSeries, incrementSeries, SeriesAppends } from "../writes/time-series.ts";

/** The actions of a script, in the shape of the debug replies. */
export class ScriptActions {
  readonly output: string[] = [];
  readonly loads: { Id: string; Exists: boolean }[] = [];
  /** JSON texts of `{"Id":…,"Data":…}`. */
  readonly puts: string[] = [];
  readonly deletes: string[] = [];
  readonly counterReads: { Name: string; Value: string; Exists: boolean }[] = [];
  /** JSON texts, like those of time series: some of their numbers are doubles. */
  readonly counterIncrements: string[] = [];
  readonly counterDeletes: string[] = [];
  readonly seriesReads: string[] = [];
  readonly seriesAppends: string[] = [];
  readonly seriesIncrements: string[] = [];
  readonly seriesDeletes: object[] = [];

  /** The actions as JSON text. */
  get text(): string {
    return `{"LoadDocument":${JSON.stringify(this.loads)},"PutDocument":[${this.puts.join(",")}],"DeleteDocument":${JSON.stringify(this.deletes)},"GetCounter":${JSON.stringify(this.counterReads)},"IncrementCounter":[${this.counterIncrements.join(",")}],"DeleteCounter":${JSON.stringify(this.counterDeletes)},"GetTimeSeries":[${this.seriesReads.join(",")}],"AppendTimeSeries":[${this.seriesAppends.join(",")}],"IncrementTimeSeries":[${this.seriesIncrements.join(",")}],"DeleteTimeSeries":${JSON.stringify(this.seriesDeletes)},"RemoteAttachments":[],"DeleteAttachment":[],"CopyAttachment":[]}`;
  }
}

export class TransactionScriptHost implements ScriptHost {
  readonly readOnly = false;
  #actions: ScriptActions | null = null;
  readonly #transaction: Transaction;
  readonly #random: () => number;
  /** Appended entries that are not stored yet. */
  #appends: SeriesAppends | null = null;

  constructor(transaction: Transaction, random: () => number = Math.random) {
    this.#transaction = transaction;
    this.#random = random;
  }

  /** The script's actions; created with the first one, or on first access. */
  get actions(): ScriptActions {
    this.#actions ??= new ScriptActions();
    return this.#actions;
  }

  /** Stores the entries that the script has appended; to be called when it has ended, too. */
  storeAppends(): void {
    this.#appends?.store();
    this.#appends = null;
  }

  /** Returns the entries of this series that are not stored yet, after those of other series were stored. */
  appendsOf(id: string, name: string): SeriesAppends {
    if (this.#appends?.isOf(id, name) !== true) {
      this.storeAppends();
      this.#appends = new SeriesAppends(this.#transaction, id, name);
    }
    return this.#appends as SeriesAppends; // made above at the latest
  }

  now(): number {
    return Math.floor(this.#transaction.state.nowMicros() / 1000);
  }

  random(): number {
    return this.#random();
  }

  load(id: string, hint?: ShapeHint): ScriptDocument | null {
    const document = this.#transaction.find(id);
    this.actions.loads.push({ Id: id, Exists: document >= 0 });
    if (document < 0) return null;
    const { bytes, start } = this.#transaction.recordOf(document);
    return scriptDocumentOf(this.#transaction.state, bytes, start, hint);
  }

  put(
    id: string | null,
    body: string,
    metadata: string | null,
    changeVector: string | null | undefined,
  ): string {
    if (id?.endsWith("|")) {
      throw new EngineError(
        "not-supported",
        `Document ids cannot end with '|', but was called with ${id}. Identities are only generated for external requests, not calls to PutDocument and such.`,
      );
    }
    this.storeAppends();
    const text = withMetadata(body, metadata);
    const { state } = this.#transaction;
    const bytes = Buffer.from(text);
    const parsed = state.parser.parse(bytes, 0, bytes.length);
    const wanted = id === null || id === "" ? state.newGuid() : id;
    const stored = putParsed(this.#transaction, wanted, parsed, changeVector ?? undefined);
    this.actions.puts.push(`{"Id":${JSON.stringify(stored.id)},"Data":${text}}`);
    return stored.id;
  }

  delete(id: string, changeVector: string | null | undefined): boolean {
    this.storeAppends();
    this.actions.deletes.push(id);
    // RavenDB 7.2.7 also returns true for a document that still has a tombstone.
    return (
      deleteDocument(this.#transaction, id, changeVector ?? undefined) ||
      this.#transaction.wasDeleted(id)
    );
  }

  counter(id: string, name: string): number | null {
    const value = this.#counter(id, name);
    this.actions.counterReads.push({ Name: name, Value: `${value}`, Exists: value !== null });
    return value;
  }

  #counter(id: string, name: string): number | null {
    const counter = counterIn(this.#transaction, id, name);
    return counter === undefined ? null : Number(counter.value);
  }

  counterParts(id: string, name: string): Readonly<Record<string, number>> | null {
    const value = this.#counter(id, name);
    return value === null ? null : { [this.#transaction.state.origin.partKey]: value };
  }

  incrementCounter(id: string, name: string, delta: number): void {
    const old = counterIn(this.#transaction, id, name)?.value ?? null;
    const added = clampInt64(BigInt(Math.trunc(delta)));
    const value = incrementCounter(this.#transaction, id, name, added);
    this.actions.counterIncrements.push(
      `{"Name":${JSON.stringify(name)},"OldValue":${old},"AddedValue":${doubleText(delta)},"NewValue":${value},"Created":${old === null}}`,
    );
  }

  deleteCounter(id: string, name: string): void {
    this.actions.counterDeletes.push(name);
    const transaction = this.#transaction;
    // RavenDB 7.2.7 rewrites the document even if the counter does not exist.
    if (!deleteCounter(transaction, id, name)) transaction.touch(requireDocument(transaction, id));
  }

  timeSeries(id: string, name: string): ScriptTimeSeries {
    return new TransactionTimeSeries(this, this.#transaction, id, name);
  }

  compareExchange(key: string): string | null {
    const { compareExchange } = this.#transaction.keyspaces;
    const stored = this.#transaction.entry(compareExchange, compareExchangeKey(key));
    if (stored === undefined) return null;
    return JSON.stringify((JSON.parse(stored.text) as { Object?: unknown }).Object ?? null);
  }

  /** A patch has no includes. */
  include(): void {}

  includeCompareExchange(): void {}

  output(text: string): void {
    this.actions.output.push(text);
  }
}

/** A series as the transaction sees it. */
class TransactionTimeSeries implements ScriptTimeSeries {
  readonly #host: TransactionScriptHost;
  readonly #transaction: Transaction;
  readonly #actions: ScriptActions;
  readonly #id: string;
  readonly #name: string;

  constructor(host: TransactionScriptHost, transaction: Transaction, id: string, name: string) {
    this.#host = host;
    this.#transaction = transaction;
    this.#actions = host.actions;
    this.#id = id;
    this.#name = name;
  }

  append(time: number, values: readonly number[], tag: string | null): void {
    const appends = this.#host.appendsOf(this.#id, this.#name);
    const Created = appends.isEmpty && !this.#exists();
    appends.add({ time, values, tag });
    const end = `"Tag":${JSON.stringify(tag)},"Values":${doublesText(values)},"Created":${Created}`;
    this.#actions.seriesAppends.push(this.#entryText(time, end));
  }

  increment(time: number, values: readonly number[]): void {
    this.#host.storeAppends();
    const Created = !this.#exists();
    incrementSeries(this.#transaction, this.#id, this.#name, [{ time, values }]);
    const end = `"Values":${doublesText(values)},"Created":${Created}`;
    this.#actions.seriesIncrements.push(this.#entryText(time, end));
  }

  #entryText(time: number, end: string): string {
    return `{"Name":${JSON.stringify(this.#name)},"Timestamp":"${seriesTimeText(time)}",${end}}`;
  }

  delete(from: number | null, to: number | null): void {
    this.#host.storeAppends();
    const bounds = [from ?? undefined, to ?? undefined] as const;
    const etag = deleteFromSeries(this.#transaction, this.#id, this.#name, ...bounds);
    if (etag === 0) return;
    this.#actions.seriesDeletes.push({
      Name: this.#name,
      From: from === null ? neverText : seriesTimeText(from),
      To: to === null ? foreverText : seriesTimeText(to),
    });
  }

  entries(
    from: number | null,
    to: number | null,
    pay: (count: number) => void,
  ): readonly ScriptTimeSeriesEntry[] {
    this.#host.storeAppends();
    const Name = this.#name;
    const source = segmentsIn(this.#transaction);
    const bounds = { from: from ?? undefined, to: to ?? undefined };
    const found: ScriptTimeSeriesEntry[] = [];
    for (const slice of pageOf(source, segmentPrefix(this.#id, Name), bounds).slices) {
      pay(slice.to - slice.from);
      const entries = slice.segment.unpack();
      for (let i = slice.from; i < slice.to; i++) {
        const entry = { ...entries.entry(i), isRollup: isRollup(Name) };
        found.push(entry);
        const end = `"Tag":${JSON.stringify(entry.tag)},"Values":${doublesText(entry.values)},"Type":"Raw","Exists":true`;
        this.#actions.seriesReads.push(this.#entryText(entry.time, end));
      }
    }
    if (found.length === 0) this.#actions.seriesReads.push(JSON.stringify({ Name, Exists: false }));
    return found;
  }

  stats(): ScriptTimeSeriesStats | null {
    this.#host.storeAppends();
    const prefix = segmentPrefix(this.#id, this.#name);
    return summaryOf(segmentsIn(this.#transaction), prefix) ?? null;
  }

  #exists(): boolean {
    const { timeSeries } = this.#transaction.keyspaces;
    return this.#transaction.entry(timeSeries, seriesKey(this.#id, this.#name)) !== undefined;
  }
}

function doublesText(values: readonly number[]): string {
  return `[${values.map(doubleText).join(",")}]`;
}

/** Returns a body's text with `@metadata` as its last member. */
export function withMetadata(body: string, metadata: string | null): string {
  if (metadata === null || metadata === "{}") return body;
  const member = `"@metadata":${metadata}`;
  return body.length <= 2 ? `{${member}}` : `${body.slice(0, -1)},${member}}`;
}
