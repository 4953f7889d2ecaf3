/** The state line: connection, running operations, indexes, the last request, the version. */
import { useEffect, useState } from "preact/hooks";
import { link, reconnectNow, watch } from "../base/changes.ts";
import { connection, get } from "../base/client.ts";
import { counted, milliseconds } from "../base/format.ts";
import { address, href } from "../base/router.ts";
import { Icon } from "../components/icon.tsx";
import { databaseNames } from "./databases.ts";
import { server } from "./server.ts";

const shownMs = 6000;

export function StateLine() {
  const { last } = connection.value;
  const version = server.value?.version;
  const [area, name] = address.value.path;
  const isThere = area === "db" && databaseNames.value?.includes(name ?? "");
  return (
    // biome-ignore lint/a11y/useAriaPropsSupportedByRole: a landmark can have a label
    <footer class="foot" aria-label="State">
      <Connection />
      {isThere && name !== undefined && <OfDatabase key={name} database={name} />}
      <span class="grow" />
      {last !== null && (
        <span>
          {last.what} · {milliseconds(last.ms)}
        </span>
      )}
      {version !== undefined && <span>Jackdaw, compatible with {version}</span>}
    </footer>
  );
}

function Connection() {
  const { state, retryAtMs, returnedAtMs } = link.value;
  const isOnline = connection.value.isOnline && state === "connected";
  const seconds = useSecondsTo(isOnline ? null : retryAtMs);
  const [isBack, setBack] = useState(false);
  useEffect(() => {
    if (returnedAtMs === 0) return undefined;
    setBack(true);
    const timer = setTimeout(() => setBack(false), shownMs);
    return () => clearTimeout(timer);
  }, [returnedAtMs]);
  if (isOnline) {
    return (
      <span class="ok" role="status">
        <Icon name="check" />
        <span class="soft">{isBack ? "Reconnected" : "Connected"}</span>
      </span>
    );
  }
  return (
    <>
      <span class="bad" role="alert">
        <Icon name="bad" />
        Not connected.
      </span>
      <span>{state === "connecting" ? "Connecting" : `Reconnecting in ${seconds} s`}</span>
      <button type="button" class="link" onClick={reconnectNow}>
        Reconnect now
      </button>
    </>
  );
}

function useSecondsTo(atMs: number | null): number {
  const [nowMs, setNow] = useState(Date.now);
  useEffect(() => {
    if (atMs === null) return undefined;
    setNow(Date.now());
    const timer = setInterval(() => setNow(Date.now()), 500);
    return () => clearInterval(timer);
  }, [atMs]);
  return Math.max(0, Math.ceil(((atMs ?? nowMs) - nowMs) / 1000));
}

interface FooterStats {
  readonly CountOfStaleIndexes: number;
  readonly CountOfIndexingErrors: number;
}

const pollMs = 10_000;

function OfDatabase({ database }: { database: string }) {
  const stats = useFooter(database);
  const operations = useRunning(database);
  return (
    <>
      {operations.length > 0 && (
        <a href={href(["db", database, "patch"])}>
          <Icon name="run" kind="run" />
          {operations.length === 1
            ? operations[0]
            : counted(operations.length, "operation is running", "operations are running")}
        </a>
      )}
      {stats !== null && stats.CountOfStaleIndexes > 0 && (
        <a href={href(["db", database, "indexes"], { show: "stale" })}>
          <Icon name="clock" />
          {counted(stats.CountOfStaleIndexes, "index stale", "indexes stale")}
        </a>
      )}
      {stats !== null && stats.CountOfIndexingErrors > 0 && (
        <a href={href(["db", database, "indexes"], { show: "errors" })}>
          <Icon name="bad" />
          {counted(stats.CountOfIndexingErrors, "index error")}
        </a>
      )}
    </>
  );
}

/** Reloads the statistics when an index changes, at most every two seconds, and periodically. */
function useFooter(database: string): FooterStats | null {
  const [stats, setStats] = useState<FooterStats | null>(null);
  useEffect(() => {
    let soon: ReturnType<typeof setTimeout> | undefined;
    const path = `/databases/${encodeURIComponent(database)}/studio/footer/stats`;
    const ask = () => {
      clearTimeout(soon);
      soon = undefined;
      if (document.hidden) return;
      get<FooterStats>(path).then(
        ({ body }) => setStats(body),
        // Show less on an error.
        () => setStats(null),
      );
    };
    const stop = watch(database, "watch-indexes", null, () => {
      soon ??= setTimeout(ask, 2000);
    });
    const timer = setInterval(ask, pollMs);
    ask();
    return () => {
      stop();
      clearTimeout(soon);
      clearInterval(timer);
    };
  }, [database]);
  return stats;
}

interface OperationRow {
  readonly Id: number;
  readonly Description?: { readonly TaskType?: string; readonly Description?: string };
  readonly State: { readonly Status: string; readonly Progress?: unknown };
}

/** Returns descriptions of the running operations. */
function useRunning(database: string): readonly string[] {
  const [running, setRunning] = useState<ReadonlyMap<number, string>>(new Map());
  useEffect(() => {
    const path = `/databases/${encodeURIComponent(database)}/operations`;
    const ask = () =>
      void get<{ Results: readonly OperationRow[] }>(path).then(
        ({ body }) =>
          setRunning(
            new Map(
              body.Results.filter(({ State }) => State.Status === "InProgress").map((row) => [
                row.Id,
                textOf(row.Id, row.State.Progress),
              ]),
            ),
          ),
        () => undefined,
      );
    ask();
    return watch(database, "watch-operations", null, (notices) => {
      if (notices.some(({ Type }) => Type === "Missed")) ask();
      setRunning((before) => {
        const next = new Map(before);
        for (const notice of notices) {
          if (notice.Type !== "OperationStatusChange") continue;
          const { OperationId, State } = notice.Value;
          if (State.Status === "InProgress")
            next.set(OperationId, textOf(OperationId, State.Progress));
          else next.delete(OperationId);
        }
        return next;
      });
    });
  }, [database]);
  return [...running.values()];
}

function textOf(id: number, progress: unknown): string {
  const { Processed, Total } = (progress ?? {}) as { Processed?: number; Total?: number };
  const isKnown = typeof Processed === "number" && typeof Total === "number" && Total > 0;
  return `Operation ${id}${isKnown ? ` · ${Math.floor((100 * Processed) / Total)} %` : ""}`;
}
