/** Actions for a server without databases. */
import { useState } from "preact/hooks";
import { useDatabaseName } from "../base/database-name.ts";
import { identity } from "../base/identity.ts";
import { href, open } from "../base/router.ts";
import { createDatabase, putSampleData } from "../base/sample-data.ts";
import { Failure } from "../components/messages.tsx";
import { serverOrigin } from "../shell/server.ts";

export function FirstStart({ restore }: { restore: () => void }) {
  const [name, setName] = useState("shop");
  const [making, setMaking] = useState<"own" | "demo" | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const problem = useDatabaseName(name);
  const isReady = name !== "" && problem === null && making === null;
  const make = async (wanted: string, kind: "own" | "demo") => {
    setMaking(kind);
    setError(null);
    try {
      await createDatabase(wanted);
      if (kind === "demo") await putSampleData(wanted);
      open(href(["db", wanted, "docs"]));
    } catch (failed) {
      setError(failed as Error);
      setMaking(null);
    }
  };
  return (
    <div class="hero">
      <div class="stack-2">
        <h2 class="big">The server is running. It has no database yet.</h2>
        <p class="soft">
          It listens on <code>{serverOrigin()}</code>
          {identity.value === null ? "." : `, and you are signed in as ${identity.value.name}.`}
        </p>
      </div>
      {error !== null && <Failure error={error} />}
      <div class="cards">
        <form
          class="panel card"
          onSubmit={(event) => {
            event.preventDefault();
            if (isReady) void make(name, "own");
          }}
        >
          <h2>Create a database</h2>
          <label class="form">
            Name
            <div class="field">
              <input
                value={name}
                aria-invalid={problem !== null}
                aria-describedby="first-problem"
                onInput={(event) => setName(event.currentTarget.value)}
              />
            </div>
            <small id="first-problem" class={problem === null ? "" : "bad"} aria-live="polite">
              {problem ??
                "Letters, digits, dots, dashes and underscores. The name is part of URLs."}
            </small>
          </label>
          <div>
            <button type="submit" class="btn primary" disabled={!isReady}>
              {making === "own" ? "Creating" : `Create ${name}`}
            </button>
          </div>
        </form>
        <section class="panel card" aria-label="Try with sample data">
          <h2>Try with sample data</h2>
          <p class="soft">
            Create “demo” with the sample shop: 1,059 documents with indexes, revisions and
            attachments. This takes a second or two. It can be deleted with one click.
          </p>
          {making === "demo" && (
            <p role="status" class="soft">
              Creating demo…
            </p>
          )}
          <div>
            <button
              type="button"
              class="btn"
              disabled={making !== null}
              onClick={() => void make("demo", "demo")}
            >
              Create demo with sample data
            </button>
          </div>
        </section>
        <section class="panel card" aria-label="Restore a backup">
          <h2>Restore a backup</h2>
          <p class="soft">From a folder on the server, with backups of this or another server.</p>
          <div>
            <button type="button" class="btn" onClick={restore}>
              Restore from elsewhere…
            </button>
          </div>
        </section>
      </div>
    </div>
  );
}
