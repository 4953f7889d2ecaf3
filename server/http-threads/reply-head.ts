/** The head of a reply as node:http and node:http2 take it. */
import type { OutgoingHttpHeaders } from "node:http";
import { interfaceVersion } from "../http/response.ts";

/**
 * Returns the header fields of a reply: those in `fields` (in the format of `RequestHead.fields`), and those of every reply.
 * Hot: parses without a generator, since it runs for every reply.
 */
export function headersOf(fields: string): OutgoingHttpHeaders {
  const headers: OutgoingHttpHeaders = {
    "raven-server-version": interfaceVersion,
    "service-server-version": interfaceVersion,
  };
  const end = fields.length - 1;
  for (let at = 0; at < end; ) {
    const colon = fields.indexOf(":", at + 1);
    const next = fields.indexOf("\n", colon);
    const name = fields.slice(at + 1, colon);
    const value = fields.slice(colon + 1, next);
    const known = headers[name];
    if (known === undefined) headers[name] = value;
    else headers[name] = [...(Array.isArray(known) ? known : [String(known)]), value];
    at = next;
  }
  return headers;
}
