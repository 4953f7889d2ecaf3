/** A document; or similar ids if it does not exist. */
import { useEffect, useState } from "preact/hooks";
import { get, ServerError } from "../../base/client.ts";
import { href } from "../../base/router.ts";
import { Empty, Failure, Skeleton } from "../../components/messages.tsx";
import { usePage } from "../../shell/page.ts";
import { OpenedDocument } from "./opened.tsx";
import { collectionOf, readVersion, type Version } from "./version.ts";

interface Properties {
  database: string;
  id: string;
}

export function DocumentPage({ database, id }: Properties) {
  const base = `/databases/${encodeURIComponent(database)}`;
  const [version, setVersion] = useState<Version | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const [round, setRound] = useState(0);
  useEffect(() => {
    const abort = new AbortController();
    readVersion(base, id, abort.signal).then(
      (found) => {
        setVersion(found);
        setError(null);
      },
      (failed: Error) => {
        if (!abort.signal.aborted) setError(failed);
      },
    );
    return () => abort.abort();
  }, [base, id, round]);
  const collection = version === null ? undefined : collectionOf(version);
  usePage("docs", [
    { text: database, to: href(["db", database, "docs"]) },
    ...(collection === undefined
      ? []
      : [{ text: collection, to: href(["db", database, "docs", collection]) }]),
    { text: id },
  ]);
  if (version !== null) {
    return (
      <OpenedDocument
        database={database}
        base={base}
        id={id}
        version={version}
        setVersion={setVersion}
      />
    );
  }
  const isMissing = error instanceof ServerError && error.status === 404;
  return (
    <div class="pane">
      <div class="tools">
        <h1 class="mono">{id}</h1>
      </div>
      {isMissing && <Missing database={database} base={base} id={id} />}
      {error !== null && !isMissing && (
        <Failure error={error} retry={() => setRound((before) => before + 1)} />
      )}
      {error === null && <Skeleton rows={12} />}
    </div>
  );
}

const nearestMax = 5;

function Missing({ database, base, id }: Properties & { base: string }) {
  const [nearest, setNearest] = useState<readonly string[]>([]);
  useEffect(() => {
    const abort = new AbortController();
    void nearestIds(base, id, abort.signal).then(setNearest, () => undefined);
    return () => abort.abort();
  }, [base, id]);
  return (
    <Empty icon="doc" title={`Document ${id} does not exist`}>
      {nearest.length > 0 && <p>Similar ids:</p>}
      <div class="row wraps">
        {nearest.map((one) => (
          <a key={one} class="idlink" href={href(["db", database, "doc", one])}>
            {one}
          </a>
        ))}
      </div>
      <a href={href(["db", database, "docs"])}>All documents</a>
    </Empty>
  );
}

/** Returns ids with the longest possible common prefix with `id`. */
async function nearestIds(base: string, id: string, signal: AbortSignal): Promise<string[]> {
  const slash = id.search(/[/|]/) + 1;
  for (const length of new Set([id.length, id.length - 1, id.length - 2, slash])) {
    if (length <= 0) continue;
    const query = new URLSearchParams({
      startsWith: id.slice(0, length),
      pageSize: String(nearestMax),
      metadataOnly: "true",
    });
    const { body } = await get<{ Results: { "@metadata": { "@id": string } }[] }>(
      `${base}/docs?${query}`,
      signal,
    );
    if (body.Results.length > 0) return body.Results.map((one) => one["@metadata"]["@id"]);
  }
  return [];
}
