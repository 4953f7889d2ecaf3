/**
 * The forms of document ids, some of which ask the server to make one. Ids are compared without regard to case; what an id
 * may be is in names.ts.
 */

/** What the end of an id asks for. */
export type IdForm = "plain" | "server" | "identity";

/** Of the ids that the server makes, unless the database's record names another. */
export const idSeparatorDefault = "/";

/** `a/` asks for a server-made id, `a|` for the next identity of `a|`. */
export function idFormOf(id: string, separator: string): IdForm {
  const last = id.charCodeAt(id.length - 1);
  if (last === separator.charCodeAt(0)) return "server";
  if (last === 0x7c) return "identity";
  return "plain";
}

/** `users/` and 8 on node A give `users/0000000000000000008-A`. */
export function serverMadeId(prefix: string, etag: number, nodeTag: string): string {
  return `${prefix}${etag.toString().padStart(19, "0")}-${nodeTag}`;
}

/** The form under which ids and names are looked up. */
export function lowerCased(name: string): string {
  return name.toLowerCase();
}
