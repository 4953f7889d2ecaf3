/** A preview of a document beside the list. */
import { useEffect, useState } from "preact/hooks";
import { getText } from "../../base/client.ts";
import { href } from "../../base/router.ts";
import { Drawer } from "../../components/drawer.tsx";
import { Failure, Skeleton } from "../../components/messages.tsx";
import { type JsonNode, memberOf, parseSource, printSource } from "../../json/json-source.ts";
import type { ListRow } from "./list-rows.ts";

/** Maximum number of characters shown of a large document. */
const shownCharacters = 100_000;

interface Properties {
  readonly base: string;
  readonly database: string;
  readonly row: ListRow;
  close(): void;
}

export function Peek({ base, database, row: { id }, close }: Properties) {
  const [text, setText] = useState<string | null>(null);
  const [error, setError] = useState<Error | null>(null);
  useEffect(() => {
    const abort = new AbortController();
    setError(null);
    getText(`${base}/docs?id=${encodeURIComponent(id)}`, abort.signal).then(
      ({ body }) => {
        const [found = null] = memberOf(parseSource(body), "Results") as JsonNode[];
        setText(printSource(found, 2));
      },
      (failed: Error) => {
        if (!abort.signal.aborted) setError(failed);
      },
    );
    return () => abort.abort();
  }, [base, id]);
  return (
    <Drawer title={id} takesFocus={false} close={close}>
      <a class="btn" href={href(["db", database, "doc", id])}>
        Open
      </a>
      {error !== null && <Failure error={error} />}
      {text === null && error === null && <Skeleton rows={10} />}
      {text !== null && (
        <pre class="peeked">
          {text.length > shownCharacters ? `${text.slice(0, shownCharacters)}…` : text}
        </pre>
      )}
    </Drawer>
  );
}
