/**
 * Requests to a server with the interface of Amazon S3. They are signed (aws4fetch), and retried with increasing delays
 * after transient failures: connection errors, 429, and 5xx.
 *
 * Invariants:
 * - Each body is sent with its SHA-256, which the server checks. A body is in memory, so that it can be resent.
 * - No message contains a secret.
 */
import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { EngineError } from "../../engine/base/errors.ts";

const attemptsMax = 6;
const waitMsMin = 100;
/** Timeout of one request with a part of a file, in milliseconds. */
const requestMsMax = 300_000;
const messageCharsMax = 500;

export interface S3Settings {
  readonly bucket: string;
  readonly accessKey: string;
  readonly secretKey: string;
  readonly sessionToken: string | null;
  readonly region: string;
  /** Address of another server than Amazon's, or null. */
  readonly serverUrl: string | null;
  /** Whether the bucket is the first path segment instead of part of the host name. */
  readonly isPathStyle: boolean;
  readonly storageClass: string | null;
}

interface S3Request {
  readonly method: "GET" | "PUT" | "POST" | "DELETE";
  /** Empty for the bucket itself. */
  readonly key: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Buffer;
  /** SHA-256 of a large body, which would take too long to compute in one time slice. */
  readonly sha256?: string;
}

/** A reply with an unexpected status. */
export class S3Error extends EngineError {
  readonly status: number;
  /** For example `NoSuchKey`; empty if the reply has none. */
  readonly s3Code: string;

  constructor(status: number, s3Code: string, message: string) {
    super("file-failed", message);
    this.status = status;
    this.s3Code = s3Code;
  }
}

export class S3Client {
  readonly #settings: S3Settings;
  readonly #base: string;
  readonly #waitMs: number;

  /** @param waitMs delay of the first retry; each further delay is twice as long */
  constructor(settings: S3Settings, waitMs = waitMsMin) {
    this.#settings = settings;
    this.#base = addressOf(settings);
    this.#waitMs = waitMs;
  }

  /** Returns `s3://bucket/key`, for messages. */
  where(key: string): string {
    return `s3://${this.#settings.bucket}/${key}`;
  }

  get storageClass(): string | null {
    return this.#settings.storageClass;
  }

  /** @returns a reply of status 2xx, whose body was not read yet @throws S3Error; EngineError file-failed */
  async send(request: S3Request): Promise<Response> {
    for (let attempt = 1; ; attempt++) {
      const failure = await this.#attempt(request).catch((cause: unknown) =>
        unreachableError(this.#base, cause),
      );
      if (failure instanceof Response) return failure;
      const isLasting = failure instanceof S3Error && !mayPass(failure);
      if (isLasting || attempt === attemptsMax) throw failure;
      await sleep(this.#waitMs * 2 ** (attempt - 1) * (0.5 + Math.random()));
    }
  }

  /** As `send`, with the body as text. A failed read of the body is also retried. */
  async text(request: S3Request): Promise<string> {
    for (let attempt = 1; ; attempt++) {
      const reply = await this.send(request);
      try {
        return await reply.text();
      } catch (cause) {
        if (attempt === attemptsMax) throw unreachableError(this.#base, cause);
      }
    }
  }

  async #attempt(request: S3Request): Promise<Response | S3Error> {
    const { method, key, query = {}, headers = {}, body } = request;
    const sum = request.sha256 ?? sha256(body ?? Buffer.alloc(0));
    const { AwsV4Signer } = await import("aws4fetch");
    const { accessKey, secretKey, sessionToken, region } = this.#settings;
    const parameters = new URLSearchParams(query).toString().replaceAll("+", "%20");
    const path = key.split("/").map(encoded).join("/");
    const signer = new AwsV4Signer({
      method,
      url: `${this.#base}/${path}${parameters === "" ? "" : `?${parameters}`}`,
      headers: { ...headers, "X-Amz-Content-Sha256": sum },
      accessKeyId: accessKey,
      secretAccessKey: secretKey,
      ...(sessionToken === null ? {} : { sessionToken }),
      region,
      service: "s3",
    });
    const { url, headers: signed } = await signer.sign();
    const reply = await fetch(url, {
      method,
      headers: signed,
      redirect: "manual",
      signal: AbortSignal.timeout(requestMsMax),
      ...(body === undefined ? {} : { body: body as Uint8Array<ArrayBuffer> }),
    });
    if (reply.ok) return reply;
    const text = (await reply.text()).slice(0, 64 * 1024);
    const code = elementOf(text, "Code") ?? "";
    const said = elementOf(text, "Message") ?? reply.headers.get("location") ?? "";
    return new S3Error(
      reply.status,
      code,
      `${this.where(key)}: the S3 server replied ${reply.status} ${code}${said === "" ? "" : ` (${said.slice(0, messageCharsMax)})`}`,
    );
  }
}

/** Returns the text of the first element of this name in a reply, or null. */
export function elementOf(xml: string, name: string): string | null {
  return elementsOf(xml, name)[0] ?? null;
}

/** Returns the texts of all elements of this name, which must not be nested. */
export function elementsOf(xml: string, name: string): string[] {
  const pattern = new RegExp(`<${name}(?:\\s[^>]*)?>([^]*?)</${name}>`, "g");
  return [...xml.matchAll(pattern)].map(([, text = ""]) => unescaped(text));
}

const entities: Readonly<Record<string, string>> = {
  lt: "<",
  gt: ">",
  quot: '"',
  apos: "'",
  amp: "&",
};

function unescaped(text: string): string {
  return text.replace(/&(?:#(\d+)|#x([0-9a-f]+)|(\w+));/gi, (whole, decimal, hex, name) => {
    if (decimal !== undefined) return String.fromCodePoint(Number(decimal));
    if (hex !== undefined) return String.fromCodePoint(Number.parseInt(hex, 16));
    return entities[String(name)] ?? whole;
  });
}

function mayPass({ status, s3Code }: S3Error): boolean {
  return status >= 500 || status === 429 || status === 408 || s3Code === "RequestTimeout";
}

function addressOf({ serverUrl, bucket, region, isPathStyle }: S3Settings): string {
  const end = region.startsWith("cn-") ? "amazonaws.com.cn" : "amazonaws.com";
  const url = new URL(serverUrl ?? `https://s3.${region}.${end}`);
  const path = url.pathname.replace(/\/+$/, "");
  return isPathStyle
    ? `${url.origin}${path}/${encoded(bucket)}`
    : `${url.protocol}//${bucket}.${url.host}${path}`;
}

/** Encodes one path segment as signatures require. */
function encoded(segment: string): string {
  return encodeURIComponent(segment).replace(
    /[!'()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

function sha256(bytes: Buffer): string {
  return createHash("sha256").update(bytes).digest("hex");
}

function unreachableError(address: string, cause: unknown): EngineError {
  if (cause instanceof EngineError) return cause;
  const inner = (cause as { cause?: { code?: string; message?: string } }).cause;
  const why = inner?.code ?? inner?.message ?? (cause as Error).message;
  return new EngineError("file-failed", `The S3 server ${address} cannot be reached: ${why}`, {
    cause,
  });
}
