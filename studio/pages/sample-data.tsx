/** Imports the sample data: into this database if it is empty, otherwise into a new one. */

import { useState } from "preact/hooks";
import { useDatabaseName } from "../base/database-name.ts";
import { may } from "../base/identity.ts";
import { useResource } from "../base/resource.ts";
import { href, open } from "../base/router.ts";
import { createDatabase, putSampleData } from "../base/sample-data.ts";
import { Failure } from "../components/messages.tsx";

export function SampleData({ database }: { database: string }) {
  const base = `/databases/${encodeURIComponent(database)}`;
  const stats = useResource<{ CountOfDocuments: number }>(`${base}/stats/essential`);
  const [name, setName] = useState("demo");
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<Error | null>(null);
  const problem = useDatabaseName(name);
  const isEmpty = stats.body?.CountOfDocuments === 0;
  const target = isEmpty ? database : name;
  const isAllowed = isEmpty || may("operator");
  const put = async () => {
    setBusy(true);
    setError(null);
    try {
      if (!isEmpty) await createDatabase(name);
      await putSampleData(target);
      open(href(["db", target, "docs"]));
    } catch (failed) {
      setError(failed as Error);
      setBusy(false);
    }
  };
  return (
    <section class="panel form-panel" aria-label="Sample data">
      <div class="body stack">
        <p class="soft">
          A small shop: 1,059 documents in 9 collections, with indexes, attachments, counters, time
          series and revisions.
        </p>
        {stats.body !== undefined && !isEmpty && isAllowed && (
          <label class="form">
            {database} contains documents, so the sample data is imported into a new database
            <div class="field">
              <input
                value={name}
                aria-invalid={problem !== null}
                onInput={(event) => setName(event.currentTarget.value)}
              />
            </div>
            <small class={problem === null ? "" : "bad"} aria-live="polite">
              {problem ?? ""}
            </small>
          </label>
        )}
        {error !== null && <Failure error={error} />}
        {stats.body !== undefined && !isAllowed && (
          <p>{database} contains documents, and only operators can create databases.</p>
        )}
        {isAllowed && (
          <div>
            <button
              type="button"
              class="btn primary"
              disabled={stats.body === undefined || isBusy || (!isEmpty && problem !== null)}
              onClick={() => void put()}
            >
              {isBusy ? "Importing" : isEmpty ? `Import into ${database}` : `Create ${name}`}
            </button>
          </div>
        )}
      </div>
    </section>
  );
}
