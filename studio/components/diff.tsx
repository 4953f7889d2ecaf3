/**
 * The difference of two texts: combined, side by side, or by field for JSON. The order of JSON keys is ignored unless
 * selected. F7 and Shift F7 move to the next and previous change.
 *
 * Large texts are compared, and long differences are drawn, only on request, so that the page stays responsive.
 */
import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { bytes, count, counted } from "../base/format.ts";
import {
  asLines,
  type DifferenceLine,
  difference,
  foldedRuns,
  type Part,
} from "../json/difference.ts";
import { parseSource } from "../json/json-source.ts";
import { changesOf, shortText } from "../json/merge.ts";

interface Properties {
  readonly before: string;
  readonly after: string;
  readonly language?: "json" | "text";
  /** Description of the two texts, for example "Yesterday 17:20 → yours". */
  readonly title?: ComponentChildren;
  /** Actions, shown after the view selection. */
  readonly children?: ComponentChildren;
}

type View = "together" | "sides" | "fields";

const views: readonly (readonly [View, string])[] = [
  ["together", "Together"],
  ["sides", "Side by side"],
  ["fields", "By fields"],
];
/** Maximum total length of texts that are compared without a request, in characters. */
const comparedImmediatelyMax = 1_000_000;
const comparedMax = 32_000_000;
const drawnLines = 1000;

export function Diff(properties: Properties) {
  const { before, after, title, children } = properties;
  const size = before.length + after.length;
  const [isAsked, setAsked] = useState(false);
  useEffect(() => setAsked(false), [before, after]);
  const isCompared = size <= comparedImmediatelyMax || (isAsked && size <= comparedMax);
  if (isCompared) return <Compared {...properties} />;
  return (
    <section class="difference" aria-label="Difference">
      <div class="difference-head">
        <b class="cut">{title}</b>
        <span class="grow" />
        {children}
      </div>
      <p class="note edge">
        <span>
          {before === after
            ? "No differences."
            : size <= comparedMax
              ? `The texts have ${bytes(size)}: comparing them takes a moment.`
              : `The texts have ${bytes(size)}, which is too large to compare here. Download both, and compare the files.`}
        </span>
        {size <= comparedMax && before !== after && (
          <button type="button" class="btn" onClick={() => setAsked(true)}>
            Compare
          </button>
        )}
      </p>
    </section>
  );
}

function Compared({ before, after, language = "json", title, children }: Properties) {
  const [view, setView] = useState<View>("together");
  const [keepsOrder, setKeepsOrder] = useState(false);
  const section = useRef<HTMLElement>(null);
  const isJson = language === "json";
  const lines = useMemo(
    () => difference(...(isJson ? asLines(before, after, keepsOrder) : ([before, after] as const))),
    [before, after, isJson, keepsOrder],
  );
  const removed = lines.filter(({ kind }) => kind === "removed").length;
  const added = lines.filter(({ kind }) => kind === "added").length;
  const shown = views.filter(([key]) => isJson || key !== "fields");
  const isSame = removed + added === 0;
  const go = (step: 1 | -1) => section.current !== null && goToChange(section.current, step);
  return (
    <section
      ref={section}
      class="difference"
      aria-label="Difference"
      onKeyDown={(event) => {
        if (event.key !== "F7") return;
        event.preventDefault();
        go(event.shiftKey ? -1 : 1);
      }}
    >
      <div class="difference-head">
        {title !== undefined && <b class="cut">{title}</b>}
        <span class="delta">
          <span class="bad">−{count(removed)}</span> <span class="ok">+{count(added)}</span>
        </span>
        <span class="grow" />
        {isJson && (
          <label class="row">
            <input
              type="checkbox"
              checked={keepsOrder}
              onChange={(event) => setKeepsOrder(event.currentTarget.checked)}
            />
            Order of keys
          </label>
        )}
        <fieldset class="seg">
          <legend class="hidden-label">How to show the difference</legend>
          {shown.map(([key, text]) => (
            <button
              key={key}
              type="button"
              aria-pressed={view === key}
              onClick={() => setView(key)}
            >
              {text}
            </button>
          ))}
        </fieldset>
        <button
          type="button"
          class="btn quiet"
          title="Next change (F7)"
          disabled={isSame}
          onClick={() => go(1)}
        >
          Next
        </button>
        {children}
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable areas must be reachable by keyboard */}
      <section class="diff" tabIndex={0} aria-label="Differing lines">
        {isSame ? (
          <p class="gap">No differences.</p>
        ) : view === "fields" ? (
          <Fields before={before} after={after} />
        ) : (
          <Lines lines={lines} isBeside={view === "sides"} />
        )}
      </section>
    </section>
  );
}

/** Moves to the next or previous change, relative to the last one visited. */
function goToChange(section: HTMLElement, step: 1 | -1): void {
  const changes = [...section.querySelectorAll<HTMLElement>("[data-change]")];
  const at = changes.findIndex((change) => change.hasAttribute("data-here"));
  const next = at < 0 ? (step > 0 ? 0 : changes.length - 1) : at + step;
  const found = changes[(next + changes.length) % changes.length];
  changes[at]?.removeAttribute("data-here");
  found?.setAttribute("data-here", "");
  found?.scrollIntoView({ block: "center" });
}

function Lines({ lines, isBeside }: { lines: readonly DifferenceLine[]; isBeside: boolean }) {
  const [opened, setOpened] = useState<ReadonlySet<number>>(new Set());
  const [most, setMost] = useState(drawnLines);
  useEffect(() => {
    setOpened(new Set());
    setMost(drawnLines);
  }, [lines]);
  const runs = useMemo(() => foldedRuns(lines), [lines]);
  const drawn: ComponentChildren[] = [];
  let left = most;
  for (const { isFolded, from, to } of runs) {
    if (isFolded && !opened.has(from)) {
      drawn.push(
        <button
          key={`fold ${from}`}
          type="button"
          class="gap"
          onClick={() => setOpened(new Set(opened).add(from))}
        >
          ⋯ {counted(to - from, "line")} alike
        </button>,
      );
      continue;
    }
    const part = lines.slice(from, Math.min(to, from + left));
    drawn.push(
      ...(isBeside
        ? sidesOf(part, from)
        : part.map((line, n) => rowOf(line, from + n, part[n - 1]))),
    );
    left -= part.length;
    if (left > 0) continue;
    drawn.push(
      <button key="more" type="button" class="gap" onClick={() => setMost(most + drawnLines)}>
        ⋯ more lines: show the next {count(drawnLines)}
      </button>,
    );
    break;
  }
  return <>{drawn}</>;
}

const signs = { same: "", removed: "−", added: "+" } as const;
const classes = { same: "", removed: "del", added: "add" } as const;
const spoken = { same: "", removed: "gone: ", added: "new: " } as const;

/** Renders a line. @param before the preceding line, which determines the first line of a change */
function rowOf(line: DifferenceLine, at: number, before: DifferenceLine | undefined) {
  const { kind, left, right } = line;
  const isFirst = kind !== "same" && (before === undefined || before.kind === "same");
  return (
    <div key={at} class={classes[kind]} {...(isFirst ? { "data-change": "" } : {})}>
      <span class="n">{kind === "removed" ? left : right}</span>
      <Sign kind={kind} />
      <Text parts={line.parts} />
    </div>
  );
}

/** Pairs removed lines with the added lines that replace them. */
function sidesOf(lines: readonly DifferenceLine[], from: number) {
  const rows = [];
  for (let at = 0; at < lines.length; ) {
    const line = lines[at] as DifferenceLine;
    if (line.kind === "same") {
      rows.push(besideRow(from + at, line, line, false));
      at++;
      continue;
    }
    let end = at;
    while (end < lines.length && lines[end]?.kind !== "same") end++;
    const part = lines.slice(at, end);
    const gone = part.filter(({ kind }) => kind === "removed");
    const made = part.filter(({ kind }) => kind === "added");
    for (let n = 0; n < Math.max(gone.length, made.length); n++)
      rows.push(besideRow(from + at + n, gone[n], made[n], n === 0));
    at = end;
  }
  return rows;
}

function besideRow(
  at: number,
  left: DifferenceLine | undefined,
  right: DifferenceLine | undefined,
  isFirst: boolean,
) {
  return (
    <div key={at} class="beside-lines" {...(isFirst ? { "data-change": "" } : {})}>
      <Side line={left} number={left?.left} />
      <Side line={right} number={right?.right} />
    </div>
  );
}

function Side({ line, number }: { line: DifferenceLine | undefined; number: number | undefined }) {
  if (line === undefined) return <div class="gap" />;
  return (
    <div class={classes[line.kind]}>
      <span class="n">{number}</span>
      <Sign kind={line.kind} />
      <Text parts={line.parts} />
    </div>
  );
}

function Sign({ kind }: { kind: DifferenceLine["kind"] }) {
  return (
    <span class="sign">
      <span aria-hidden="true">{signs[kind]}</span>
      {kind !== "same" && <span class="hidden-label">{spoken[kind]}</span>}
    </span>
  );
}

function Text({ parts }: { parts: readonly Part[] }) {
  return (
    <span>{parts.map(({ text, isChanged }, n) => (isChanged ? <b key={n}>{text}</b> : text))}</span>
  );
}

/** Renders the differing fields with their values before and after. */
function Fields({ before, after }: { before: string; after: string }) {
  const changes = useMemo(() => fieldsOf(before, after), [before, after]);
  if (changes === null)
    return <p class="gap">The texts are not JSON objects, so there are no fields to compare.</p>;
  const shown = changes.slice(0, drawnLines);
  return (
    <table aria-label="Differing fields">
      <thead>
        <tr>
          <th>Field</th>
          <th>Before</th>
          <th>After</th>
        </tr>
      </thead>
      <tbody>
        {shown.length === 0 && (
          <tr>
            <td colSpan={3}>Only the order of the keys differs.</td>
          </tr>
        )}
        {shown.map(({ path, base, mine }) => (
          <tr key={JSON.stringify(path)} data-change="">
            <td class="mono">{path.join(".")}</td>
            <td class="mono wrap">
              {base === undefined ? "–" : <span class="del">{shortText(base)}</span>}
            </td>
            <td class="mono wrap">
              {mine === undefined ? "–" : <span class="add">{shortText(mine)}</span>}
            </td>
          </tr>
        ))}
        {changes.length > shown.length && (
          <tr>
            <td colSpan={3}>and {counted(changes.length - shown.length, "more field")}</td>
          </tr>
        )}
      </tbody>
    </table>
  );
}

function fieldsOf(before: string, after: string) {
  try {
    const [left, right] = [parseSource(before), parseSource(after)];
    return left instanceof Map && right instanceof Map ? changesOf(left, left, right) : null;
  } catch {
    return null;
  }
}
