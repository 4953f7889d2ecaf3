/**
 * The rules for document ids: length, characters, and the forms that ask the server to make one.
 *
 * RavenDB 7.2.7 answers with the same error types and texts: ids have at most 512 bytes of UTF-8, no characters below
 * U+0020 but backspace, tab, line feed, form feed and carriage return, and are compared without regard to case.
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

/** @throws EngineError invalid-argument when the id is too long, not-supported for a control character. */
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
    if (isRefused(id.charCodeAt(i))) {
      const escaped = [...id].map((one) => (isRefused(one.charCodeAt(0)) ? escapeOf(one) : one));
      throw new EngineError(
        "not-supported",
        `Document ID cannot contain control characters: '${escaped.join("")}' (escaped version)`,
      );
    }
  }
}

/** Of the control characters those with an escape of their own in JSON (`\\n`) are let through. */
function isRefused(code: number): boolean {
  return code < 32 && !(code >= 8 && code <= 13 && code !== 11);
}

function escapeOf(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

/** The form under which ids and names are looked up. */
export function lowerCased(name: string): string {
  return name.toLowerCase();
}
