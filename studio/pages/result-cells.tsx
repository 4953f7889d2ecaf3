/** Renders result values as table cells. */
import type { ComponentChildren } from "preact";
import { href } from "../base/router.ts";

export interface ResultRow {
  readonly "@metadata"?: { readonly "@id"?: string | null };
  readonly [field: string]: unknown;
}

/** Matches ids such as `orders/830-A`. */
const idLike = /^[A-Za-z][\w-]*\/[\w./-]{1,200}$/;
const dateLike = /^\d{4}-\d\d-\d\dT00:00:00(\.0+)?Z?$/;
const shownCharacters = 255;

/** A list or object as its size; a button if it can be shown. */
export function sizeCell(text: string, show?: (() => void) | undefined): ComponentChildren {
  if (show === undefined) return <span class="obj">{text}</span>;
  return (
    <button type="button" class="link obj" tabIndex={-1} onClick={show}>
      {text}
    </button>
  );
}

/** `isId` means that the value is a document id, whatever its format. `show` opens a list or object. */
export function valueCell(
  value: unknown,
  database: string,
  { isId = false, show }: { isId?: boolean; show?: (value: object) => void } = {},
): ComponentChildren {
  if (value === undefined) return null;
  if (value === null) return <span class="nil">null</span>;
  if (typeof value === "object") {
    const text = Array.isArray(value) ? `[ ${value.length} ]` : `{ ${Object.keys(value).length} }`;
    return sizeCell(text, show && (() => show(value)));
  }
  if (typeof value !== "string") return String(value);
  if (dateLike.test(value)) return value.slice(0, 10);
  if (!isId && !idLike.test(value)) return value.slice(0, shownCharacters);
  return (
    <a class={isId ? "idlink" : "ref"} href={href(["db", database, "doc", value])}>
      {value}
    </a>
  );
}
