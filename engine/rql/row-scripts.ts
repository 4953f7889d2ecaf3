/**
 * The scripts of a query and the documents that `load` names, for one row after the other: shared by the stages filter
 * and project. Created only for queries that have one of them.
 *
 * Invariant: a script that lacks a document's record is run again when the record is in memory.
 */
import { assert } from "../base/assert.ts";
import { runSteps, type Steps } from "../base/steps.ts";
import { RowLoader } from "./execute-load.ts";
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
import { SeriesRunner, seriesRowOf } from "./time-series/execute-series.ts";
import { seriesObject } from "./time-series/series-text.ts";

export class RowScripts {
  readonly #loader: RowLoader;
  readonly #scripts: QueryScripts | null;

  /** @param hasScripts false: the query only loads documents */
  constructor(run: QueryRun, hasScripts: boolean) {
    this.#loader = new RowLoader(run.query, run.source, run.budget);
    this.#scripts = hasScripts ? scriptsOf(run) : null;
  }

  /** What scripts have included so far; null: there are none. */
  get included(): ScriptIncludes | null {
    return this.#scripts?.included ?? null;
  }

  /** Returns the documents that a row loads, by their aliases. */
  load(row: StoredRow): Steps<ReadonlyMap<string, LoadedValue>> {
    return this.#loader.load(row);
  }

  /** Returns whether a row passes the filter of the query. */
  *passes(row: StoredRow): Steps<boolean> {
    const input = inputOf(row, yield* this.load(row), null);
    return yield* this.#complete((scripts) => scripts.passes(input));
  }

  /** Returns the objects that the script of the projection makes of a row. */
  *project({ row, loaded, stored }: RowParts): Steps<readonly ProjectedText[]> {
    const input = inputOf(row, loaded, stored);
    return yield* this.#complete((scripts) => scripts.project(input));
  }

  *#complete<Result>(call: (scripts: QueryScripts) => Result): Steps<Result> {
    const scripts = this.#scripts;
    assert(scripts !== null, "a filter or projection by script has a script");
    for (;;) {
      try {
        return call(scripts);
      } catch (error) {
        const missing = scripts.missing(error);
        if (missing === null) throw error;
        yield missing;
      }
    }
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
