/** Formats text for people (colors, tables, sizes and durations) and CSV. */
import { styleText } from "node:util";
import stringWidth from "fast-string-width";
import type { Variables } from "../server/settings/setting-sources.ts";
import { RawJson } from "./json-text.ts";

type Style = "bold" | "dim" | "red" | "green" | "yellow";
export type Paint = (style: Style, text: string) => string;

/** Returns a painter that uses colors on a terminal, unless FORCE_COLOR or NO_COLOR overrides it. */
export function painter(isTerminal: boolean, environment: Variables): Paint {
  const {
    NO_COLOR: none = "",
    FORCE_COLOR: force,
    TERM: term,
  } = environment as {
    NO_COLOR?: string;
    FORCE_COLOR?: string;
    TERM?: string;
  };
  const isForced = force !== undefined && force !== "0" && force !== "false";
  const has = none === "" && (isForced || (isTerminal && term !== "dumb"));
  return has
    ? (style, text) => styleText(style, text, { validateStream: false })
    : (_style, text) => text;
}

/** Returns aligned columns under a header, with numbers right-aligned. Lines are truncated at `width`, if defined. */
export function tableLines(
  header: readonly string[],
  rows: readonly (readonly unknown[])[],
  width: number | undefined,
  paint: Paint,
): string[] {
  const cells = rows.map((row) => row.map((value) => oneLine(cellText(value))));
  const widths = header.map((name, column) =>
    Math.max(stringWidth(name), ...cells.map((row) => stringWidth(row[column] ?? ""))),
  );
  const isRight = header.map(
    (_name, column) => rows.length > 0 && rows.every((row) => isNumber(row[column])),
  );
  const line = (row: readonly string[]) => {
    const padded = row.map((text, column) => {
      const space = " ".repeat(Math.max(0, (widths[column] ?? 0) - stringWidth(text)));
      return isRight[column] ? space + text : text + space;
    });
    return cut(padded.join("  ").trimEnd(), width);
  };
  return [paint("bold", line(header)), ...cells.map(line)];
}

function isNumber(value: unknown): boolean {
  return typeof value === "number" || (value instanceof RawJson && value.isNumber);
}

/** Returns a value as a cell of a table or CSV: objects as JSON, an empty string for null. */
function cellText(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (value instanceof RawJson) return value.text;
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

function oneLine(text: string): string {
  return text.replace(/\p{Cc}/gu, " ");
}

function cut(text: string, width: number | undefined): string {
  if (width === undefined || stringWidth(text) <= width) return text;
  let kept = "";
  let used = 0;
  for (const character of text) {
    used += stringWidth(character);
    if (used > width - 1) break;
    kept += character;
  }
  return `${kept}…`;
}

/** Returns a line of CSV (RFC 4180) without line break. */
export function csvLine(values: readonly unknown[]): string {
  return values
    .map(cellText)
    .map((text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text))
    .join(",");
}

/** Formats a count: `20,000`. */
export function countText(count: number): string {
  return count.toLocaleString("en");
}

export function sizeText(bytes: number): string {
  const units = ["bytes", "KB", "MB", "GB", "TB"];
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${unit === 0 ? value : value.toFixed(1)} ${units[unit]}`;
}

/** Formats a duration: `3 s`, `4 min 10 s`, `2 h 5 min`. */
export function durationText(ms: number): string {
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${seconds % 60} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
