/**
 * The scripts of a query and the documents that `load` names, for one row after the other: shared by the stages filter
 * and project. Created only for queries that have one of them.
 *
 * Invariant: a script that lacks a document's record is run again when the record is in memory.
 */
import { assert } from "../../base/assert.ts";
import { runSteps, type Steps } from "../../base/scheduling/steps.ts";
import { SeriesRunner, seriesRowOf } from "../time-series/execute-series.ts";
import { seriesObject } from "../time-series/series-text.ts";
import { noLoaded, RowLoader } from "./execute-load.ts";
import type { QueryRun } from "./query-run.ts";
import type { RowParts } from "./results-projection.ts";
import type {
  LoadedValue,
  ProjectedText,
  QueryScripts,
  ScriptIncludes,
  ScriptInput,
  StoredRow,
} from "./row-source.ts";

export class RowScripts {
  readonly #loader: RowLoader | null;
  readonly #scripts: QueryScripts | null;

  /** @param hasScripts false: the query only loads documents */
  constructor(run: QueryRun, hasScripts: boolean) {
    const { query, source, budget } = run;
    this.#loader = query.load.length > 0 ? new RowLoader(query, source, budget) : null;
    this.#scripts = hasScripts ? scriptsOf(run) : null;
  }

  /** The includes of the scripts so far, or null. */
  get included(): ScriptIncludes | null {
    return this.#scripts?.included ?? null;
  }

  /** Returns the documents that a row loads, by their aliases; null: the query loads none. */
  load(row: StoredRow): Steps<ReadonlyMap<string, LoadedValue>> | null {
    return this.#loader === null ? null : this.#loader.load(row);
  }

  /** Returns whether a row passes the filter of the query. */
  *passes(row: StoredRow): Steps<boolean> {
    const loading = this.load(row);
    const input = inputOf(row, loading === null ? noLoaded : yield* loading, null);
    for (;;) {
      try {
        return this.#asserted().passes(input);
      } catch (error) {
        yield this.missing(error);
      }
    }
  }

  /** Returns the objects that the script of the projection makes of a row. @throws as described at `missing` */
  project({ row, loaded, stored }: RowParts): readonly ProjectedText[] {
    return this.#asserted().project(inputOf(row, loaded, stored));
  }

  /**
   * Returns the promise to wait for before a script that threw `error` is run again, because it lacks the record of a
   * document. @throws every other error
   */
  missing(error: unknown): Promise<void> {
    const missing = this.#scripts?.missing(error) ?? null;
    if (missing === null) throw error;
    return missing;
  }

  #asserted(): QueryScripts {
    assert(this.#scripts !== null, "a filter or projection by script has a script");
    return this.#scripts;
  }
}

function scriptsOf({ query, host, source, budget }: QueryRun): QueryScripts {
  const runner = new SeriesRunner(query, source, budget);
  return host.scripts.forQuery(query, budget, {
    call: async (name, args, { row, loaded }) => {
      const result = await runSteps(runner.call(name, args, seriesRowOf(query, row, loaded)));
      const text = seriesObject(result, false);
      budget.release(result.bytes);
      return text;
    },
  });
}

function inputOf(
  row: StoredRow,
  loaded: ReadonlyMap<string, LoadedValue>,
  stored: string | null,
): ScriptInput {
  return row.start < 0
    ? // Its text has the same values, with their types.
      { row: null, text: row.bytes.toString(), loaded, stored: null }
    : { row, text: null, loaded, stored };
}
