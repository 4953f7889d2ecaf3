/**
 * A storage for backups in a bucket of an S3 server. A folder is a key prefix that ends with a slash.
 *
 * Invariants:
 * - An object is visible only when it is complete: a multipart upload becomes visible on completion, and a failed one is
 *   aborted.
 * - Only one part of a file is in memory, whatever its size.
 */
import { createHash } from "node:crypto";
import { EngineError } from "../../engine/base/errors.ts";
import { pauseIfDue } from "../../engine/base/scheduling/time-slices.ts";
import type { BackupStorage, StoredFile } from "./backup-storage.ts";
import { elementOf, elementsOf, type S3Client, S3Error } from "./s3-client.ts";

/** Part size for small files, at least 5 MiB. With at most 10,000 parts, a file may have 300 GB. */
const smallPartBytes = 8 * 1024 * 1024;
const largePartBytes = 32 * 1024 * 1024;
const smallPartsMax = 1000;
const readAttemptsMax = 6;
const removalsAtOnce = 8;

interface Listing {
  readonly files: StoredFile[];
  readonly folders: string[];
}

export class S3Storage implements BackupStorage {
  readonly #client: S3Client;
  /** Empty, or ends with a slash. */
  readonly #prefix: string;

  /** @param folder prefix of all keys, or empty for the bucket itself */
  constructor(client: S3Client, folder: string) {
    this.#client = client;
    const trimmed = folder.replace(/^\/+|\/+$/g, "");
    this.#prefix = trimmed === "" ? "" : `${trimmed}/`;
  }

  get path(): string {
    return this.#prefix.slice(0, -1);
  }

  get name(): string {
    return this.path.slice(this.path.lastIndexOf("/") + 1);
  }

  pathOf(name: string): string {
    return this.#prefix + name;
  }

  where(name: string): string {
    return this.#client.where(this.pathOf(name));
  }

  async exists(): Promise<boolean> {
    const xml = await this.#client.text({
      method: "GET",
      key: "",
      query: { "list-type": "2", prefix: this.#prefix, "max-keys": "1" },
    });
    return elementOf(xml, "Key") !== null;
  }

  async make(): Promise<void> {
    // Folders exist as soon as they contain an object.
  }

  async files(): Promise<StoredFile[]> {
    return (await this.#list("/")).files;
  }

  async folders(): Promise<string[]> {
    return (await this.#list("/")).folders;
  }

  within(name: string): BackupStorage {
    return new S3Storage(this.#client, this.pathOf(name));
  }

  async write(name: string, bytes: AsyncIterable<Buffer> | Iterable<Buffer>): Promise<number> {
    const key = this.pathOf(name);
    let written = 0;
    let upload: Upload | null = null;
    try {
      for await (const part of inParts(bytes)) {
        written += part.body.length;
        if (part.isLast && upload === null) {
          const { body, sha256 } = part;
          await this.#drained({ method: "PUT", key, headers: this.#headers(), body, sha256 });
        } else upload = await this.#addPart(key, upload, part);
      }
      if (upload !== null) await this.#complete(key, upload);
      return written;
    } catch (error) {
      if (upload !== null) await this.#abort(key, upload.id).catch(() => undefined);
      throw error;
    }
  }

  async *read(name: string, bytesMax = Number.POSITIVE_INFINITY): AsyncGenerator<Buffer> {
    const key = this.pathOf(name);
    let at = 0;
    let tag: string | null = null;
    for (let attempt = 1; at < bytesMax; attempt++) {
      const isPart = at > 0 || Number.isFinite(bytesMax);
      const end = Number.isFinite(bytesMax) ? bytesMax - 1 : "";
      const headers: Record<string, string> = {
        ...(isPart ? { Range: `bytes=${at}-${end}` } : {}),
        // Continues the same version of the object.
        ...(tag === null ? {} : { "If-Match": tag }),
      };
      const reply = await this.#get(key, headers);
      if (reply === null) return;
      tag = reply.headers.get("etag");
      const length = Number(reply.headers.get("content-length") ?? Number.NaN);
      let received = 0;
      try {
        for await (const piece of reply.body ?? []) {
          const rest = Buffer.from(piece as Uint8Array);
          received += rest.length;
          at += rest.length;
          yield rest;
          attempt = 1;
        }
        if (Number.isNaN(length) || received >= length) return;
      } catch (cause) {
        if (attempt >= readAttemptsMax) {
          throw new EngineError(
            "file-failed",
            `${this.#client.where(key)} cannot be read after byte ${at}: ${(cause as Error).message}`,
            { cause },
          );
        }
      }
    }
  }

  /** Returns null if the range contains no bytes. */
  async #get(key: string, headers: Record<string, string>): Promise<Response | null> {
    try {
      return await this.#client.send({ method: "GET", key, headers });
    } catch (error) {
      if (error instanceof S3Error && error.s3Code === "InvalidRange") return null;
      throw error;
    }
  }

  async remove(names: readonly string[]): Promise<void> {
    await this.#delete(names.map((name) => this.pathOf(name)));
  }

  async removeAll(): Promise<void> {
    const { files } = await this.#list("");
    await this.#delete(files.map(({ name }) => this.pathOf(name)));
  }

  async #delete(keys: readonly string[]): Promise<void> {
    for (let at = 0; at < keys.length; at += removalsAtOnce) {
      const some = keys.slice(at, at + removalsAtOnce);
      await Promise.all(some.map((key) => this.#drained({ method: "DELETE", key })));
    }
  }

  /** @param delimiter "" to include the content of folders, with relative names */
  async #list(delimiter: "/" | ""): Promise<Listing> {
    const found: Listing = { files: [], folders: [] };
    let token: string | null = null;
    do {
      const xml: string = await this.#client.text({
        method: "GET",
        key: "",
        query: {
          "list-type": "2",
          prefix: this.#prefix,
          ...(delimiter === "" ? {} : { delimiter }),
          ...(token === null ? {} : { "continuation-token": token }),
        },
      });
      for (const one of elementsOf(xml, "Contents")) {
        const name = this.#nameOf(elementOf(one, "Key"));
        // Some programs create an object for the folder itself.
        if (name === "") continue;
        found.files.push({ name, bytes: Number(elementOf(one, "Size")) });
      }
      for (const one of elementsOf(xml, "CommonPrefixes")) {
        found.folders.push(this.#nameOf(elementOf(one, "Prefix")).replace(/\/$/, ""));
      }
      const isCut = elementOf(xml, "IsTruncated") === "true";
      token = isCut ? elementOf(xml, "NextContinuationToken") : null;
    } while (token !== null);
    return found;
  }

  #nameOf(key: string | null): string {
    return (key ?? "").slice(this.#prefix.length);
  }

  #headers(): Record<string, string> {
    const { storageClass } = this.#client;
    return storageClass === null ? {} : { "X-Amz-Storage-Class": storageClass };
  }

  async #addPart(key: string, begun: Upload | null, part: Part): Promise<Upload> {
    const upload = begun ?? { id: await this.#begin(key), tags: [] };
    const reply = await this.#client
      .send({
        method: "PUT",
        key,
        query: { partNumber: String(upload.tags.length + 1), uploadId: upload.id },
        body: part.body,
        sha256: part.sha256,
      })
      .catch(async (error: unknown) => {
        if (begun === null) await this.#abort(key, upload.id).catch(() => undefined);
        throw error;
      });
    await reply.arrayBuffer();
    upload.tags.push(reply.headers.get("etag") ?? "");
    return upload;
  }

  async #begin(key: string): Promise<string> {
    const headers = this.#headers();
    const xml = await this.#client.text({ method: "POST", key, query: { uploads: "" }, headers });
    const id = elementOf(xml, "UploadId");
    if (id !== null) return id;
    throw new EngineError(
      "file-failed",
      `${this.#client.where(key)}: the S3 server returned no UploadId`,
    );
  }

  async #complete(key: string, { id, tags }: Upload): Promise<void> {
    const parts = tags.map(
      (tag, i) => `<Part><PartNumber>${i + 1}</PartNumber><ETag>${tag}</ETag></Part>`,
    );
    const xml = await this.#client.text({
      method: "POST",
      key,
      query: { uploadId: id },
      body: Buffer.from(`<CompleteMultipartUpload>${parts.join("")}</CompleteMultipartUpload>`),
    });
    // An error that the server found after it had sent the status.
    const code = elementOf(xml, "Code");
    if (elementOf(xml, "ETag") !== null || code === null) return;
    throw new S3Error(200, code, `${this.#client.where(key)}: ${elementOf(xml, "Message")}`);
  }

  async #abort(key: string, uploadId: string): Promise<void> {
    await this.#drained({ method: "DELETE", key, query: { uploadId } });
  }

  async #drained(request: Parameters<S3Client["send"]>[0]): Promise<void> {
    await (await this.#client.send(request)).arrayBuffer();
  }
}

interface Upload {
  readonly id: string;
  /** Tags of the uploaded parts, in order. */
  readonly tags: string[];
}

interface Part {
  readonly body: Buffer;
  readonly sha256: string;
  readonly isLast: boolean;
}

/** Splits a stream into parts, at least one, of which the last may be small. Hashes each chunk as it arrives. */
async function* inParts(bytes: AsyncIterable<Buffer> | Iterable<Buffer>): AsyncGenerator<Part> {
  let pieces: Buffer[] = [];
  let hash = createHash("sha256");
  let gathered = 0;
  let count = 0;
  const part = (isLast: boolean): Part => {
    return { body: Buffer.concat(pieces), sha256: hash.digest("hex"), isLast };
  };
  for await (const piece of bytes) {
    // Copied, because a chunk is valid only until the next one.
    pieces.push(Buffer.from(piece));
    hash.update(piece);
    gathered += piece.length;
    await pauseIfDue();
    if (gathered < (count < smallPartsMax ? smallPartBytes : largePartBytes)) continue;
    count++;
    yield part(false);
    pieces = [];
    hash = createHash("sha256");
    gathered = 0;
  }
  if (gathered > 0 || count === 0) yield part(true);
}
