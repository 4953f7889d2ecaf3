/**
 * A row with results of series queries: composed of the row's text, in which placeholders mark the results, and the
 * chunks of the results, which are not copied unless the row is small.
 */
import type { TextChunks } from "../../state/documents/document-chunks.ts";
import type { SeriesForm } from "../execution/results.ts";
import { splitAtSeries } from "../execution/results-projection.ts";
import { namesMember, type SeriesResult, seriesClose, seriesOpen } from "./series-text.ts";

/** A text as a list of chunks. */
export class ChunkList implements TextChunks {
  readonly length: number;
  /** By the query's budget. */
  readonly isHeld = true;
  readonly #pieces: readonly Buffer[];
  /** Index and start offset of the chunk that was read last. */
  #at = 0;
  #start = 0;

  constructor(pieces: readonly Buffer[]) {
    this.#pieces = pieces;
    this.length = pieces.reduce((length, piece) => length + piece.length, 0);
  }

  /** Cost: O(chunks) if the calls are not in order. */
  copy(start: number, end: number): Buffer {
    const target = Buffer.allocUnsafe(end - start);
    if (start < this.#start) {
      this.#at = 0;
      this.#start = 0;
    }
    for (let filled = 0; filled < target.length; ) {
      const piece = this.#pieces[this.#at] as Buffer; // end <= length
      const from = start + filled - this.#start;
      if (from >= piece.length) {
        this.#start += piece.length;
        this.#at++;
        continue;
      }
      filled += piece.copy(target, filled, from);
    }
    return target;
  }
}

/** Returns the bytes of the results in a row. */
export function bytesOf(results: readonly SeriesResult[]): number {
  return results.reduce((bytes, result) => bytes + result.bytes, 0);
}

/**
 * Returns the row of columns `object`, whose marks stand for `results`. `metadata`: the member, with the row's closing
 * brace. A streamed row begins with its metadata, and has lists of results only.
 */
export function rowOfColumns(
  object: string,
  results: readonly SeriesResult[],
  metadata: string,
  form: SeriesForm,
): ChunkList {
  const whole =
    form === "list"
      ? `{${metadata.slice(0, -1)}${object === "{}" ? "}" : `,${object.slice(1)}`}`
      : `${object.slice(0, -1)}${object === "{}" ? "" : ","}${metadata}`;
  const pieces: Buffer[] = [];
  for (const [i, part] of splitAtSeries(whole).entries()) {
    const result = i % 2 === 0 ? undefined : results[Number(part)];
    if (result === undefined) pieces.push(Buffer.from(part));
    else if (form === "list") {
      pieces.push(Buffer.from("["), ...result.pieces, Buffer.from("]"));
    } else {
      const close = `${seriesClose(result, form === "named")}}`;
      pieces.push(Buffer.from(seriesOpen(result)), ...result.pieces, Buffer.from(close));
    }
  }
  return new ChunkList(pieces);
}

/** Returns the row that is one result. */
export function rowOfSeries(result: SeriesResult, metadata: string, form: SeriesForm): ChunkList {
  const names = form === "named" ? namesMember(result.valueNames) : "";
  const own = names === "" ? metadata : metadata.replace("{", () => `{${names},`);
  const tail = Buffer.from(`${seriesClose(result, false)},${own}`);
  return new ChunkList([Buffer.from(seriesOpen(result)), ...result.pieces, tail]);
}
