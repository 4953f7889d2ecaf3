/**
 * The forms of document ids, some of which request a generated id. Ids are compared case-insensitively; their validity
 * is checked in names.ts.
 */

/** The kind of id that its last character requests. */
type IdForm = "plain" | "server" | "identity";

/** The separator in generated ids, unless the database's record sets another. */
export const idSeparatorDefault = "/";

/** `a/` requests a server-generated id, `a|` the next identity of `a|`. */
export function idFormOf(id: string, separator: string): IdForm {
  const last = id.charCodeAt(id.length - 1);
  if (last === separator.charCodeAt(0)) return "server";
  if (last === 0x7c) return "identity";
  return "plain";
}

/** `users/` and etag 8 on node A return `users/0000000000000000008-A`. */
export function serverMadeId(prefix: string, etag: number, nodeTag: string): string {
  return `${prefix}${etag.toString().padStart(19, "0")}-${nodeTag}`;
}
