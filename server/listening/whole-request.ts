/**
 * Parses an HTTP/1.1 request that has arrived whole, of the plain kind that nearly all requests are. The grammar is that of
 * RFC 9112 with everything optional left out: whatever is unusual is not parsed here but by node:http.
 *
 * Invariants:
 * - What is parsed here node:http parses to the same request, and it ends at the same byte.
 */

/** Bytes of a head that is parsed here. */
const headBytesMax = 8 * 1024;
/** Headers of a request that is parsed here. */
const headerCountMax = 64;
/** Heads that are remembered, and characters of one: clients send the same again and again. */
const knownHeadsMax = 256;
const knownHeadLengthMax = 1024;
/** Names in the case of their clients whose form in lower case is remembered. */
const knownNamesMax = 500;

/** The head of a request. */
export interface WholeHead {
  readonly method: string;
  /** Path and query as sent. */
  readonly target: string;
  /** Names in lower case, each once. */
  readonly headers: ReadonlyMap<string, string>;
  /** Bytes of the body. */
  readonly bodyBytes: number;
  /** Whether the connection ends with the reply. */
  readonly isLast: boolean;
}

export interface WholeRequest {
  readonly head: WholeHead;
  readonly body: Buffer;
  /** The position behind the request. */
  readonly end: number;
}

const requestLine = /^(GET|HEAD|PUT|POST|PATCH|DELETE) (\/[\x21-\x7e]*) HTTP\/1\.1$/;
const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const unprintable = /[^\t\x20-\x7e]/;
const headEnd = Buffer.from("\r\n\r\n");
/** Heads by their text. */
const knownHeads = new Map<string, WholeHead>();
/** Names by their spelling. */
const lowerNames = new Map<string, string>();

/** The request that begins at `start`; null: it has not arrived whole, or is not of the plain kind. Hot. */
export function parseWholeRequest(bytes: Buffer, start: number): WholeRequest | null {
  const end = bytes.indexOf(headEnd, start);
  if (end < 0 || end - start > headBytesMax) return null;
  const head = headOf(bytes.latin1Slice(start, end));
  if (head === null) return null;
  const bodyStart = end + headEnd.length;
  const bodyEnd = bodyStart + head.bodyBytes;
  if (bodyEnd > bytes.length) return null;
  return { head, body: bytes.subarray(bodyStart, bodyEnd), end: bodyEnd };
}

/** As `parseHead`, of which the result is remembered where the text is likely to come again: its address has no query. */
function headOf(text: string): WholeHead | null {
  const known = knownHeads.get(text);
  if (known !== undefined) return known;
  const head = parseHead(text);
  if (head === null || text.length > knownHeadLengthMax || head.target.includes("?")) return head;
  if (knownHeads.size === knownHeadsMax) knownHeads.clear();
  knownHeads.set(text, head);
  return head;
}

/** null: it is not of the plain kind. */
function parseHead(head: string): WholeHead | null {
  let lineEnd = endOfLine(head, 0);
  const [, method, target] = requestLine.exec(head.slice(0, lineEnd)) ?? [];
  if (method === undefined || target === undefined) return null;
  const headers = new Map<string, string>();
  while (lineEnd < head.length) {
    const from = lineEnd + 2;
    lineEnd = endOfLine(head, from);
    const colon = head.indexOf(":", from);
    if (colon < 0 || colon > lineEnd || headers.size === headerCountMax) return null;
    const name = lowerName(head.slice(from, colon));
    const value = head.slice(colon + 1, lineEnd);
    if (name === null || headers.has(name) || unprintable.test(value)) return null;
    headers.set(name, value.trim());
  }
  const isLast = lastOf(headers);
  const bodyBytes = lengthOf(headers);
  if (isLast === null || bodyBytes === null || !headers.has("host")) return null;
  return { method, target, headers, bodyBytes, isLast };
}

function endOfLine(head: string, from: number): number {
  const end = head.indexOf("\r\n", from);
  return end < 0 ? head.length : end;
}

/** null: not a name. */
function lowerName(spelled: string): string | null {
  const known = lowerNames.get(spelled);
  if (known !== undefined) return known;
  if (!token.test(spelled)) return null;
  const lower = spelled.toLowerCase();
  if (lowerNames.size < knownNamesMax) lowerNames.set(spelled, lower);
  return lower;
}

/** Whether the client wants no further request on the connection; null: it wants something else of it. */
function lastOf(headers: ReadonlyMap<string, string>): boolean | null {
  if (headers.has("transfer-encoding") || headers.has("upgrade") || headers.has("expect")) {
    return null;
  }
  const connection = headers.get("connection");
  if (connection === undefined) return false;
  const lower = connection.toLowerCase();
  return lower === "close" ? true : lower === "keep-alive" ? false : null;
}

/** Bytes of the body; null: not a plain number. */
function lengthOf(headers: ReadonlyMap<string, string>): number | null {
  const length = headers.get("content-length");
  if (length === undefined) return 0;
  return /^\d{1,8}$/.test(length) ? Number(length) : null;
}
