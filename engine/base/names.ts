/**
 * Validation of all names from outside, by whatever route, before use. Error texts are those of RavenDB 7.2.7 if it has
 * one.
 *
 * A name becomes part of a key on disk, so it must be encodable in UTF-8, and short. Stored names were checked when
 * they arrived, or are older than the limit: only new ones are checked.
 *
 * Invariants:
 * - A name that passes never fails an assertion later.
 */
import { EngineError, type ErrorCode } from "./errors.ts";
import { nameBytesMax } from "./limits.ts";

/** Characters of a long name that messages show. */
const shownLength = 200;
const loneSurrogate = /\p{Surrogate}/u;
const separator = "\u0000";

/** Returns a name for messages: a long one is truncated. */
export function shown(name: string): string {
  return name.length <= shownLength ? name : `${name.slice(0, shownLength)}…`;
}

/** UTF-8 bytes if over the limit, else 0. Most names are so short that their bytes need not be counted. */
function bytesOver(name: string): number {
  if (name.length * 3 <= nameBytesMax) return 0;
  const bytes = Buffer.byteLength(name);
  return bytes > nameBytesMax ? bytes : 0;
}

/** @throws EngineError of `code` when the name contains half a surrogate pair, which UTF-8 cannot encode */
function checkWellFormed(what: string, name: string, code: ErrorCode = "invalid-argument"): void {
  if (!loneSurrogate.test(name)) return;
  throw new EngineError(
    code,
    `${what} must be well-formed text, but has half a surrogate pair in it: ${JSON.stringify(shown(name))}`,
  );
}

/** @throws EngineError of `code` over `nameBytesMax` bytes, or for malformed text */
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

/** Returns the id of a request that may only read: no document has a longer one. @throws EngineError invalid-argument */
export function boundedDocumentId(id: string): string {
  const bytes = bytesOver(id);
  if (bytes === 0) return id;
  throw new EngineError(
    "invalid-argument",
    `Document ID cannot exceed ${nameBytesMax} bytes, but the ID was ${bytes} bytes. The invalid ID is '${shown(id)}'.`,
  );
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
  boundedDocumentId(id);
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

/** Control characters with a short escape in JSON (`\\n`) are allowed. */
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

/** Checks the name of a series to be stored. @throws EngineError invalid-argument, invalid-format for NUL */
export function checkSeriesName(name: string): void {
  checkName("Time series name", name);
  // NUL terminates the name in the keys of segments.
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

/** The default tag of a node. */
export const nodeTagDefault = "A";

export const nodeTagPattern = /^[A-Z]{1,4}$/;

/** @throws EngineError invalid-argument when the tag is not one to four letters from A to Z, as in RavenDB */
export function checkNodeTag(tag: string): void {
  if (nodeTagPattern.test(tag)) return;
  throw new EngineError(
    "invalid-argument",
    `The node tag '${tag.slice(0, 100)}' is not one to four letters from A to Z`,
  );
}
