/**
 * How a map-reduce index arrives at its results: documents, their entries, the groups of entries with the same key, and
 * one result for each group. Lines connect what belongs together.
 *
 * Invariants:
 * - All nodes have the same height, so the ends of the lines are known from the positions of the nodes in their columns.
 */
import { counted } from "../../base/format.ts";

interface Node {
  readonly text: string;
  /** Position in the column on the left of the node that it comes from; undefined in the first column. */
  readonly from?: readonly number[];
}

/** The entries of documents, and their results. */
export interface MapReduceTrial {
  readonly Documents: readonly {
    readonly Id: string;
    readonly Entries: readonly unknown[];
    /** Keys of the entries of a map-reduce index. */
    readonly Keys?: readonly unknown[];
  }[];
  readonly ReduceResults: readonly unknown[];
  readonly ReduceKeys?: readonly unknown[];
}

const entriesMax = 100;
/** Height of a node with the distance to the next, in pixels; `.node` has the same. */
const step = 34;
const gapWidth = 48;

export function MapReduceGraph({ Documents, ReduceResults, ReduceKeys = [] }: MapReduceTrial) {
  const all = Documents.flatMap(({ Entries, Keys = [] }, document) =>
    Entries.map((entry, at) => ({ entry, document, key: JSON.stringify(Keys[at]) })),
  );
  const shown = all.slice(0, entriesMax);
  if (shown.length === 0 || shown[0]?.key === undefined) return null;
  const groups = [...new Set(shown.map(({ key }) => key))];
  const columns: { title: string; nodes: readonly Node[] }[] = [
    { title: "Documents", nodes: Documents.map(({ Id }) => ({ text: Id })) },
    {
      title: "Map entries",
      nodes: shown.map(({ entry, document }) => ({
        text: JSON.stringify(entry),
        from: [document],
      })),
    },
    {
      title: "Groups",
      nodes: groups.map((group) => ({
        text: group,
        from: shown.flatMap(({ key }, at) => (key === group ? [at] : [])),
      })),
    },
    {
      title: "Results",
      nodes: ReduceKeys.flatMap((key, at) => {
        const from = groups.indexOf(JSON.stringify(key));
        return from < 0 ? [] : [{ text: JSON.stringify(ReduceResults[at]), from: [from] }];
      }),
    },
  ];
  const height = step * Math.max(...columns.map(({ nodes }) => nodes.length));
  return (
    <section aria-label="From documents to results" class="stack">
      <div class="scroll">
        <div class="map-reduce">
          {columns.map(({ title, nodes }, at) => (
            <Column
              key={title}
              title={title}
              nodes={nodes}
              before={columns[at - 1]?.nodes ?? []}
              height={height}
            />
          ))}
        </div>
      </div>
      <p class="muted">
        The picture shows the tested documents only: other documents of the collection may add
        entries to these groups.
        {all.length > shown.length &&
          ` It shows ${entriesMax} of ${counted(all.length, "entry", "entries")}.`}
      </p>
    </section>
  );
}

function Column({
  title,
  nodes,
  before,
  height,
}: {
  title: string;
  nodes: readonly Node[];
  before: readonly Node[];
  height: number;
}) {
  const middle = (at: number) => (at + 0.5) * step;
  const lines = nodes.flatMap(({ from = [] }, at) =>
    from.map(
      (start) =>
        `M0 ${middle(start)}C${gapWidth / 2} ${middle(start)} ${gapWidth / 2} ${middle(at)} ${gapWidth} ${middle(at)}`,
    ),
  );
  return (
    <>
      {before.length > 0 && (
        <svg class="links" width={gapWidth} height={height} aria-hidden="true">
          <path d={lines.join("")} />
        </svg>
      )}
      <div class="nodes">
        <h3>{title}</h3>
        <ol aria-label={title}>
          {nodes.map(({ text, from = [] }, at) => (
            <li key={String(at)} class="node mono cut" title={text}>
              {text}
              {from.length > 0 && (
                <span class="hidden-label">
                  , from {from.map((one) => before[one]?.text).join(" and ")}
                </span>
              )}
            </li>
          ))}
        </ol>
      </div>
    </>
  );
}
