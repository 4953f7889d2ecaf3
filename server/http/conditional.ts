/**
 * ETags and conditional requests, as clients of the interface use them: one opaque text, quoted or bare. Lists, weak
 * tags and `*` never match, as in RavenDB 7.2.7.
 */
import { createHash } from "node:crypto";
import type { Exchange } from "./exchange.ts";

/** What has headers as a request has them: an exchange. */
interface Conditional {
  header(name: string): string | undefined;
}

/** The ETag that clients send for a document they know to be missing. */
export const missingEtag = "404 Response";

/** Is `If-None-Match` exactly this ETag? */
export function isUnchanged(exchange: Conditional, etag: string): boolean {
  const header = exchange.header("if-none-match");
  return header !== undefined && unquoted(header) === etag;
}

/** The change vector of `If-Match`; "" when it is empty (must not exist), undefined without the header. */
export function expectedVector(exchange: Exchange): string | undefined {
  const header = exchange.header("if-match");
  return header === undefined ? undefined : unquoted(header);
}

export function quoted(etag: string): string {
  return `"${etag}"`;
}

function unquoted(text: string): string {
  const trimmed = text.trim();
  return trimmed.length >= 2 && trimmed.startsWith('"') && trimmed.endsWith('"')
    ? trimmed.slice(1, -1)
    : trimmed;
}

/** An ETag over the state of several parts: a change of any part changes it. */
export class StateHash {
  readonly #hash = createHash("sha256");

  add(part: string | number | null | undefined): this {
    this.#hash.update(part == null ? "\u0000" : `${typeof part} ${part}\u0001`);
    return this;
  }

  get etag(): string {
    return `Hash-${this.#hash.digest("base64")}`;
  }
}
