/**
 * Exchanges recorded from RavenDB 7.2.7: requests and the compared parts of their replies, as text.
 * The format of a file:
 *
 *     A description of the file.
 *
 *     # description of the following exchanges
 *     PUT docs?id=items%2F01
 *     {"V":1,"@metadata":{"@collection":"Items"}}
 *     = 201                                  only the status is checked
 *     POST queries
 *     {"Query":"from Items order by V"}
 *     = 200 total 2
 *     items/01
 *     items/02
 *                                            an empty line ends an exchange
 *
 * A path is relative to the database. The lines after the request are its body.
 */

interface RecordedExchange {
  readonly about: string;
  /** `METHOD path` */
  readonly request: string;
  readonly body: string;
  readonly expected: string;
}

/** The exchanges of a file, in order. */
export function parseExchanges(text: string): RecordedExchange[] {
  const exchanges: RecordedExchange[] = [];
  let about = "";
  for (const block of text.split("\n\n")) {
    const lines = block.split("\n").filter((line) => line !== "");
    if (lines[0]?.startsWith("# ") === true) about = lines.shift()?.slice(2) ?? "";
    const reply = lines.findIndex((line) => line.startsWith("= "));
    const [request] = lines;
    if (reply < 0 || request === undefined) continue;
    const body = lines.slice(1, reply).join("\n");
    exchanges.push({ about, request, body, expected: lines.slice(reply).join("\n").slice(2) });
  }
  return exchanges;
}

/**
 * The compared parts of a reply: for an error its type, because client errors have the status 400
 * here and 500 there; for a query its totals and rows, documents by their ids; for anything else
 * the JSON without times, command numbers, and change vectors.
 */
export function shownReply(status: number, text: string): string {
  if (status >= 400) {
    const type = /^\{.*?"Type":"([^"]*)"/s.exec(text)?.[1];
    return type === undefined ? String(status) : `refused: ${type}`;
  }
  if (text === "") return String(status);
  let reply: unknown;
  try {
    reply = JSON.parse(spelled(text));
  } catch {
    return `${status} ${text}`;
  }
  if (isQueryReply(reply))
    return [`${status} ${totalsOf(reply)}`, ...reply.Results.map(rowOf)].join("\n");
  return `${status} ${unspelled(JSON.stringify(reply, stable))}`;
}

interface QueryReply {
  readonly Results: readonly Readonly<Record<string, unknown>>[];
  readonly TotalResults: unknown;
  readonly SkippedResults?: unknown;
  readonly CappedMaxResults?: unknown;
}

function isQueryReply(reply: unknown): reply is QueryReply {
  return (
    typeof reply === "object" && reply !== null && "Results" in reply && "TotalResults" in reply
  );
}

function totalsOf({ TotalResults, SkippedResults, CappedMaxResults }: QueryReply): string {
  const skipped = SkippedResults === undefined ? "" : unspelled(JSON.stringify(SkippedResults));
  const parts = [`total ${unspelled(JSON.stringify(TotalResults))}`];
  if (skipped !== "" && skipped !== "0") parts.push(`skipped ${skipped}`);
  if (CappedMaxResults !== undefined) {
    parts.push(`capped ${unspelled(JSON.stringify(CappedMaxResults))}`);
  }
  return parts.join(", ");
}

function rowOf({ "@metadata": metadata, ...row }: Readonly<Record<string, unknown>>): string {
  const { "@id": id, "@projection": isProjection } = (metadata ?? {}) as Record<string, unknown>;
  return typeof id === "string" && isProjection === undefined
    ? id
    : unspelled(JSON.stringify(row, stable));
}

/** Converts numbers to texts, so that 1 and 1.0 differ. */
function spelled(text: string): string {
  return text.replace(/"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g, (token) =>
    token.startsWith('"') ? token : `"#${token}"`,
  );
}

function unspelled(text: string): string {
  return text.replace(/"#([^"]*)"/g, "$1");
}

const volatile =
  /^(?:DateTime|WebUrl|NodeTag|DurationInMs|RaftCommandIndex|ResultEtag|LastModified)$/;

/** Removes values that differ between runs, and sorts members. */
function stable(key: string, value: unknown): unknown {
  if (volatile.test(key)) return undefined;
  if (typeof value === "string") {
    return value
      .replace(/\b[A-Z]+:\d+-[A-Za-z0-9+/]{22}/g, "<change vector>")
      .replace(/^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{7}Z?$/, "<time>");
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}
