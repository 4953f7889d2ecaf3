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

/** `isId` means that the value is a document id, whatever its format. */
export function valueCell(value: unknown, database: string, isId = false): ComponentChildren {
  if (value === undefined) return null;
  if (value === null) return <span class="nil">null</span>;
  if (Array.isArray(value)) return <span class="obj">[ {value.length} ]</span>;
  if (typeof value === "object")
    return <span class="obj">{`{ ${Object.keys(value).length} }`}</span>;
  if (typeof value !== "string") return String(value);
  if (dateLike.test(value)) return value.slice(0, 10);
  if (!isId && !idLike.test(value)) return value.slice(0, shownCharacters);
  return (
    <a class={isId ? "idlink" : "ref"} href={href(["db", database, "doc", value])}>
      {value}
    </a>
  );
}
