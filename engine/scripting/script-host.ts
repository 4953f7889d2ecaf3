/**
 * The environment of a script: the database implements it for patches, queries and indexes. All calls are synchronous.
 * Types only.
 */

import type { Value } from "./language/script-values.ts";
import type { ScriptDocument } from "./values/script-document.ts";
import type { ShapeHint } from "./values/shape-hint.ts";

/** One entry of a time series. */
export interface ScriptTimeSeriesEntry {
  /** Milliseconds since 1970. */
  readonly time: number;
  readonly tag: string | null;
  readonly values: readonly number[];
  readonly isRollup: boolean;
}

/** Statistics of a time series that has entries. */
export interface ScriptTimeSeriesStats {
  readonly count: number;
  /** Milliseconds since 1970 of the first and last entry. */
  readonly first: number;
  readonly last: number;
}

/** A time series of a document. Times are milliseconds since 1970, bounds inclusive, null = open. */
export interface ScriptTimeSeries {
  append(time: number, values: readonly number[], tag: string | null): void;
  increment(time: number, values: readonly number[]): void;
  delete(from: number | null, to: number | null): void;
  /** `pay` is called with the number of entries before they are read: it throws the error that ends the script. */
  entries(
    from: number | null,
    to: number | null,
    pay: (count: number) => void,
  ): readonly ScriptTimeSeriesEntry[];
  /** Null if the series does not exist. */
  stats(): ScriptTimeSeriesStats | null;
}

export interface ScriptHost {
  /** For queries and indexes: put, del and counter changes are refused. */
  readonly readOnly: boolean;
  /** Returns milliseconds since 1970. */
  now(): number;
  /** Returns a number from 0 up to 1. */
  random(): number;
  /**
   * Returns a document, as this transaction sees it; null if it does not exist. `hint`: the shape hint of loaded
   * documents.
   */
  load(id: string, hint?: ShapeHint): ScriptDocument | null;
  /**
   * Writes a document in this transaction. `id` null or empty, or ending with `/`: the server chooses. `changeVector`:
   * expected, undefined for no check.
   * @returns the final id
   * @throws EngineError concurrency
   */
  put(
    id: string | null,
    body: string,
    metadata: string | null,
    changeVector: string | null | undefined,
  ): string;
  /** @returns true when the document existed @throws EngineError concurrency */
  delete(id: string, changeVector: string | null | undefined): boolean;
  counter(id: string, name: string): number | null;
  /** Returns the values by change-vector part; null if the counter does not exist. */
  counterParts(id: string, name: string): Readonly<Record<string, number>> | null;
  /** @throws EngineError document-missing */
  incrementCounter(id: string, name: string, delta: number): void;
  deleteCounter(id: string, name: string): void;
  /** @throws EngineError not-supported, document-missing */
  timeSeries(id: string, name: string): ScriptTimeSeries;
  /** Returns the JSON text of the result of a series query that the script's query declares; absent elsewhere. */
  seriesQuery?(name: string, args: readonly Value[]): string;
  /** Returns the JSON text of a compare-exchange value; null if it does not exist. */
  compareExchange(key: string): string | null;
  /** Adds a document to the includes of the reply. */
  include(id: string): void;
  includeCompareExchange(key: string): void;
  /** Debug text. */
  output(text: string): void;
}

/** Context of the built-ins in one run: the host, and the document that is `this`. */
export interface ScriptContext {
  readonly host: ScriptHost;
  readonly document: ScriptDocument | null;
  /** The hint of the documents that the script loads. */
  readonly loadedHint: ShapeHint;
}
