/** Time series as scripts of queries see them: results of series queries, and stored series, which they only read. */
import { EngineError } from "../../base/errors.ts";
import type { Value } from "../../scripting/language/script-values.ts";
import { seriesQueryName } from "../../scripting/patch-functions.ts";
import type {
  ScriptTimeSeries,
  ScriptTimeSeriesEntry,
  ScriptTimeSeriesStats,
} from "../../scripting/script-host.ts";
import { ScriptDocument } from "../../scripting/values/script-document.ts";
import { pageOf } from "../../state/keyspaces/time-series/series-page.ts";
import { summaryOf } from "../../state/keyspaces/time-series/time-series.ts";
import type { ScriptInput, SeriesCalls, StoredSeries } from "../execution/row-source.ts";
import { composite, type SeriesArgument } from "../time-series/series-filter.ts";

/** Different calls of series queries in one row. The script is run again after each. */
const seriesCallsMax = 128;

/** A script called a series query: it is run again when there is the result. */
export class SeriesPending extends Error {
  readonly key: string;
  readonly series: string;
  readonly args: readonly SeriesArgument[];

  /** `key`: identifies the call among the calls of its row. `series`: the name of the query. */
  constructor(key: string, series: string, args: readonly SeriesArgument[]) {
    super("the result of a series query is not known yet");
    this.key = key;
    this.series = series;
    this.args = args;
  }
}

function seriesArgumentOf(value: Value): SeriesArgument {
  const document = ScriptDocument.of(value);
  if (document !== null && document.id !== null) {
    const bytes = Buffer.from(document.bodyText());
    return { kind: "document", document: { id: document.id, bytes, at: 0 } };
  }
  if (value === undefined || value === null) return { kind: "value", value: null };
  const isScalar =
    typeof value === "string" || typeof value === "number" || typeof value === "boolean";
  return { kind: "value", value: isScalar ? value : composite };
}

/** The results of the series queries that the script of one row calls. */
export class SeriesResults {
  /** The row that a script runs for. */
  input: ScriptInput | null = null;
  /** JSON texts by name and arguments. */
  readonly #texts = new Map<string, string>();

  /** Returns the series queries that there are. */
  names: { has(name: string): boolean } = new Set();

  /** @throws SeriesPending if it must be computed first; script-failed if the query does not exist */
  textOf(name: string, values: readonly Value[]): string {
    if (!this.names.has(name)) {
      throw new EngineError("script-failed", `${seriesQueryName} is not defined`);
    }
    const args = values.map(seriesArgumentOf);
    const shown = args.map((one) =>
      one.kind === "document" ? [one.document.id] : one.value === composite ? {} : one.value,
    );
    const key = JSON.stringify([name, ...shown]);
    const text = this.#texts.get(key);
    if (text === undefined) throw new SeriesPending(key, name, args);
    return text;
  }

  /** @throws EngineError work-limit, and as the series query */
  async compute({ key, series, args }: SeriesPending, calls: SeriesCalls): Promise<void> {
    if (this.#texts.size >= seriesCallsMax) {
      throw new EngineError(
        "work-limit",
        `A row calls time series functions with more than ${seriesCallsMax} different arguments, which is the limit.`,
      );
    }
    if (this.input !== null) this.#texts.set(key, await calls.call(series, args, this.input));
  }

  /** Called after a row. */
  clear(): void {
    this.#texts.clear();
  }
}

/** A stored series for reading. Null if it does not exist. */
export class StoredScriptSeries implements ScriptTimeSeries {
  readonly #stored: StoredSeries | null;

  constructor(stored: StoredSeries | null) {
    this.#stored = stored;
  }

  append(): void {
    throw readOnly();
  }

  increment(): void {
    throw readOnly();
  }

  delete(): void {
    throw readOnly();
  }

  entries(
    from: number | null,
    to: number | null,
    pay: (count: number) => void,
  ): readonly ScriptTimeSeriesEntry[] {
    if (this.#stored === null) return [];
    const { segments, prefix, parts = [] } = this.#stored;
    const isRolledUp = parts.some((part) => part.prefix === prefix && part.isRollup);
    const bounds = { from: from ?? undefined, to: to ?? undefined };
    const { slices, count } = pageOf(segments, prefix, bounds);
    pay(count);
    return slices.flatMap(({ segment, from: low, to: high }) => {
      const entries = segment.toEntries().slice(low, high);
      return entries.map((entry) => ({ ...entry, isRollup: isRolledUp }));
    });
  }

  stats(): ScriptTimeSeriesStats | null {
    if (this.#stored === null) return null;
    return summaryOf(this.#stored.segments, this.#stored.prefix) ?? null;
  }
}

/** Returns a function of the script that runs a series query. */
export function seriesFunctionText(name: string): string {
  return `function ${name}(...args) { return ${seriesQueryName}(${JSON.stringify(name)}, args); }`;
}

/** Returns the error of a script that changes something in a query. */
export function readOnly(): EngineError {
  return new EngineError("invalid-operation", "Cannot make modifications in readonly context");
}
