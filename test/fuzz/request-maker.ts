/**
 * Generates the request for a number: a seed request with a few mutations. Equal random seed and number give the same
 * request, independent of earlier ones, so that one of a million can be regenerated.
 */
import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import { SeededRandom } from "../support/random.ts";
import { interestingText } from "./interesting.ts";
import { mutateNode, nodeOf, textOf } from "./json-node.ts";
import { parameterNames, queries, type Seed, type SeedBody, scripts, seeds } from "./seeds.ts";

export interface FuzzRequest {
  readonly method: string;
  /** Path and query, with invalid characters escaped. */
  readonly target: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: Buffer | undefined;
}

/** A generator for the `number`th input of `seed`. */
export function randomOf(seed: number, number: number): SeededRandom {
  return new SeededRandom((Math.imul(seed, 0x9e3779b1) ^ Math.imul(number + 1, 0x85ebca6b)) >>> 0);
}

export function requestOf(seed: number, number: number): FuzzRequest {
  const random = randomOf(seed, number);
  const chosen = seeds[random.below(seeds.length)] as Seed;
  // A few are sent unchanged: they create the data that the others change.
  const changes = random.chance(0.1) ? 0 : 1 + random.below(4);
  const where = Array.from({ length: changes }, () => random.below(10));
  const inQuery = where.filter((part) => part < 4).length;
  const inHeaders = where.filter((part) => part === 4).length;
  const inBody = changes - inQuery - inHeaders;
  const headers = headersOf(random, inHeaders);
  const query = mutateQuery(random, chosen.query, inQuery);
  const method = random.chance(0.01) ? oneOf(random, methods) : chosen.method;
  const path = random.chance(0.01) ? `${chosen.path}/${interestingText(random)}` : chosen.path;
  const body = bodyOf(random, chosen.body ?? borrowed(random), inBody, headers);
  const parts = query.map(([name, value]) => `${escaped(name)}=${escaped(value)}`);
  const target = escapedPath(path) + (parts.length === 0 ? "" : `?${parts.join("&")}`);
  return { method, target, headers, body };
}

/** The request of a seed, without mutations. */
export function plainRequest({ method, path, query, body }: Seed): FuzzRequest {
  const headers: [string, string][] = [];
  const random = new SeededRandom(1);
  const parts = query.map(([name, value]) => `${escaped(name)}=${escaped(value)}`);
  const target = escapedPath(path) + (parts.length === 0 ? "" : `?${parts.join("&")}`);
  const created = body === undefined ? undefined : mutateBody(random, body, 0);
  if (created?.contentType !== undefined) headers.push(["Content-Type", created.contentType]);
  return { method, target, headers, body: created?.bytes };
}

const methods = [
  "GET",
  "HEAD",
  "PUT",
  "POST",
  "PATCH",
  "DELETE",
  "OPTIONS",
  "RESET",
  "TRACE",
  "QUERY",
];

function oneOf<Item>(random: SeededRandom, items: readonly Item[]): Item {
  return items[random.below(items.length)] as Item; // Never empty.
}

/** A seed without a body sometimes gets that of another. */
function borrowed(random: SeededRandom): SeedBody | undefined {
  return random.chance(0.15) ? oneOf(random, seeds).body : undefined;
}

function mutateQuery(
  random: SeededRandom,
  query: Seed["query"],
  changes: number,
): [name: string, value: string][] {
  const mutated = query.map(([name, value]): [string, string] => [name, value]);
  for (let i = 0; i < changes; i++) {
    const at = random.below(mutated.length + 1);
    const pair = mutated[at];
    if (pair === undefined || random.chance(0.3)) {
      mutated.push([oneOf(random, parameterNames), interestingText(random)]);
      continue;
    }
    const kind = random.below(7);
    if (kind === 0) mutated.splice(at, 1);
    else if (kind === 1) mutated.push([pair[0], pair[1]]);
    else pair[1] = random.chance(0.2) ? mutateText(random, pair[1]) : interestingText(random);
  }
  return mutated;
}

const headerNames = [
  "If-Match",
  "If-None-Match",
  "Range",
  "Accept-Encoding",
  "Content-Type",
  "Raven-Client-Version",
  "Topology-Etag",
  "Client-Configuration-Etag",
  "Accept",
  "Origin",
  "Content-Encoding",
  "X-Other",
  "Cookie",
  "Sec-Fetch-Site",
  "If-Range",
  "Cluster-Topology-Etag",
  "Last-Known-Cluster-Transaction-Index",
  "Host",
  "Expect",
  "TE",
  "Upgrade-Insecure-Requests",
];

function headersOf(random: SeededRandom, changes: number): [string, string][] {
  const headers: [string, string][] = [];
  for (let i = 0; i < changes; i++) {
    // Characters permitted in a header: others are sent through raw sockets.
    const value = interestingText(random)
      .replace(/[^\t\x20-\x7e\x80-\xff]/gu, "?")
      .slice(0, 6000);
    headers.push([oneOf(random, headerNames), value]);
  }
  return headers;
}

function bodyOf(
  random: SeededRandom,
  body: SeedBody | undefined,
  changes: number,
  headers: [string, string][],
): Buffer | undefined {
  if (body === undefined) return undefined;
  const { bytes, contentType } = mutateBody(random, body, changes);
  let sent = bytes;
  if (changes > 0 && random.chance(0.12)) sent = mutateBytes(random, sent);
  if (random.chance(0.05)) {
    const [encoding, compress] = oneOf(random, encodings);
    sent = compress(sent);
    if (random.chance(0.2)) sent = mutateBytes(random, sent);
    headers.push(["Content-Encoding", encoding]);
  }
  if (contentType !== undefined && random.chance(0.97)) headers.push(["Content-Type", contentType]);
  return sent;
}

const encodings: readonly (readonly [string, (bytes: Buffer) => Buffer])[] = [
  ["gzip", (bytes) => gzipSync(bytes)],
  ["br", (bytes) => brotliCompressSync(bytes)],
  ["deflate", (bytes) => deflateSync(bytes)],
  ["zstd", (bytes) => bytes],
];

interface GeneratedBody {
  readonly bytes: Buffer;
  readonly contentType: string | undefined;
}

function mutateBody(random: SeededRandom, body: SeedBody, changes: number): GeneratedBody {
  switch (body.kind) {
    case "json":
      return {
        bytes: Buffer.from(mutatedJson(random, body.value, changes)),
        contentType: "application/json",
      };
    case "text":
      return {
        bytes: Buffer.from(mutatedText(random, body.text, changes)),
        contentType: undefined,
      };
    case "bulk":
      return { bytes: mutatedBulk(random, body.items, changes), contentType: undefined };
    case "form": {
      const changed = random.below(body.parts.length);
      const parts = body.parts.map((part, i) => {
        const own = i === changed ? changes : 0;
        return typeof part === "string"
          ? mutatedText(random, part, own)
          : mutatedJson(random, part, own);
      });
      return form(parts);
    }
    case "dump": {
      const text = mutatedJson(random, body.dump, changes);
      if (body.options === null) {
        return { bytes: Buffer.from(text), contentType: "application/octet-stream" };
      }
      const dump = random.chance(0.3) ? gzipSync(text) : text;
      return form([mutatedJson(random, body.options, random.chance(0.2) ? 1 : 0), dump]);
    }
  }
}

const boundary = "xyzxyz";

function form(parts: readonly (string | Buffer)[]): GeneratedBody {
  const pieces = parts.flatMap((part, i) => [
    Buffer.from(
      `--${boundary}\r\nContent-Disposition: form-data; name="p${i}"; filename="f"\r\n\r\n`,
    ),
    Buffer.from(part),
    Buffer.from("\r\n"),
  ]);
  const bytes = Buffer.concat([...pieces, Buffer.from(`--${boundary}--\r\n`)]);
  return { bytes, contentType: `multipart/form-data; boundary=${boundary}` };
}

function mutatedJson(random: SeededRandom, value: unknown, changes: number): string {
  let root = nodeOf(value);
  for (let i = 0; i < changes; i++) {
    const text = root.kind === "object" && random.chance(0.3) ? codeIn(random, root) : null;
    if (text === null) root = mutateNode(random, root);
  }
  return textOf(root);
}

/** Queries and scripts are changed word by word, wherever they occur. */
function codeIn(random: SeededRandom, root: ReturnType<typeof nodeOf>): true | null {
  if (root.kind === "array") {
    for (const item of root.items) if (codeIn(random, item) !== null) return true;
    return null;
  }
  if (root.kind !== "object") return null;
  for (const member of root.members) {
    const [key, value] = member;
    const isCode = /^(Script|Query|Maps|Map|Reduce|TransformScript|Code)$/.test(key);
    if (isCode && value.kind === "raw" && value.text.startsWith('"')) {
      member[1] = { kind: "raw", text: JSON.stringify(mutateText(random, codeOf(value.text))) };
      return true;
    }
    if (codeIn(random, value) !== null) return true;
  }
  return null;
}

function codeOf(text: string): string {
  try {
    return String(JSON.parse(text));
  } catch {
    return text;
  }
}

const words = [...queries, ...scripts].flatMap((text) => text.match(/\w+|[^\w\s]/g) ?? []);

/** Removes, duplicates, swaps or inserts words. */
function mutateText(random: SeededRandom, text: string): string {
  const parts = text.match(/\w+|\s+|[^\w\s]/g) ?? [];
  for (let i = 0; i < 1 + random.below(3); i++) {
    const at = random.below(parts.length + 1);
    const word = random.chance(0.7) ? oneOf(random, words) : interestingText(random);
    switch (random.below(4)) {
      case 0:
        parts.splice(at, 1);
        break;
      case 1:
        parts.splice(at, 0, parts[at] ?? word);
        break;
      case 2:
        parts.splice(at, 0, ` ${word} `);
        break;
      default:
        parts[at] = word;
    }
  }
  return parts.join("");
}

function mutatedText(random: SeededRandom, text: string, changes: number): string {
  return changes === 0
    ? text
    : random.chance(0.5)
      ? interestingText(random)
      : mutateText(random, text);
}

function mutatedBulk(
  random: SeededRandom,
  items: readonly (readonly [item: unknown, raw: string])[],
  changes: number,
): Buffer {
  const changed = random.below(items.length);
  const texts = items.map(
    ([item, raw], i) => mutatedJson(random, item, i === changed ? changes : 0) + raw,
  );
  if (changes > 1) texts.splice(random.below(texts.length), random.below(2));
  return Buffer.from(`[${texts.join(",")}]`);
}

/** Truncates, changes a byte, or duplicates, removes or inserts some. */
export function mutateBytes(random: SeededRandom, bytes: Buffer): Buffer {
  const at = random.below(bytes.length + 1);
  const count = 1 + random.below(8);
  const [before, behind] = [bytes.subarray(0, at), bytes.subarray(at)];
  switch (random.below(5)) {
    case 0:
      return before;
    case 1:
      return Buffer.concat([
        before,
        random.bytes(count),
        behind.subarray(Math.min(count, behind.length)),
      ]);
    case 2:
      return Buffer.concat([before, behind.subarray(0, count), behind]);
    case 3:
      return Buffer.concat([before, behind.subarray(count)]);
    default:
      return Buffer.concat([
        before,
        Buffer.from(oneOf(random, ["\u0000", '"', "\\", "{", "]", "\r\n", "é", "\ud83d"])),
        behind,
      ]);
  }
}

function escaped(text: string): string {
  return encodeURIComponent(text.replace(/\p{Surrogate}/gu, "\ufffd"));
}

function escapedPath(path: string): string {
  return path.split("/").map(escaped).join("/");
}

/** The request as a command, with its body written to a file. */
export function describeRequest(
  origin: string,
  { method, target, headers, body }: FuzzRequest,
): string {
  const shown = headers.map(([name, value]) => ` -H ${quoted(`${name}: ${value}`)}`).join("");
  const command = `curl -sS -X ${method} ${quoted(origin + target)}${shown}`;
  if (body === undefined) return command;
  const text = body.toString();
  if (body.length <= 2000 && Buffer.from(text).equals(body) && !text.includes("\u0000")) {
    return `${command} --data-binary ${quoted(text)}`;
  }
  return `base64 -d <<<'${body.toString("base64").slice(0, 2000)}' | ${command} --data-binary @-`;
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
