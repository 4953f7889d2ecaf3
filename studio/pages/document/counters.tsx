/** The counters of a document, with all digits. */

import { useEffect, useState } from "preact/hooks";
import { watch } from "../../base/changes.ts";
import { getText, send } from "../../base/client.ts";
import { may } from "../../base/identity.ts";
import { Icon } from "../../components/icon.tsx";
import { Failure, Skeleton } from "../../components/messages.tsx";
import { type JsonNode, JsonNumber, memberOf, parseSource } from "../../json/json-source.ts";

interface Properties {
  readonly database: string;
  readonly base: string;
  readonly id: string;
  counted(counters: number): void;
}

interface Counter {
  readonly name: string;
  readonly digits: string;
}

type Change =
  | { readonly Type: "Increment"; readonly CounterName: string; readonly Delta: number }
  | { readonly Type: "Delete"; readonly CounterName: string };

export function Counters({ database, base, id, counted }: Properties) {
  const [counters, setCounters] = useState<readonly Counter[] | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const [round, setRound] = useState(0);
  const reload = () => setRound((before) => before + 1);
  useEffect(() => watch(database, "watch-document-counters", id, reload), [database, id]);
  useEffect(() => {
    const abort = new AbortController();
    getText(`${base}/counters?docId=${encodeURIComponent(id)}`, abort.signal).then(
      ({ body }) => {
        const found = ((memberOf(parseSource(body), "Counters") ?? []) as JsonNode[]).map(
          (one): Counter => {
            const total = memberOf(one, "TotalValue");
            return {
              name: String(memberOf(one, "CounterName")),
              digits: total instanceof JsonNumber ? total.digits : "0",
            };
          },
        );
        setCounters(found);
        counted(found.length);
        setError(null);
      },
      (failed: Error) => {
        if (!abort.signal.aborted) setError(failed);
      },
    );
    return () => abort.abort();
  }, [base, id, round]);
  const change = async (operation: Change) => {
    try {
      await send("POST", `${base}/counters`, {
        json: { Documents: [{ DocumentId: id, Operations: [operation] }] },
      });
      reload();
    } catch (failed) {
      setError(failed as Error);
    }
  };
  const add = (counter: string, Delta: number) =>
    change({ Type: "Increment", CounterName: counter, Delta });
  if (counters === null && error === null) return <Skeleton rows={4} />;
  return (
    <div class="scroll grow side-body">
      {error !== null && <Failure error={error} retry={reload} />}
      <ul class="parts" aria-label="Counters">
        {(counters ?? []).map((counter) => (
          <li key={counter.name} class="row">
            <b class="cut">{counter.name}</b>
            <span class="grow" />
            {may("write") && (
              <button
                type="button"
                class="btn icon"
                aria-label={`Subtract 1 from ${counter.name}`}
                onClick={() => void add(counter.name, -1)}
              >
                −
              </button>
            )}
            <output class="num counter" aria-label={counter.name}>
              {grouped(counter.digits)}
            </output>
            {may("write") && (
              <>
                {" "}
                <button
                  type="button"
                  class="btn icon"
                  aria-label={`Add 1 to ${counter.name}`}
                  onClick={() => void add(counter.name, 1)}
                >
                  +
                </button>
                <button
                  type="button"
                  class="btn quiet icon danger"
                  aria-label={`Delete ${counter.name}`}
                  onClick={() => void change({ Type: "Delete", CounterName: counter.name })}
                >
                  <Icon name="x" />
                </button>
              </>
            )}
          </li>
        ))}
      </ul>
      {counters?.length === 0 && (
        <p class="muted">
          A counter is a number beside the document. Concurrent increments do not conflict.
        </p>
      )}
      {may("write") && <NewCounter add={(name) => void add(name, 0)} />}
    </div>
  );
}

function NewCounter({ add }: { add: (name: string) => void }) {
  const [name, setName] = useState("");
  return (
    <form
      class="row"
      onSubmit={(event) => {
        event.preventDefault();
        if (name.trim() !== "") add(name.trim());
        setName("");
      }}
    >
      <span class="field">
        <input
          aria-label="Name of a new counter"
          placeholder="likes"
          value={name}
          onInput={(event) => setName(event.currentTarget.value)}
        />
      </span>
      <button type="submit" class="btn" disabled={name.trim() === ""}>
        Add a counter
      </button>
    </form>
  );
}

/** Groups digits by thousands, without rounding 64-bit numbers. */
function grouped(digits: string): string {
  return digits.replace(/\B(?=(\d{3})+$)/g, ",");
}
