/** A query of the embedded engine: runs when its rows are read, and streams rows as they are found. */
import { rowBytesWaitingMax, rowsWaitingMax } from "../engine/base/limits.ts";
import type { QueryOutcome } from "../engine/engine.ts";
import { EngineError, type Database as OpenDatabase } from "../engine/engine.ts";
import type { Document, JsonObject, Query, QueryOptions, QueryResult, Row } from "./surface.ts";
import { membersText } from "./texts.ts";

/** Receives the text of a row. If it returns a promise, the query waits for it before the next row. */
type Take = (text: string) => Promise<void> | null;

export class EmbeddedQuery<T> implements Query<T> {
  readonly #open: () => Promise<OpenDatabase>;
  readonly #rql: string;
  readonly #parametersText: string;
  readonly #options: QueryOptions;

  constructor(
    open: () => Promise<OpenDatabase>,
    rql: string,
    parameters: Readonly<Record<string, unknown>>,
    options: QueryOptions,
  ) {
    this.#open = open;
    this.#rql = rql;
    this.#parametersText = membersText(parameters);
    this.#options = options;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Row<T>, undefined> {
    for await (const text of this.texts()) yield JSON.parse(text) as Row<T>;
  }

  async toArray(): Promise<Row<T>[]> {
    const { rows } = await this.result();
    return rows;
  }

  async first(): Promise<Row<T> | null> {
    for await (const row of this) return row;
    return null;
  }

  async result(): Promise<QueryResult<T>> {
    const rows: Row<T>[] = [];
    const { totalResults, indexName, isStale, includes } = await this.#run((text) => {
      rows.push(JSON.parse(text) as Row<T>);
      return null;
    });
    const included = includes.map(({ id, text }) => [
      id,
      JSON.parse(text.toString()) as Document<JsonObject>,
    ]);
    return { rows, totalResults, indexName, isStale, includes: Object.fromEntries(included) };
  }

  async *texts(): AsyncGenerator<string, undefined> {
    const pipe = new RowPipe();
    const left = new AbortController();
    const ended = this.#run((text) => pipe.add(text), left.signal).then(
      () => pipe.end(),
      (error: unknown) => pipe.end({ error }),
    );
    try {
      for (let text = await pipe.next(); text !== null; text = await pipe.next()) yield text;
    } finally {
      left.abort();
      pipe.drain();
      await ended;
    }
  }

  /**
   * Runs the query; `left` is aborted when the caller reads no more rows. @throws the reason of the caller's signal,
   * EngineError
   */
  async #run(take: Take, left?: AbortSignal): Promise<QueryOutcome> {
    const { waitMs, signal } = this.#options;
    const stopping = new AbortController();
    const stop = (): void => stopping.abort();
    const signals = [signal, left].filter((one) => one !== undefined);
    for (const one of signals) {
      if (one.aborted) stop();
      else one.addEventListener("abort", stop);
    }
    const options = {
      parametersText: this.#parametersText,
      waitForNonStale: waitMs !== 0,
      timeoutMs: waitMs,
      signal: stopping.signal,
    };
    try {
      if (signal?.aborted === true) throw this.#reason();
      const { queries } = await this.#open();
      const sink = { add: (row: Buffer) => take(row.toString()) };
      // Null is returned only to callers that pass a known etag.
      return (await queries.run(this.#rql, options, sink)) as QueryOutcome;
    } catch (error) {
      throw signal?.aborted === true ? this.#reason() : error;
    } finally {
      for (const one of signals) one.removeEventListener("abort", stop);
    }
  }

  #reason(): unknown {
    const message = "The query was aborted.";
    return this.#options.signal?.reason ?? new EngineError("operation-cancelled", message);
  }
}

/** Buffer between a query and its reader. The query pauses at `rowsWaitingMax` rows or `rowBytesWaitingMax` bytes. */
class RowPipe {
  #rows: string[] = [];
  #at = 0;
  #length = 0;
  #end: { readonly error?: unknown } | null = null;
  #isDrained = false;
  /** Resume the query and the reader. */
  #resumeQuery: () => void = () => undefined;
  #resumeReader: () => void = () => undefined;

  add(text: string): Promise<void> | null {
    if (this.#isDrained) return null;
    this.#rows.push(text);
    this.#length += text.length;
    this.#resumeReader();
    const isFull = this.#rows.length - this.#at >= rowsWaitingMax;
    if (!isFull && this.#length < rowBytesWaitingMax) return null;
    return new Promise((resolve) => {
      this.#resumeQuery = resolve;
    });
  }

  end(failure: { readonly error?: unknown } = {}): void {
    this.#end = failure;
    this.#resumeReader();
  }

  /** Discards buffered and future rows. */
  drain(): void {
    this.#isDrained = true;
    this.#resumeQuery();
  }

  /** Returns the next row, or null at the end. @throws the error of the query */
  async next(): Promise<string | null> {
    while (this.#at === this.#rows.length) {
      if (this.#end !== null) {
        if ("error" in this.#end) throw this.#end.error;
        return null;
      }
      await new Promise<void>((resolve) => {
        this.#resumeReader = resolve;
      });
    }
    const text = this.#rows[this.#at++] as string; // at < length
    this.#length -= text.length;
    if (this.#at === this.#rows.length) {
      this.#rows = [];
      this.#at = 0;
      this.#resumeQuery();
    }
    return text;
  }
}
