/**
 * What the names and moments that come from outside may be, whichever way they come: the one place where they are checked
 * before anything is made of them. Error texts are those of RavenDB 7.2.7 where it has one.
 *
 * A name becomes part of a key on the disk, so it is text that UTF-8 can hold, and short. One that is stored already was
 * checked when it came, or is older than its limit: only new ones are asked about.
 *
 * Invariants:
 * - What passes here never fails an assertion further down.
 */
import { EngineError, type ErrorCode } from "./errors.ts";
import { nameBytesMax } from "./limits.ts";

/** In place of what a long name has more, in messages. */
const shownLength = 200;
const loneSurrogate = /\p{Surrogate}/u;
const separator = "\u0000";

/** A name as messages show it: the beginning of a long one. */
export function shown(name: string): string {
  return name.length <= shownLength ? name : `${name.slice(0, shownLength)}…`;
}

/** UTF-8 bytes over the limit, or 0. Most names are so short that their bytes need not be counted. */
function bytesOver(name: string): number {
  if (name.length * 3 <= nameBytesMax) return 0;
  const bytes = Buffer.byteLength(name);
  return bytes > nameBytesMax ? bytes : 0;
}

/** @throws EngineError of `code` when the name has half a character in it, which no UTF-8 has */
function checkWellFormed(what: string, name: string, code: ErrorCode = "invalid-argument"): void {
  if (!loneSurrogate.test(name)) return;
  throw new EngineError(
    code,
    `${what} must be well-formed text, but has half a surrogate pair in it: ${JSON.stringify(shown(name))}`,
  );
}

/** @throws EngineError of `code` over `nameBytesMax` bytes, or for text that is not well-formed */
function checkName(what: string, name: string, code: ErrorCode = "invalid-argument"): void {
  const bytes = bytesOver(name);
  if (bytes > 0) {
    throw new EngineError(
      code,
      `${what} cannot exceed ${nameBytesMax} bytes, but it was ${bytes} bytes. The invalid name is '${shown(name)}'.`,
    );
  }
  checkWellFormed(what, name, code);
}

/**
 * Ids have at most 512 bytes of UTF-8, no characters below U+0020 but backspace, tab, line feed, form feed and carriage
 * return, and at least one character.
 * @throws EngineError invalid-argument when the id is empty or too long, not-supported for a control character.
 */
export function checkDocumentId(id: string): void {
  if (id === "") {
    throw new EngineError("invalid-argument", "A document must have an id that is not empty.");
  }
  const bytes = bytesOver(id);
  if (bytes > 0) {
    throw new EngineError(
      "invalid-argument",
      `Document ID cannot exceed ${nameBytesMax} bytes, but the ID was ${bytes} bytes. The invalid ID is '${shown(id)}'.`,
    );
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

/** @throws EngineError invalid-argument */
export function checkCollectionName(name: string): void {
  checkName("Collection name", name);
}

/** @throws EngineError invalid-argument */
export function checkIdentityName(name: string): void {
  checkName("Identity name", name);
}

/** @throws EngineError invalid-argument */
export function checkCounterName(name: string): void {
  if (bytesOver(name) > 0) {
    throw new EngineError(
      "invalid-argument",
      `Counter name cannot exceed ${nameBytesMax} bytes, but counter name has ${name.length} characters. The invalid counter name is '${shown(name)}'.`,
    );
  }
  checkWellFormed("Counter name", name);
}

/** @throws EngineError invalid-argument */
export function checkAttachmentName(name: string): void {
  const bytes = bytesOver(name);
  if (bytes > 0) {
    throw new EngineError(
      "invalid-argument",
      `Attachment name cannot exceed ${nameBytesMax} bytes, but the name was ${bytes} bytes. The invalid name is '${shown(name)}'.`,
    );
  }
  checkWellFormed("Attachment name", name);
}

/** The name of a series that is to be stored. @throws EngineError invalid-argument, invalid-format for NUL */
export function checkSeriesName(name: string): void {
  checkName("Time series name", name);
  // It ends the name in the keys of segments.
  if (name.includes(separator)) {
    throw new EngineError("invalid-format", "The name of a time series cannot contain NUL.");
  }
  if (name === "") {
    throw new EngineError("invalid-argument", "A time series must have a name that is not empty.");
  }
}

/** @throws EngineError compare-exchange-key-too-big, compare-exchange-key-invalid */
export function checkCompareExchangeKey(key: string): void {
  const bytes = bytesOver(key);
  if (bytes > 0) {
    throw new EngineError(
      "compare-exchange-key-too-big",
      `Compare exchange key cannot exceed ${nameBytesMax} bytes, but the key was ${bytes} bytes. The invalid key is '${shown(key)}'.`,
    );
  }
  checkWellFormed("Compare exchange key", key, "compare-exchange-key-invalid");
}

/** @throws EngineError subscription-name-invalid */
export function checkSubscriptionName(name: string): void {
  if (bytesOver(name) > 0) {
    throw new EngineError(
      "subscription-name-invalid",
      `Subscription Name is too long, must be at most ${nameBytesMax} bytes`,
    );
  }
  checkWellFormed("Subscription name", name, "subscription-name-invalid");
}

/** @throws EngineError invalid-argument */
export function checkIndexName(name: string): void {
  if (bytesOver(name) > 0) {
    throw new EngineError(
      "invalid-argument",
      `Index name '${shown(name)}' is longer than ${nameBytesMax} bytes.`,
    );
  }
  checkWellFormed("Index name", name);
}
