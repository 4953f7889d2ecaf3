/** Other lists of a database: compare-exchange values, identities, and deleted documents with revisions. */

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { getText, send } from "../../base/client.ts";
import { ago, counted } from "../../base/format.ts";
import { may } from "../../base/identity.ts";
import { useResource } from "../../base/resource.ts";
import { href } from "../../base/router.ts";
import { Icon } from "../../components/icon.tsx";
import { Empty, Failure, Skeleton } from "../../components/messages.tsx";
import { actionsColumn, numeric, Table } from "../../components/table.tsx";
import { showToast } from "../../components/toast.tsx";
import {
  type JsonNode,
  JsonNumber,
  memberOf,
  parseSource,
  printSource,
} from "../../json/json-source.ts";

/** Titles by name in the address. */
export const otherLists: Readonly<Record<string, string>> = {
  "@cmpxchg": "Compare-exchange",
  "@identities": "Identities",
  "@revisions-bin": "Deleted, kept",
};

const pageSize = 200;

interface Properties {
  readonly base: string;
  readonly database: string;
}

export function OtherList({ name, ...properties }: Properties & { name: string }) {
  return (
    <div class="pane">
      <div class="tools">
        <h1>{otherLists[name]}</h1>
      </div>
      {name === "@cmpxchg" && <CompareExchange {...properties} />}
      {name === "@identities" && <Identities {...properties} />}
      {name === "@revisions-bin" && <Bin {...properties} />}
    </div>
  );
}

/** Loads a list page by page, with a button for the next page. */
function usePages(path: string) {
  const [rows, setRows] = useState<readonly JsonNode[] | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const [hasMore, setMore] = useState(false);
  const [round, setRound] = useState(0);
  const [start, setStart] = useState(0);
  useEffect(() => {
    const abort = new AbortController();
    const query = `start=${start}&pageSize=${pageSize}`;
    getText(`${path}${path.includes("?") ? "&" : "?"}${query}`, abort.signal).then(
      ({ body }) => {
        const found = (memberOf(parseSource(body), "Results") ?? []) as JsonNode[];
        setRows((before) => (start === 0 ? found : [...(before ?? []), ...found]));
        setMore(found.length === pageSize);
        setError(null);
      },
      (failed: Error) => {
        if (!abort.signal.aborted) setError(failed);
      },
    );
    return () => abort.abort();
  }, [path, start, round]);
  const reload = () => {
    setStart(0);
    setRound((before) => before + 1);
  };
  return { rows, error, hasMore, more: () => setStart(start + pageSize), reload };
}

function text(node: JsonNode | undefined): string {
  if (typeof node === "string") return node;
  return node instanceof JsonNumber ? node.digits : "";
}

function CompareExchange({ base }: Properties) {
  const { rows, error, hasMore, more, reload } = usePages(`${base}/cmpxchg`);
  if (error !== null) return <Failure error={error} retry={reload} />;
  if (rows === null) return <Skeleton rows={8} />;
  if (rows.length === 0) {
    return (
      <Empty icon="doc" title="No compare-exchange values">
        <p>
          A compare-exchange value is changed only if its index is the one that the writer expects.
        </p>
      </Empty>
    );
  }
  return (
    <Rows hasMore={hasMore} more={more}>
      <Table
        kind="data"
        label="Compare-exchange values"
        columns={["Key", "Value", numeric("Index")]}
      >
        {rows.map((row) => {
          const key = text(memberOf(row, "Key"));
          const value = memberOf(memberOf(row, "Value"), "Object") ?? null;
          return (
            <tr key={key}>
              <td class="mono">{key}</td>
              <td class="mono">{printSource(value, 0).slice(0, 255)}</td>
              <td class="num">{text(memberOf(row, "Index"))}</td>
            </tr>
          );
        })}
      </Table>
    </Rows>
  );
}

function Identities({ base }: Properties) {
  const { body, error, reload } = useResource<Record<string, number>>(`${base}/debug/identities`);
  if (error !== undefined) return <Failure error={error} retry={reload} />;
  if (body === undefined) return <Skeleton rows={8} />;
  const rows = Object.entries(body);
  if (rows.length === 0) {
    return (
      <Empty icon="doc" title="No identities">
        <p>Saving a document with the id users| makes users/1, users/2 and so on.</p>
      </Empty>
    );
  }
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable areas must be reachable by keyboard
    <div class="scroll" tabIndex={0}>
      <Table kind="data" label="Identities" columns={["Identity", numeric("Last value")]}>
        {rows.map(([name, value]) => (
          <tr key={name}>
            <td class="mono">{name}</td>
            <td class="num">{value}</td>
          </tr>
        ))}
      </Table>
    </div>
  );
}

function Bin({ base, database }: Properties) {
  const { rows, error, hasMore, more, reload } = usePages(`${base}/revisions/bin`);
  const [failed, setFailed] = useState<Error | null>(null);
  const restore = async (id: string) => {
    try {
      const { body } = await getText(
        `${base}/revisions?id=${encodeURIComponent(id)}&start=0&pageSize=2`,
      );
      const found = (memberOf(parseSource(body), "Results") ?? []) as JsonNode[];
      const last = found.find(
        (one) => !text(memberOf(memberOf(one, "@metadata"), "@flags")).includes("DeleteRevision"),
      );
      const changeVector = text(memberOf(memberOf(last, "@metadata"), "@change-vector"));
      await send("POST", `${base}/revisions/revert/docs`, {
        json: { IdToChangeVector: { [id]: changeVector } },
      });
      showToast(`Restored ${id}`);
      reload();
    } catch (thrown) {
      setFailed(thrown as Error);
    }
  };
  if (error !== null) return <Failure error={error} retry={reload} />;
  if (rows === null) return <Skeleton rows={8} />;
  if (rows.length === 0) {
    return (
      <Empty icon="doc" title="No deleted documents">
        <p>Deleted documents of collections with revisions are listed here.</p>
      </Empty>
    );
  }
  const nowMs = Date.now();
  return (
    <Rows hasMore={hasMore} more={more}>
      {failed !== null && <Failure error={failed} />}
      <Table
        kind="data"
        label="Deleted documents"
        columns={["Id", "Collection", "Deleted", actionsColumn]}
      >
        {rows.map((row) => {
          const metadata = memberOf(row, "@metadata");
          const id = text(memberOf(metadata, "@id"));
          const deletedAt = text(memberOf(metadata, "@last-modified"));
          return (
            <tr key={id}>
              <td>
                <a class="idlink" href={href(["db", database, "doc", id])}>
                  {id}
                </a>
              </td>
              <td>{text(memberOf(metadata, "@collection"))}</td>
              <td class="muted" title={deletedAt}>
                {ago(deletedAt, nowMs)}
              </td>
              <td class="num">
                {may("write") && (
                  <button
                    type="button"
                    class="btn"
                    aria-label={`Restore ${id}`}
                    onClick={() => void restore(id)}
                  >
                    <Icon name="run" />
                    Restore
                  </button>
                )}
              </td>
            </tr>
          );
        })}
      </Table>
    </Rows>
  );
}

function Rows({
  hasMore,
  more,
  children,
}: {
  hasMore: boolean;
  more: () => void;
  children: ComponentChildren;
}) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable areas must be reachable by keyboard
    <div class="scroll grow" tabIndex={0}>
      {children}
      {hasMore && (
        <button type="button" class="btn" onClick={more}>
          {counted(pageSize, "more row")}
        </button>
      )}
    </div>
  );
}
