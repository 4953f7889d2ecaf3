/**
 * A small in-memory server for the S3 operations used by backups: objects, multipart uploads, paged
 * lists. It verifies signatures and hashes, and fails on demand. JACKDAW_TEST_S3 selects a real
 * server for the tests without failures: `http://127.0.0.1:7070|bucket|access key|secret key`.
 */
import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { AwsV4Signer } from "aws4fetch";

const accessKey = "access";
const secretKey = "a secret key";
/** Small, so that lists have several pages. */
const pageSize = 3;

/** A failure of one request. */
type S3Fault = "503" | "403" | "cut" | "late error";

export interface S3Access {
  readonly BucketName: string;
  readonly AwsAccessKey: string;
  readonly AwsSecretKey: string;
  readonly AwsRegionName: string;
  readonly CustomServerUrl: string;
  readonly ForcePathStyle: boolean;
}

interface Request {
  readonly method: string;
  readonly url: URL;
  readonly key: string;
  readonly body: Buffer;
  readonly headers: IncomingMessage["headers"];
}

export class S3Server {
  readonly objects = new Map<string, Buffer>();
  readonly uploads = new Map<string, Map<number, Buffer>>();
  /** Method and path of each request. */
  readonly requests: string[] = [];
  /** The failure of a request, by its method and the prefix of its key; undefined: it is served. */
  fault: (method: string, key: string, url: URL) => S3Fault | undefined = () => undefined;
  readonly #server: Server;

  private constructor() {
    this.#server = createServer((request, response) => {
      void this.#receive(request, response);
    });
  }

  static async start(): Promise<S3Server> {
    const started = new S3Server();
    await new Promise<void>((resolve) => started.#server.listen(0, "127.0.0.1", resolve));
    return started;
  }

  /** As S3Settings. */
  get access(): S3Access {
    const { port } = this.#server.address() as AddressInfo;
    return {
      BucketName: "bucket",
      AwsAccessKey: accessKey,
      AwsSecretKey: secretKey,
      AwsRegionName: "eu-west-1",
      CustomServerUrl: `http://127.0.0.1:${port}`,
      ForcePathStyle: true,
    };
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #receive(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const parts: Buffer[] = [];
    for await (const part of incoming) parts.push(part as Buffer);
    const url = new URL(incoming.url ?? "/", this.access.CustomServerUrl);
    const key = decodeURIComponent(url.pathname.replace(/^\/bucket\/?/, ""));
    const method = incoming.method ?? "GET";
    const { headers } = incoming;
    const request = { method, url, key, body: Buffer.concat(parts), headers };
    this.requests.push(`${method} ${key}${url.search}`);
    const fault = this.fault(method, key, url);
    if (fault === "503") error(response, 503, "SlowDown");
    else if (fault === "403") error(response, 403, "AccessDenied");
    else if (fault === "late error")
      reply(response, 200, "<Error><Code>InternalError</Code></Error>");
    else if (!(await isSigned(request))) error(response, 403, "SignatureDoesNotMatch");
    else this.#serve(request, response, fault === "cut");
  }

  #serve(request: Request, response: ServerResponse, isCut: boolean): void {
    const { method, url, key } = request;
    const upload = url.searchParams.get("uploadId");
    if (url.searchParams.has("uploads")) this.#begin(response);
    else if (upload !== null) this.#serveUpload(request, upload, response);
    else if (method === "GET" && key === "") this.#list(url, response);
    else if (method === "GET") this.#get(request, response, isCut);
    else if (method === "PUT") {
      this.objects.set(key, request.body);
      reply(response, 200, "");
    } else {
      this.objects.delete(key);
      reply(response, 204, "");
    }
  }

  #begin(response: ServerResponse): void {
    const id = `upload-${this.uploads.size}-${this.requests.length}`;
    this.uploads.set(id, new Map());
    reply(response, 200, `<R><UploadId>${id}</UploadId></R>`);
  }

  #serveUpload({ method, url, key, body }: Request, id: string, response: ServerResponse): void {
    const parts = this.uploads.get(id);
    if (parts === undefined) {
      error(response, 404, "NoSuchUpload");
      return;
    }
    if (method === "PUT") {
      parts.set(Number(url.searchParams.get("partNumber")), body);
      response.setHeader("ETag", `"${createHash("md5").update(body).digest("hex")}"`);
      reply(response, 200, "");
      return;
    }
    this.uploads.delete(id);
    if (method === "DELETE") {
      reply(response, 204, "");
      return;
    }
    const wanted = [...body.toString().matchAll(/<PartNumber>(\d+)<.*?<ETag>"?(\w+)"?</g)];
    const bytes = wanted.map(([, number]) => parts.get(Number(number)) as Buffer);
    const isWhole = wanted.every(
      ([, , tag], i) =>
        createHash("md5")
          .update(bytes[i] as Buffer)
          .digest("hex") === tag,
    );
    if (!isWhole || wanted.length !== parts.size) {
      error(response, 400, "InvalidPart");
      return;
    }
    this.objects.set(key, Buffer.concat(bytes));
    reply(response, 200, "<R><ETag>whole</ETag></R>");
  }

  #get({ key, headers }: Request, response: ServerResponse, isCut: boolean): void {
    const bytes = this.objects.get(key);
    if (bytes === undefined) {
      error(response, 404, "NoSuchKey");
      return;
    }
    const tag = `"${createHash("md5").update(bytes).digest("hex")}"`;
    const wanted = headers["if-match"];
    if (wanted !== undefined && wanted !== tag) {
      error(response, 412, "PreconditionFailed");
      return;
    }
    const [, from, to] = /^bytes=(\d+)-(\d*)$/.exec(headers.range ?? "") ?? [];
    const start = Number(from ?? 0);
    const end = to === undefined || to === "" ? bytes.length : Number(to) + 1;
    const part = bytes.subarray(start, end);
    response.writeHead(from === undefined ? 200 : 206, {
      "Content-Length": part.length,
      ETag: tag,
    });
    if (!isCut) {
      response.end(part);
      return;
    }
    response.write(part.subarray(0, Math.ceil(part.length / 2)), () => {
      setTimeout(() => response.destroy(), 20);
    });
  }

  #list(url: URL, response: ServerResponse): void {
    const prefix = url.searchParams.get("prefix") ?? "";
    const delimiter = url.searchParams.get("delimiter");
    const after = url.searchParams.get("continuation-token") ?? "";
    const items = new Map<string, string>();
    for (const [key, { length }] of this.objects) {
      if (!key.startsWith(prefix)) continue;
      const at = delimiter === null ? -1 : key.indexOf(delimiter, prefix.length);
      const folder = key.slice(0, at + 1);
      const isFolder = at >= 0;
      const name = escaped(isFolder ? folder : key);
      const xml = isFolder
        ? `<CommonPrefixes><Prefix>${name}</Prefix></CommonPrefixes>`
        : `<Contents><Key>${name}</Key><Size>${length}</Size></Contents>`;
      items.set(isFolder ? folder : key, xml);
    }
    const names = [...items.keys()].sort().filter((name) => name > after);
    const page = names.slice(0, Math.min(pageSize, Number(url.searchParams.get("max-keys") ?? 9)));
    const isTruncated = page.length < names.length;
    const next = isTruncated ? `<NextContinuationToken>${page.at(-1)}</NextContinuationToken>` : "";
    reply(
      response,
      200,
      `<L><IsTruncated>${isTruncated}</IsTruncated>${next}${page.map((name) => items.get(name)).join("")}</L>`,
    );
  }
}

function escaped(text: string): string {
  return text.replace(/[&<>]/g, (char) => `&#${char.charCodeAt(0)};`);
}

function reply(response: ServerResponse, status: number, xml: string): void {
  response.writeHead(status, { "Content-Type": "application/xml" }).end(xml);
}

function error(response: ServerResponse, status: number, code: string): void {
  reply(response, status, `<Error><Code>${code}</Code><Message>it &lt;fails&gt;</Message></Error>`);
}

async function isSigned({ method, url, headers, body }: Request): Promise<boolean> {
  const sha256 = createHash("sha256").update(body).digest("hex");
  if (headers["x-amz-content-sha256"] !== sha256) return false;
  const names = /SignedHeaders=([^,]+)/.exec(headers.authorization ?? "")?.[1]?.split(";") ?? [];
  const signed = names.filter((name) => name !== "host");
  const signer = new AwsV4Signer({
    method,
    url: url.href,
    headers: Object.fromEntries(signed.map((name) => [name, String(headers[name])])),
    accessKeyId: accessKey,
    secretAccessKey: secretKey,
    service: "s3",
    region: "eu-west-1",
    datetime: String(headers["x-amz-date"]),
  });
  return (await signer.authHeader()) === headers.authorization;
}

/** The real server in JACKDAW_TEST_S3, or null. */
export function realS3(): S3Access | null {
  const [url, bucket, access, secret] = (process.env["JACKDAW_TEST_S3"] ?? "").split("|");
  if (url === undefined || bucket === undefined || access === undefined || secret === undefined) {
    return null;
  }
  return {
    BucketName: bucket,
    AwsAccessKey: access,
    AwsSecretKey: secret,
    AwsRegionName: "us-east-1",
    CustomServerUrl: url,
    ForcePathStyle: true,
  };
}
