/**
 * JSON as a tree of names, values and types. Arrow keys move, expand and collapse; `*` expands all. Numbers keep
 * their text. Enter edits a value that is no list and no object.
 */
import { useMemo, useRef, useState } from "preact/hooks";
import { count } from "../base/format.ts";
import { type JsonNode, printSource } from "../json/json-source.ts";
import { JsonValueForm, typeOf } from "./json-value-form.tsx";

interface TreeRow {
  /** Path of names and indexes, as JSON text. */
  readonly key: string;
  readonly path: readonly string[];
  readonly level: number;
  readonly name: string;
  readonly node: JsonNode;
  readonly children: number;
}

const drawnMax = 2000;
const shownCharacters = 255;

export function JsonTree({
  label,
  node,
  change,
}: {
  label: string;
  node: JsonNode;
  /** Called with the path and the new value of an edited value; values cannot be edited if undefined. */
  change?: ((path: readonly string[], value: JsonNode) => void) | undefined;
}) {
  const [opened, setOpened] = useState<ReadonlySet<string>>(() => new Set(["[]"]));
  const [current, setCurrent] = useState(0);
  const [edited, setEdited] = useState<string | null>(null);
  const table = useRef<HTMLTableElement>(null);
  const rows = useMemo(() => rowsOf(node, opened), [node, opened]);
  const at = Math.min(current, rows.length - 1);
  const toggle = ({ key }: TreeRow, isOpen: boolean) => {
    const next = new Set(opened);
    if (isOpen) next.add(key);
    else next.delete(key);
    setOpened(next);
  };
  const go = (to: number) => {
    setCurrent(to);
    table.current?.querySelector<HTMLElement>(`[aria-rowindex="${to + 2}"]`)?.focus();
  };
  const isEditable = (row: TreeRow) => change !== undefined && isValue(row.node);
  const leave = () => {
    setEdited(null);
    go(at);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const row = rows[at];
    if ((event.target as Element).closest("form") !== null) return;
    if (row === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    const isOpen = opened.has(row.key);
    if (event.key === "ArrowDown") go(Math.min(at + 1, rows.length - 1));
    else if (event.key === "ArrowUp") go(Math.max(at - 1, 0));
    else if (event.key === "ArrowRight" && row.children > 0) toggle(row, true);
    else if (event.key === "ArrowLeft" && isOpen) toggle(row, false);
    else if (event.key === "ArrowLeft")
      go(
        Math.max(
          0,
          rows.findLastIndex((one, n) => n < at && one.level < row.level),
        ),
      );
    else if (event.key === "Enter" && isEditable(row)) setEdited(row.key);
    else if (event.key === "*") setOpened(new Set(allKeys(node)));
    else if (event.key === "c") void navigator.clipboard?.writeText(pathText(row.path));
    else return;
    event.preventDefault();
  };
  return (
    <div class="scroll grow">
      {/* biome-ignore lint/a11y/noNoninteractiveElementToInteractiveRole: rows open and close */}
      <table ref={table} role="treegrid" class="tree" aria-label={label} onKeyDown={onKeyDown}>
        <thead>
          <tr aria-rowindex={1}>
            <th>Name</th>
            <th>Value</th>
            <th>Type</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row, n) => (
            <tr
              key={row.key}
              aria-rowindex={n + 2}
              aria-level={row.level + 1}
              aria-expanded={row.children > 0 ? opened.has(row.key) : undefined}
              tabIndex={n === at ? 0 : -1}
              onFocus={() => setCurrent(n)}
              onClick={() => row.children > 0 && toggle(row, !opened.has(row.key))}
            >
              <td class="mono" style={{ paddingLeft: `${12 + 16 * row.level}px` }}>
                <span class="twist" aria-hidden="true">
                  {row.children === 0 ? "" : opened.has(row.key) ? "▾" : "▸"}
                </span>
                {row.name}
              </td>
              <ValueCells
                row={row}
                isEdited={row.key === edited}
                edit={isEditable(row) ? () => setEdited(row.key) : undefined}
                save={(value) => {
                  leave();
                  change?.(row.path, value);
                }}
                close={leave}
              />
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length === drawnMax && (
        <p class="note edge">
          Showing the first {count(drawnMax)} lines. Collapse some to see the rest.
        </p>
      )}
    </div>
  );
}

function ValueCells({
  row: { path, node },
  isEdited,
  edit,
  save,
  close,
}: {
  row: TreeRow;
  isEdited: boolean;
  /** Undefined for a value that cannot be edited. */
  edit: (() => void) | undefined;
  save: (value: JsonNode) => void;
  close: () => void;
}) {
  if (isEdited && edit !== undefined)
    return (
      <td colSpan={2}>
        <JsonValueForm name={pathText(path)} node={node} save={save} close={close} />
      </td>
    );
  return (
    <>
      <td class="mono">
        {edit === undefined ? (
          valueText(node)
        ) : (
          <button type="button" class="link value" tabIndex={-1} title="Edit" onClick={edit}>
            {valueText(node)}
          </button>
        )}
      </td>
      <td class="muted">{typeOf(node)}</td>
    </>
  );
}

function entriesOf(node: JsonNode): [string, JsonNode][] {
  if (Array.isArray(node)) return node.map((one, n) => [String(n), one]);
  return node instanceof Map ? [...node] : [];
}

function rowsOf(node: JsonNode, opened: ReadonlySet<string>): TreeRow[] {
  const rows: TreeRow[] = [];
  const add = (inner: JsonNode, path: readonly string[]) => {
    for (const [name, value] of entriesOf(inner)) {
      if (rows.length >= drawnMax) return;
      const at = [...path, name];
      const key = JSON.stringify(at);
      const children = entriesOf(value).length;
      rows.push({ key, path: at, level: path.length, name, node: value, children });
      if (children > 0 && opened.has(key)) add(value, at);
    }
  };
  add(node, []);
  return rows;
}

function allKeys(node: JsonNode, path: readonly string[] = []): string[] {
  return entriesOf(node).flatMap(([name, value]) => {
    const at = [...path, name];
    return [JSON.stringify(at), ...allKeys(value, at)];
  });
}

function pathText(path: readonly string[]): string {
  return path
    .map((name, n) => (/^\d+$/.test(name) ? `[${name}]` : n === 0 ? name : `.${name}`))
    .join("");
}

function valueText(node: JsonNode): string {
  if (Array.isArray(node)) return `[ ${count(node.length)} ]`;
  if (node instanceof Map) return `{ ${count(node.size)} }`;
  return printSource(node, 0).slice(0, shownCharacters);
}

/** Returns true for a value that is no list and no object. */
function isValue(node: JsonNode): boolean {
  return !Array.isArray(node) && !(node instanceof Map);
}
