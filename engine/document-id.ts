/**
 * The rules for document ids: length, characters, and the forms that ask the server to make one.
 *
 * RavenDB 7.2.7 answers with the same error types and texts: ids have at most 512 bytes of UTF-8, no control
 * characters below U+0002 (others, as a newline, are allowed), and are compared without regard to case.
 */
import { EngineError } from "./errors.ts";
import { nameBytesMax } from "./limits.ts";

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

/** @throws EngineError invalid-argument when the id is too long, not-supported for NUL and U+0001. */
export function checkDocumentId(id: string): void {
  if (id.length * 3 > nameBytesMax) {
    const bytes = Buffer.byteLength(id);
    if (bytes > nameBytesMax) {
      throw new EngineError(
        "invalid-argument",
        `Document ID cannot exceed ${nameBytesMax} bytes, but the ID was ${bytes} bytes. The invalid ID is '${id}'.`,
      );
    }
  }
  for (let i = 0; i < id.length; i++) {
    if (id.charCodeAt(i) < 2) {
      const escaped = id.replaceAll("\u0000", "\\u0000").replaceAll("\u0001", "\\u0001");
      throw new EngineError(
        "not-supported",
        `Document ID cannot contain control characters: '${escaped}' (escaped version)`,
      );
    }
  }
}

/** The form under which ids and names are looked up. */
export function lowerCased(name: string): string {
  return name.toLowerCase();
}
