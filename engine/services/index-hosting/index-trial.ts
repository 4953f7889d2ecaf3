/**
 * Tries an index definition on a few documents: returns the entries that its maps produce and the results that its
 * reduce produces from them. Creates no index and stores nothing, so C# definitions can be tried by every user with
 * write access. Functions run under the same limits as those of a deployed index.
 */
import type { Clock } from "../../base/environment.ts";
import { EngineError } from "../../base/errors.ts";
import type { JsonObject } from "../../base/json/json-object.ts";
import { type Abortable, WorkBudget } from "../../base/scheduling/work-budget.ts";
import { isCSharp, parseStaticDefinition } from "../../indexing/definitions/static-definition.ts";
import type { StoredRow } from "../../indexing/index-host.ts";
import {
  type IndexProgram,
  type MapResult,
  RecordNotLoaded,
} from "../../indexing/index-program.ts";
import { QueryRows } from "../../queries/rows/query-rows.ts";
import { idOf } from "../../state/documents/document-record.ts";
import type { Store } from "../../state/store/store.ts";
import { compileIndex } from "./index-compiler.ts";

/** Documents of one trial. */
const trialDocumentsMax = 100;
const defaultCount = 10;

export interface TrialRequest {
  /** These documents; none: the first of the collections that are mapped. */
  readonly ids: readonly string[];
  /** Ids without a document are left out; otherwise they are errors. */
  readonly skipsMissing?: boolean;
  /** At most this many of the first; undefined: ten. */
  readonly count?: number | undefined;
  readonly signal?: Abortable | undefined;
}

interface TriedDocument {
  readonly id: string;
  /** JSON texts of objects: the fields of each entry; for a map-reduce index, the input of the reduce. */
  readonly entries: readonly string[];
  /** Keys of the entries of a map-reduce index, as JSON texts, in the same order; empty without a reduce. */
  readonly keys: readonly string[];
  /** Why its map failed; null: it did not. */
  readonly failure: EngineError | null;
}

export interface IndexTrial {
  readonly documents: readonly TriedDocument[];
  /** JSON texts of objects; empty without a reduce. */
  readonly reduced: readonly string[];
  /** Their keys, as JSON texts. */
  readonly reducedKeys: readonly string[];
  /** Keys whose reduce failed. */
  readonly reduceFailures: readonly { readonly key: string; readonly failure: EngineError }[];
  readonly isReduce: boolean;
  readonly isCSharp: boolean;
  readonly hasDynamicFields: boolean;
}

/**
 * @throws EngineError index-compilation, index-creation, invalid-argument, not-supported, document-missing
 */
export async function tryIndex(
  json: JsonObject,
  request: TrialRequest,
  database: Store,
  clock: Clock,
): Promise<IndexTrial> {
  const definition = parseStaticDefinition(json);
  const hasCSharp = definition.maps.some(isCSharp);
  const program = compileIndex(definition, database, clock);
  if ((program.source ?? "Documents") === "TimeSeries") {
    throw new EngineError("not-supported", "A map of time series cannot be tried on documents.");
  }
  const budget = new WorkBudget(request.signal);
  const hold = database.state.documents.hold();
  const rows = new QueryRows(database, clock);
  const values = new Map<string, string[]>();
  const documents: TriedDocument[] = [];
  let hasDynamicFields = program.fieldNames === null;
  try {
    for (const docNum of numbersFor(program, rows, request)) {
      await budget.pause();
      const mapped = await mapOne(program, rows, docNum);
      if (mapped === null) continue;
      for (const { key, text } of mapped.values) {
        const known = values.get(key);
        if (known === undefined) values.set(key, [text]);
        else known.push(text);
      }
      hasDynamicFields ||= mapped.entries.some(({ fields }) => fields.some((one) => one.dynamic));
      const entries = program.isReduce
        ? mapped.values.map(({ text }) => text)
        : mapped.entries.map(({ fields }) => objectOf(fields));
      const keys = program.isReduce ? mapped.values.map(({ key }) => key) : [];
      documents.push({ id: mapped.id, entries, keys, failure: mapped.failure });
    }
    const results = await reduceAll(program, values, budget);
    const { isReduce } = program;
    return { documents, ...results, isReduce, isCSharp: hasCSharp, hasDynamicFields };
  } finally {
    rows.close();
    hold.release();
    budget.close();
  }
}

/** @throws EngineError document-missing */
function numbersFor(
  program: IndexProgram,
  rows: QueryRows,
  { ids, count = defaultCount, skipsMissing = false }: TrialRequest,
): number[] {
  if (ids.length > 0) {
    return ids.slice(0, trialDocumentsMax).flatMap((id) => {
      const docNum = rows.findDocument(id);
      if (docNum >= 0 && rows.exists(docNum)) return docNum;
      if (skipsMissing) return [];
      throw new EngineError(
        "document-missing",
        `There is no document '${id}' to try the index on.`,
      );
    });
  }
  const found = new Set<number>();
  const end = Math.min(count, trialDocumentsMax);
  for (const collection of new Set(program.collections)) {
    const cursor = rows.rows(collection);
    while (found.size < end && cursor.next()) found.add(cursor.row.docNum);
  }
  return [...found];
}

type Mapped = MapResult & { readonly id: string };

/** Null: the document is gone. */
async function mapOne(
  program: IndexProgram,
  rows: QueryRows,
  docNum: number,
): Promise<Mapped | null> {
  const row: StoredRow = { docNum, etag: 0, bytes: Buffer.alloc(0), start: 0, block: null };
  for (;;) {
    if (!rows.read(docNum, row)) {
      const pending = rows.pending();
      if (pending === null) return null;
      await pending;
      continue;
    }
    try {
      return { ...program.map(row), id: idOf(row.bytes, row.start) };
    } catch (error) {
      if (!(error instanceof RecordNotLoaded)) throw error;
      await error.wait();
    }
  }
}

async function reduceAll(
  program: IndexProgram,
  values: ReadonlyMap<string, readonly string[]>,
  budget: WorkBudget,
) {
  const reduced: string[] = [];
  const reducedKeys: string[] = [];
  const reduceFailures: { key: string; failure: EngineError }[] = [];
  if (!program.isReduce) return { reduced, reducedKeys, reduceFailures };
  for (const [key, texts] of values) {
    await budget.pause();
    try {
      const text = program.reduce(key, texts);
      if (text === null) continue;
      reduced.push(text);
      reducedKeys.push(key);
    } catch (error) {
      if (!(error instanceof EngineError)) throw error;
      reduceFailures.push({ key, failure: error });
    }
  }
  return { reduced, reducedKeys, reduceFailures };
}

function objectOf(fields: readonly { readonly name: string; readonly text: string }[]): string {
  return `{${fields.map(({ name, text }) => `${JSON.stringify(name)}:${text}`).join(",")}}`;
}
