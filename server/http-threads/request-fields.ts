/** The header fields of a request as the link transfers them. */
import type { IncomingHttpHeaders } from "node:http";

/** Returns the content encoding of a body, or "" if it has none. */
export function encodingOf(contentEncoding: string | undefined): string {
  if (contentEncoding === undefined) return "";
  const encoding = contentEncoding.trim().toLowerCase();
  return encoding === "identity" ? "" : encoding;
}

/**
 * Composes the header fields, without pseudo-headers. `isEncoded`: the body is decoded on its way, so that its encoding
 * and length are left out. Hot.
 */
export function requestFields(headers: IncomingHttpHeaders, isEncoded: boolean): string {
  let fields = "";
  for (const name in headers) {
    if (name.charCodeAt(0) === colon) continue;
    if (isEncoded && (name === "content-encoding" || name === "content-length")) continue;
    const value = headers[name];
    if (typeof value === "string") fields += `\n${name}:${value}`;
    else if (value !== undefined) fields += `\n${name}:${value.join(", ")}`;
  }
  return `${fields}\n`;
}

const colon = 58;
