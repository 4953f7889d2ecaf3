/** Test of a definition on a document: its entries, and their reduce results. */
import { useEffect, useRef, useState } from "preact/hooks";
import { send } from "../../base/client.ts";
import { counted } from "../../base/format.ts";
import { address } from "../../base/router.ts";
import { Icon } from "../../components/icon.tsx";
import { Failure } from "../../components/messages.tsx";
import type { Definition, IndexStats } from "./index-info.ts";
import { MapReduceGraph, type MapReduceTrial } from "./map-reduce-graph.tsx";

interface Tried extends MapReduceTrial {
  readonly Errors: readonly {
    readonly Document: string;
    readonly Action: string;
    readonly Error: string;
    readonly Line?: number;
  }[];
}

export function TestTab({
  database,
  definition,
}: {
  database: string;
  definition: Definition;
  index: IndexStats;
}) {
  return (
    <div class="scroll grow">
      <Trial
        database={database}
        definition={definition}
        first={address.value.query.get("doc") ?? ""}
      />
    </div>
  );
}

/** @param first id of the document to test immediately; "" for none */
export function Trial({
  database,
  definition,
  first,
}: {
  database: string;
  definition: Definition;
  first: string;
}) {
  const [id, setId] = useState(first);
  const [tried, setTried] = useState<Tried | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const present = useRef<AbortController | null>(null);
  const test = async () => {
    present.current?.abort();
    const abort = new AbortController();
    present.current = abort;
    setError(null);
    try {
      const json = {
        IndexDefinition: definition,
        QueryParameters: {},
        ...(id.trim() === "" ? { MaxDocumentsToProcess: 5 } : { Ids: [id.trim()] }),
      };
      const path = `/databases/${encodeURIComponent(database)}/indexes/test`;
      const { body } = await send<Tried>("POST", path, { json, signal: abort.signal });
      setTried(body);
    } catch (failed) {
      if (abort.signal.aborted) return;
      setTried(null);
      setError(failed as Error);
    }
  };
  useEffect(() => {
    if (first !== "") void test();
    return () => present.current?.abort();
  }, [first]);
  return (
    <div class="inset stack">
      <form
        class="row"
        onSubmit={(event) => {
          event.preventDefault();
          void test();
        }}
      >
        <div class="field grow">
          <input
            class="mono"
            aria-label="Document to test"
            placeholder="Document id; empty for the first five"
            value={id}
            onInput={(event) => setId(event.currentTarget.value)}
          />
        </div>
        <button type="submit" class="btn">
          <Icon name="play" />
          Test
        </button>
      </form>
      {error !== null && <Failure error={error} />}
      {tried !== null && <Outcome tried={tried} isReduce={definition.Reduce !== null} />}
    </div>
  );
}

function Outcome({ tried, isReduce }: { tried: Tried; isReduce: boolean }) {
  return (
    <div class="stack" role="status">
      {tried.Errors.map(({ Document, Action, Error: text, Line }) => (
        <p key={Document} class="note bad">
          <Icon name="bad" />
          <span>
            {Action}
            {Line !== undefined && `, line ${Line}`}, <code>{Document}</code>: {text}
          </span>
        </p>
      ))}
      {isReduce && <MapReduceGraph {...tried} />}
      {tried.Documents.map(({ Id, Entries }) => (
        <div key={Id}>
          <h3>
            <code>{Id}</code>: {counted(Entries.length, "entry", "entries")}
          </h3>
          {Entries.length > 0 && <pre class="source scroll">{Entries.map(asText).join("\n")}</pre>}
        </div>
      ))}
      {isReduce && (
        <div>
          <h3>The reduce returned {counted(tried.ReduceResults.length, "result")}</h3>
          {tried.ReduceResults.length > 0 && (
            <pre class="source scroll">{tried.ReduceResults.map(asText).join("\n")}</pre>
          )}
        </div>
      )}
    </div>
  );
}

function asText(value: unknown): string {
  return JSON.stringify(value, null, 4);
}
