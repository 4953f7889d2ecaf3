/**
 * JSON as a tree of names, values and types. Arrow keys move, expand and collapse; `*` expands all. Numbers keep
 * their text.
 */
import { useMemo, useRef, useState } from "preact/hooks";
import { count } from "../base/format.ts";
import { type JsonNode, JsonNumber, printSource } from "../json/json-source.ts";

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

export function JsonTree({ label, node }: { label: string; node: JsonNode }) {
  const [opened, setOpened] = useState<ReadonlySet<string>>(() => new Set(["[]"]));
  const [current, setCurrent] = useState(0);
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
  const onKeyDown = (event: KeyboardEvent) => {
    const row = rows[at];
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
              <td class="mono">{valueText(row.node)}</td>
              <td class="muted">{typeOf(row.node)}</td>
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

function typeOf(node: JsonNode): string {
  if (node === null) return "null";
  if (node instanceof JsonNumber) return "num";
  if (Array.isArray(node)) return "list";
  if (node instanceof Map) return "object";
  return typeof node === "boolean" ? "bool" : "text";
}
