/**
 * The reply of a series query as JSON text, in chunks: `{"Count":n,"Results":[…]}`. All numbers but the outer count are
 * written as doubles, and NaN as text, as in RavenDB 7.2.7.
 */

import { doubleText } from "../../base/json/double-text.ts";
import { largeBuffer } from "../../base/memory/large-buffer.ts";
import type { WorkBudget } from "../../base/scheduling/work-budget.ts";
import { seriesTimeText } from "../../state/keyspaces/time-series/time-series.ts";
import type { SeriesAggregate, SeriesFunction } from "./analyze-series.ts";
import type { TestedEntry } from "./series-filter.ts";
import type { GroupResult } from "./series-groups.ts";

/** Length of a chunk, in characters. */
const pieceLength = 32 * 1024;
/** Bytes of a result from which on its chunks share blocks of this size, whose memory is returned to the system. */
const blocksFrom = 1024 * 1024;
const blockBytes = 16 * 1024 * 1024;

/** The result of a series query for one row. */
export interface SeriesResult {
  readonly count: number;
  /** The elements of `Results`, with commas; their bytes are held by the query's budget. */
  readonly pieces: readonly Buffer[];
  readonly bytes: number;
  /** The names of the series' values. */
  readonly valueNames: readonly string[];
}

const noBytes = Buffer.alloc(0);

export const emptySeries: SeriesResult = { count: 0, pieces: [], bytes: 0, valueNames: [] };

export class SeriesText {
  readonly pieces: Buffer[] = [];
  bytes = 0;
  readonly #budget: WorkBudget;
  readonly #aggregates: readonly SeriesAggregate[];
  readonly #keys: readonly string[];
  readonly #scale: number;
  readonly #isUtc: boolean;
  #text = "";
  #isEmpty = true;
  /** The rest of the present block. */
  #block: Buffer = noBytes;

  constructor({ aggregates, scale, offsetMs }: SeriesFunction, budget: WorkBudget) {
    this.#budget = budget;
    this.#aggregates = aggregates;
    this.#keys = aggregates.map(({ key }) => JSON.stringify(key));
    this.#scale = scale;
    this.#isUtc = offsetMs === null;
  }

  /** @throws work-limit, memory-full */
  entry({ time, tag, values, start, end, isRollup }: TestedEntry): void {
    let numbers = "";
    for (let at = start; at < end; at++) {
      if (at > start) numbers += ",";
      numbers += doubleText((values[at] as number) * this.#scale);
    }
    const tagText = tag === null ? "null" : JSON.stringify(tag);
    this.#add(
      `{"Tag":${tagText},"Timestamp":${this.#time(time)},"Values":[${numbers}],"IsRollup":${isRollup}}`,
    );
  }

  /** @throws work-limit, memory-full */
  group({ from, to, keyText, results }: GroupResult): void {
    let text = `{"From":${this.#time(from)},"To":${this.#time(to)},"Key":${keyText ?? "null"}`;
    for (let i = 0; i < this.#aggregates.length; i++) {
      text += `,${this.#keys[i]}:[${(results[i] ?? []).map(doubleText).join(",")}]`;
    }
    this.#add(`${text}}`);
  }

  /** Called once, at the end. */
  finish(): void {
    if (this.#text !== "") this.#cut();
  }

  #add(text: string): void {
    this.#text += this.#isEmpty ? text : `,${text}`;
    this.#isEmpty = false;
    if (this.#text.length >= pieceLength) this.#cut();
  }

  #cut(): void {
    const piece = this.#encoded(this.#text);
    this.#budget.hold(piece.length);
    this.pieces.push(piece);
    this.bytes += piece.length;
    this.#text = "";
  }

  #encoded(text: string): Buffer {
    if (this.bytes < blocksFrom) return Buffer.from(text);
    const length = Buffer.byteLength(text);
    if (length > this.#block.length) this.#block = largeBuffer(Math.max(length, blockBytes));
    this.#block.utf8Write(text, 0);
    const piece = this.#block.subarray(0, length);
    this.#block = this.#block.subarray(length);
    return piece;
  }

  #time(time: number | null): string {
    if (time === null) return "null";
    const text = seriesTimeText(time);
    return `"${this.#isUtc ? text : text.slice(0, -1)}"`;
  }
}

/** Returns the whole object; `withNames`: with the names of values in its metadata. */
export function seriesObject(result: SeriesResult, withNames: boolean): string {
  const results = Buffer.concat(result.pieces).toString();
  return `${seriesOpen(result)}${results}${seriesClose(result, withNames)}}`;
}

/** Returns the text before the elements. */
export function seriesOpen({ count }: SeriesResult): string {
  return `{"Count":${count},"Results":[`;
}

/** Returns the text after the elements, without the last brace. */
export function seriesClose({ valueNames }: SeriesResult, withNames: boolean): string {
  return withNames ? `],"@metadata":{${namesMember(valueNames)}}` : "]";
}

/** `"@timeseries-named-values":[…]`, or nothing. */
export function namesMember(valueNames: readonly string[]): string {
  return valueNames.length === 0 ? "" : `"@timeseries-named-values":${JSON.stringify(valueNames)}`;
}
