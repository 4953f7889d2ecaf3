/**
 * Replies with the files of a folder or an archive. The list is read for the first request; a file is read and compressed when
 * it is first requested, and cached. For files that do not change while the server runs.
 */
import { createHash } from "node:crypto";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { isUnchanged, quoted } from "./conditional.ts";
import type { FileSource } from "./file-source.ts";
import type { ReplyHeaders } from "./response.ts";

/** The part of an exchange that a reply needs: of the server, or of the proxy of the studio. */
export interface FileRequest {
  readonly path: string;
  header(name: string): string | undefined;
  reply(status: number, headers: ReplyHeaders, body?: Buffer): void;
}

interface StaticFile {
  readonly type: string;
  readonly etag: string;
  readonly bytes: Buffer;
  readonly compressed: Buffer;
}

const types: Readonly<Record<string, string>> = {
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml",
  txt: "text/plain; charset=utf-8",
  json: "application/json; charset=utf-8",
  map: "application/json; charset=utf-8",
  png: "image/png",
  ico: "image/x-icon",
  woff: "font/woff",
  woff2: "font/woff2",
};
/** Names that contain a hash of the content: `main-Bq2k9x_f.js`. */
const hashedName = /-[\w-]{8}\.\w+$/;

/** Headers that isolate a page from other sites. `referrer`: its Referrer-Policy. */
export function pageHeaders(
  contentPolicy: string,
  referrer: "no-referrer" | "same-origin" = "no-referrer",
): ReplyHeaders {
  return {
    "content-security-policy": contentPolicy,
    "x-content-type-options": "nosniff",
    "referrer-policy": referrer,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
  };
}

export class StaticFiles {
  readonly #source: FileSource;
  readonly #headers: ReplyHeaders;
  #names: ReadonlySet<string> | undefined;
  readonly #files = new Map<string, Promise<StaticFile>>();

  /** @param headers of each reply */
  constructor(source: FileSource, headers: ReplyHeaders) {
    this.#source = source;
    this.#headers = headers;
  }

  /** Returns whether a file of that name exists. */
  has(name: string): boolean {
    if (this.#names === undefined) {
      const names = namesIn(this.#source);
      // An empty list may be due to a temporary failure.
      if (names.length > 0) this.#names = new Set(names);
    }
    return this.#names?.has(name) === true;
  }

  /** Replies with the file `name`, which must exist. */
  async reply(request: FileRequest, name: string): Promise<void> {
    let found = this.#files.get(name);
    if (found === undefined) {
      found = read(this.#source, name);
      this.#files.set(name, found);
      // After a failure, the next request reads the file again.
      found.catch(() => this.#files.delete(name));
    }
    const { type, etag, bytes, compressed } = await found;
    const headers = {
      ...this.#headers,
      etag: quoted(etag),
      "content-type": type,
      "cache-control": hashedName.test(name) ? "public, max-age=31536000, immutable" : "no-cache",
      vary: "accept-encoding",
    };
    if (isUnchanged(request, etag)) request.reply(304, headers);
    else if (/\bgzip\b/.test(request.header("accept-encoding") ?? "")) {
      request.reply(200, { ...headers, "content-encoding": "gzip" }, compressed);
    } else request.reply(200, headers, bytes);
  }
}

/** Returns no files if the folder does not exist. */
function namesIn(source: FileSource): readonly string[] {
  try {
    return source.names();
  } catch {
    return [];
  }
}

async function read(source: FileSource, name: string): Promise<StaticFile> {
  const bytes = await source.read(name);
  return {
    type: types[name.slice(name.lastIndexOf(".") + 1)] ?? "application/octet-stream",
    etag: createHash("sha256").update(bytes).digest("base64url").slice(0, 22),
    bytes,
    compressed: await promisify(gzip)(bytes, { level: 9 }),
  };
}
