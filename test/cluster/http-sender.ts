/**
 * HTTP requests to one server over keep-alive connections; failures report whether the server may
 * have received the request.
 */
import * as http from "node:http";
import * as https from "node:https";

interface HttpOptions {
  readonly headers?: Readonly<Record<string, string>>;
  /** In milliseconds; 8,000 by default. */
  readonly timeoutMs?: number;
}

export interface HttpReply {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: Buffer;
  readonly text: string;
}

export interface ClientCertificate {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

/** A request without a reply. */
export class NoReply extends Error {
  /** false if no connection was established, so nothing was executed. */
  readonly mayBeDone: boolean;

  constructor(message: string, mayBeDone: boolean) {
    super(message);
    this.mayBeDone = mayBeDone;
  }
}

export class HttpSender {
  readonly #url: string;
  readonly #agent: http.Agent;
  readonly #certificate: ClientCertificate | undefined;

  constructor(url: string, certificate?: ClientCertificate) {
    this.#url = url;
    this.#certificate = certificate;
    const options = { keepAlive: true, maxSockets: 64 };
    this.#agent = certificate === undefined ? new http.Agent(options) : new https.Agent(options);
  }

  get(path: string, options?: HttpOptions): Promise<HttpReply> {
    return this.request("GET", path, undefined, options);
  }

  put(path: string, body: unknown, options?: HttpOptions): Promise<HttpReply> {
    return this.request("PUT", path, body, options);
  }

  post(path: string, body: unknown, options?: HttpOptions): Promise<HttpReply> {
    return this.request("POST", path, body, options);
  }

  /** `body`: sent verbatim if it is a buffer, else as JSON. @throws NoReply */
  request(
    method: string,
    path: string,
    body?: unknown,
    { headers, timeoutMs = 8_000 }: HttpOptions = {},
  ): Promise<HttpReply> {
    const isRaw = Buffer.isBuffer(body);
    const bytes = body === undefined || isRaw ? body : Buffer.from(JSON.stringify(body));
    return new Promise((resolve, reject) => {
      const { request: open } = this.#certificate === undefined ? http : https;
      const request = open(this.#url + path, {
        method,
        agent: this.#agent,
        ...this.#certificate,
        headers: {
          ...(bytes === undefined ? {} : { "content-length": String((bytes as Buffer).length) }),
          ...(isRaw || body === undefined ? {} : { "content-type": "application/json" }),
          ...headers,
        },
      });
      const late = setTimeout(() => request.destroy(new Error("no reply in time")), timeoutMs);
      let isConnected = false;
      request.on("socket", (socket) => {
        if (socket.connecting) socket.once("connect", () => (isConnected = true));
        else isConnected = true;
      });
      const failed = (error: Error) => {
        clearTimeout(late);
        reject(new NoReply(`${method} ${path}: ${error.message}`, isConnected));
      };
      request.on("error", failed);
      request.on("response", (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("error", failed);
        response.on("end", () => {
          clearTimeout(late);
          const all = Buffer.concat(chunks);
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            body: all,
            text: all.toString(),
          });
        });
      });
      request.end(bytes);
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}
