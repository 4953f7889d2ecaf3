/** A graph of a document's references: incoming ones at the left, outgoing ones at the right. */
import { count } from "../../base/format.ts";
import { address, href } from "../../base/router.ts";
import { quoted } from "../documents/list-rows.ts";

export interface Reference {
  readonly path: string;
  readonly id: string;
}

/** A field of other documents that contains the id. */
export interface Referring {
  readonly collection: string;
  readonly path: string;
  readonly total: number;
  /** The first ones. */
  readonly ids: readonly string[];
}

interface Properties {
  readonly database: string;
  readonly id: string;
  readonly references: readonly Reference[];
  /** Ids of existing references, in lower case; null while unknown. */
  readonly there: ReadonlySet<string> | null;
  /** Null if not searched. */
  readonly referring: readonly Referring[] | null;
}

interface Node {
  readonly text: string;
  readonly path: string;
  readonly to: string;
  readonly isMissing: boolean;
  /** True for all documents of a field instead of one document. */
  readonly isGroup: boolean;
}

/** Distance of nodes, in pixels, as in pictures.css. */
const pitch = 44;
const shownMax = 12;

export function RelatedGraph({ database, id, references, there, referring }: Properties) {
  const documentAt = (other: string) =>
    href(["db", database, "doc", other], {
      side: "related",
      referring: referring === null ? undefined : "1",
      pane: address.value.query.get("pane") ?? undefined,
    });
  const from = (referring ?? []).flatMap(({ collection, path, total, ids }): Node[] => [
    {
      text: `${count(total)} ${collection}`,
      path,
      to: href(["db", database, "docs", collection], { where: `${path} = ${quoted(id)}` }),
      isMissing: false,
      isGroup: true,
    },
    ...ids.map((one) => ({
      text: one,
      path,
      to: documentAt(one),
      isMissing: false,
      isGroup: false,
    })),
  ]);
  const to = references.map(
    ({ id: other, path }): Node => ({
      text: other,
      path,
      to: documentAt(other),
      isMissing: there !== null && !there.has(other.toLowerCase()),
      isGroup: false,
    }),
  );
  const rows = Math.max(1, from.length, Math.min(shownMax, to.length));
  return (
    <>
      <div class="graph">
        {from.length > 0 && (
          <>
            <Nodes label="Referring documents" nodes={from} />
            <Edges nodes={from.length} rows={rows} />
          </>
        )}
        <div class="node self" title={id}>
          <b class="cut">{id}</b>
        </div>
        {to.length > 0 && (
          <>
            <Edges nodes={Math.min(shownMax, to.length)} rows={rows} isOut />
            <Nodes label="Documents that it refers to" nodes={to.slice(0, shownMax)} />
          </>
        )}
      </div>
      {to.length > shownMax && (
        <details>
          <summary>{count(to.length - shownMax)} more documents that it refers to</summary>
          <Nodes label="More documents that it refers to" nodes={to.slice(shownMax)} />
        </details>
      )}
    </>
  );
}

function Nodes({ label, nodes }: { label: string; nodes: readonly Node[] }) {
  return (
    <ul aria-label={label}>
      {nodes.map(({ text, path, to, isMissing, isGroup }) => (
        <li
          key={`${text}\n${path}`}
          class={isMissing ? "node missing" : isGroup ? "node all" : "node"}
          title={`${text} (${path})`}
        >
          <a class="idlink cut" href={to}>
            {text}
          </a>
          <small class="cut">
            {isMissing && <span class="warn">missing · </span>}
            {path}
          </small>
        </li>
      ))}
    </ul>
  );
}

/** Lines between the nodes of a column and the document; the columns are centered. */
function Edges({ nodes, rows, isOut = false }: { nodes: number; rows: number; isOut?: boolean }) {
  const height = rows * pitch;
  const middle = height / 2;
  const lines = Array.from({ length: nodes }, (_, at) => {
    const y = middle + (at - (nodes - 1) / 2) * pitch;
    const [near, far] = isOut ? [0, 100] : [100, 0];
    return `M${near},${middle}C50,${middle} 50,${y} ${far},${y}`;
  });
  return (
    <svg
      class="edges"
      height={height}
      viewBox={`0 0 100 ${height}`}
      preserveAspectRatio="none"
      aria-hidden="true"
    >
      <path d={lines.join("")} />
    </svg>
  );
}
