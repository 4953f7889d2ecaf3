/** Documents that this document refers to, and documents that refer to it. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { get, ServerError, send } from "../../base/client.ts";
import { address, setQuery } from "../../base/router.ts";
import { Failure } from "../../components/messages.tsx";
import type { JsonMembers, JsonNode } from "../../json/json-source.ts";
import { quoted } from "../documents/list-rows.ts";
import { type Reference, type Referring, RelatedGraph } from "./related-graph.tsx";

interface Properties {
  readonly database: string;
  readonly base: string;
  readonly id: string;
  readonly content: JsonMembers;
  /** Called with the number of documents that refer to this one. */
  counted(referring: number): void;
}

const idLike = /^[A-Za-z][\w-]*\/[\w./-]{1,200}$/;
/** Maximum number of documents per request. */
const referencesMax = 100;

/** Returns distinct strings that look like ids, with the path of their first occurrence. */
export function referencesIn(content: JsonMembers, self: string): Reference[] {
  const found = new Map<string, string>();
  const walk = (node: JsonNode, path: string) => {
    if (typeof node === "string") {
      if (idLike.test(node) && node !== self && !found.has(node)) found.set(node, path);
    } else if (Array.isArray(node)) {
      for (const one of node) walk(one, `${path}[]`);
    } else if (node instanceof Map) {
      for (const [name, value] of node) walk(value, path === "" ? name : `${path}.${name}`);
    }
  };
  walk(content, "");
  return [...found].slice(0, referencesMax).map(([id, path]) => ({ id, path }));
}

export function Related({ database, base, id, content, counted }: Properties) {
  const references = useMemo(() => referencesIn(content, id), [content, id]);
  const there = useExisting(base, references);
  const { found, isSearching, error, retry } = useReferring(base, id, counted);
  return (
    <div class="scroll grow side-body">
      <RelatedGraph
        database={database}
        id={id}
        references={references}
        there={there}
        referring={found}
      />
      {references.length === 0 && <p class="muted">No value looks like an id.</p>}
      {error !== null && <Failure error={error} retry={retry} />}
      {found?.length === 0 && <p class="muted">No document refers to it.</p>}
      {found === null && error === null && (
        <>
          <h3>Referring documents</h3>
          <p class="muted">
            Searches fields of other collections that contain similar ids; the server creates an
            index for each field.
          </p>
          <div>
            <button
              type="button"
              class="btn"
              disabled={isSearching}
              onClick={() => setQuery({ referring: "1" })}
            >
              {isSearching ? "Searching" : "Search"}
            </button>
          </div>
        </>
      )}
    </div>
  );
}

/** Returns the existing references; null while unknown. */
function useExisting(base: string, references: readonly Reference[]): ReadonlySet<string> | null {
  const [there, setThere] = useState<ReadonlySet<string> | null>(null);
  const query = references.map(({ id }) => `id=${encodeURIComponent(id)}`).join("&");
  useEffect(() => {
    setThere(null);
    if (query === "") return undefined;
    const abort = new AbortController();
    get<{ Results: readonly ({ "@metadata": { "@id": string } } | null)[] }>(
      `${base}/docs?${query}&metadataOnly=true`,
      abort.signal,
    ).then(
      ({ body }) =>
        setThere(
          new Set(
            body.Results.flatMap((one) =>
              one === null ? [] : [one["@metadata"]["@id"].toLowerCase()],
            ),
          ),
        ),
      (error: Error) => {
        // Status 404: none of them exists.
        if (error instanceof ServerError && error.status === 404) setThere(new Set());
      },
    );
    return () => abort.abort();
  }, [base, query]);
  return there;
}

interface Field {
  readonly collection: string;
  readonly path: string;
}

const collectionsMax = 30;
const sampleRows = 16;
const shownIds = 5;

/** Searches the referring documents if the address requests it, as the links of the graph do after the first search. */
function useReferring(base: string, id: string, counted: (referring: number) => void) {
  const isWanted = address.value.query.get("referring") === "1";
  const [found, setFound] = useState<readonly Referring[] | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const [round, setRound] = useState(0);
  useEffect(() => {
    if (!isWanted) return undefined;
    let isGone = false;
    const look = async () => {
      const fields = await referringFields(base, id);
      const results = await Promise.all(fields.map((field) => queryReferences(base, id, field)));
      if (isGone) return;
      setFound(results.filter(({ total }) => total > 0));
      counted(results.reduce((sum, { total }) => sum + total, 0));
    };
    setError(null);
    look().catch((failed: Error) => {
      if (!isGone) setError(failed);
    });
    return () => {
      isGone = true;
    };
  }, [base, id, isWanted, round]);
  const isSearching = isWanted && found === null && error === null;
  return { found, isSearching, error, retry: () => setRound(round + 1) };
}

/** Returns fields that contain ids of the same type in sampled documents. */
async function referringFields(base: string, id: string): Promise<Field[]> {
  const kind = id.slice(0, id.search(/[/|]/) + 1).toLowerCase();
  if (kind === "") return [];
  const { body } = await get<{ Collections: Record<string, number> }>(`${base}/collections/stats`);
  const names = Object.keys(body.Collections).filter((name) => !name.startsWith("@"));
  const found = await Promise.all(
    names.slice(0, collectionsMax).map(async (collection) => {
      const json = { Query: `from ${quoted(collection)}`, PageSize: sampleRows };
      const { body: sample } = await send<{ Results: Record<string, unknown>[] }>(
        "POST",
        `${base}/queries`,
        { json },
      );
      const paths = new Set<string>();
      for (const row of sample.Results) collectPaths(row, "", kind, paths);
      return [...paths].map((path): Field => ({ collection, path }));
    }),
  );
  return found.flat();
}

function collectPaths(value: unknown, path: string, kind: string, paths: Set<string>): void {
  if (typeof value === "string") {
    if (value.toLowerCase().startsWith(kind)) paths.add(path);
  } else if (Array.isArray(value)) {
    for (const one of value) collectPaths(one, `${path}[]`, kind, paths);
  } else if (typeof value === "object" && value !== null) {
    for (const [name, inner] of Object.entries(value)) {
      if (name !== "@metadata" && /^[A-Za-z_]\w*$/.test(name))
        collectPaths(inner, path === "" ? name : `${path}.${name}`, kind, paths);
    }
  }
}

async function queryReferences(
  base: string,
  id: string,
  { collection, path }: Field,
): Promise<Referring> {
  const json = {
    Query: `from ${quoted(collection)} where ${path} = $id`,
    QueryParameters: { id },
    PageSize: shownIds,
    WaitForNonStaleResults: true,
    WaitForNonStaleResultsTimeout: "00:00:15",
  };
  const { body } = await send<{
    TotalResults: number;
    Results: { "@metadata": { "@id": string } }[];
  }>("POST", `${base}/queries`, { json });
  return {
    collection,
    path,
    total: body.TotalResults,
    ids: body.Results.map((one) => one["@metadata"]["@id"]),
  };
}
