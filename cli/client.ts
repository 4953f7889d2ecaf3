/** HTTP client of the command line. Keeps one connection open between requests. */
import * as http from "node:http";
import * as https from "node:https";
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import type { Connection } from "./connection.ts";
import { Failure, type FailureKind } from "./failure.ts";

interface Request {
  readonly method?: string;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON; a Readable or a string is sent unchanged. */
  readonly body?: unknown;
  /** Statuses besides 2xx that are not treated as failures. */
  readonly accepts?: readonly number[];
  /** Aborts the request, which then fails as interrupted. */
  readonly signal?: AbortSignal;
}

interface Answer {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly text: string;
}

const connectSeconds = 10;

export class Client {
  readonly url: URL;
  readonly caPath: string | undefined;
  readonly #connection: Connection;
  readonly #agent: http.Agent;

  constructor(connection: Connection) {
    this.#connection = connection;
    this.url = connection.url;
    this.caPath = connection.caPath;
    this.#agent = agentFor(connection);
  }

  /** Returns the parsed reply, or null if it has no body. @throws Failure */
  async json(path: string, request: Request = {}): Promise<unknown> {
    const answer = await this.send(path, request);
    return answer.text === "" ? null : JSON.parse(answer.text);
  }

  /** Returns the reply as text. @throws Failure */
  async send(path: string, request: Request = {}): Promise<Answer> {
    const response = await this.open(path, request);
    const { statusCode: status = 0, headers } = response;
    try {
      return { status, headers, text: await text(response) };
    } catch (error) {
      throw this.#failed(request, error as Error);
    }
  }

  /** Returns the response stream. @throws Failure for a status that is neither 2xx nor accepted */
  async open(path: string, request: Request = {}): Promise<http.IncomingMessage> {
    const response = await this.#exchange(path, request);
    const status = response.statusCode ?? 0;
    if ((status >= 200 && status < 300) || request.accepts?.includes(status)) return response;
    throw failureOf(status, await text(response), response.headers, path);
  }

  close(): void {
    this.#agent.destroy();
  }

  #failed({ signal }: Request, error: Error): Failure {
    if (error instanceof Failure) return error;
    return signal?.aborted === true
      ? new Failure("interrupted", "Interrupted", { cause: error })
      : unreachable(this.#connection, error);
  }

  #exchange(path: string, sent: Request) {
    const { method = "GET", query = {}, headers = {}, body, signal } = sent;
    const url = new URL(path, this.url);
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined) url.searchParams.set(name, String(value));
    }
    return new Promise<http.IncomingMessage>((resolve, reject) => {
      const secure = url.protocol === "https:";
      const options = { method, agent: this.#agent, headers: { ...headers }, signal };
      const request = (secure ? https : http).request(url, options, resolve);
      const fail = (error: Error) => reject(this.#failed(sent, error));
      request.on("error", fail);
      addConnectTimeout(request, secure);
      if (body instanceof Readable) {
        pipeline(body, request).catch((error: Error) => fail(error));
        return;
      }
      if (body !== undefined && !("content-type" in headers)) {
        request.setHeader("content-type", "application/json");
      }
      // Node sets no content-length for the body of a DELETE.
      const bytes =
        body === undefined
          ? undefined
          : Buffer.from(typeof body === "string" ? body : JSON.stringify(body));
      if (bytes !== undefined) request.setHeader("content-length", bytes.length);
      request.end(bytes);
    });
  }
}

/** Creates an agent with persistent connections and the client certificate. */
export function agentFor({ url, cert, key, ca }: Connection): http.Agent {
  if (url.protocol !== "https:") return new http.Agent({ keepAlive: true });
  return new https.Agent({
    keepAlive: true,
    ...(cert === undefined ? {} : { cert, key }),
    ...(ca === undefined ? {} : { ca }),
  });
}

/** Destroys a request that is not connected within `connectSeconds`. */
export function addConnectTimeout(request: http.ClientRequest, isSecure: boolean): void {
  request.on("socket", (socket) => {
    if (!socket.connecting) return;
    const timer = setTimeout(
      () => request.destroy(new Error(`no connection within ${connectSeconds} s`)),
      connectSeconds * 1000,
    );
    socket.once(isSecure ? "secureConnect" : "connect", () => clearTimeout(timer));
    socket.once("close", () => clearTimeout(timer));
  });
}

/** Returns the path of a resource in a database. */
export function inDatabase(name: string, path: string): string {
  return `/databases/${encodeURIComponent(name)}/${path}`;
}

/** Converts a connection error to a failure. */
export function unreachable({ url, cert }: Connection, error: Error): Failure {
  const { code = "" } = error as { code?: string };
  const why = error.message || code;
  if (/CERT|SELF_SIGNED|UNABLE_TO|ALTNAME/.test(code)) {
    return new Failure(
      "refused",
      `The certificate of ${url.origin} is not trusted (${why}); specify the certificate authority with --ca FILE`,
      { cause: error },
    );
  }
  if (/ALERT|SSL/.test(code)) {
    return new Failure(
      "refused",
      `${url.origin} refused the connection (${why}); ${cert === undefined ? "specify a client certificate with --cert and --key" : "check --cert and --key"}`,
      { cause: error },
    );
  }
  return new Failure(
    "unreachable",
    `Cannot connect to ${url.origin} (${why}); start a server with 'jackdaw serve', or specify another URL with --url`,
    { cause: error },
  );
}

const kinds: Readonly<Record<number, FailureKind>> = {
  401: "refused",
  403: "refused",
  404: "missing",
  409: "conflict",
  412: "conflict",
};

function failureOf(
  status: number,
  body: string,
  headers: http.IncomingHttpHeaders,
  path: string,
): Failure {
  const missing = headers["database-missing"];
  if (missing !== undefined) {
    return new Failure(
      "missing",
      `Database '${decodeURIComponent(String(missing))}' does not exist; 'jackdaw databases' lists all databases`,
    );
  }
  let message = `The server returned status ${status} for ${path}`;
  let type = "";
  try {
    const sent = JSON.parse(body) as { Message?: unknown; Type?: unknown; hint?: unknown };
    if (typeof sent.Message === "string") message = sent.Message.split("\n")[0] ?? message;
    if (typeof sent.hint === "string") message = `${message.replace(/[.!]+$/, "")}. ${sent.hint}`;
    if (typeof sent.Type === "string") type = sent.Type;
  } catch {
    // The body is not an error object: report the status.
  }
  const kind = type.endsWith("DatabaseDoesNotExistException")
    ? "missing"
    : /TimeoutException$/.test(type)
      ? "conflict"
      : (kinds[status] ?? "failed");
  return new Failure(kind, message);
}
