/** A server without certificates and one of its databases, for tests of database routes. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Log } from "../../server/logging/log.ts";
import {
  type Reply,
  type RequestOptions,
  startTestServer,
  type TestServer,
} from "./start-test-server.ts";

export interface EndpointClient {
  readonly server: TestServer;
  /** `METHOD path`, relative to the database unless the path begins with a slash; objects are sent as JSON. */
  send(
    what: string,
    body?: object | string | Buffer,
    headers?: RequestOptions["headers"],
  ): Promise<Reply>;
  /** Like `send`, but returns the parsed JSON of the reply. */
  json(what: string, body?: object | string | Buffer): Promise<unknown>;
  /** Waits until the operation at `path` has ended. @returns its state */
  ended(path: string): Promise<Record<string, unknown>>;
}

/** Starts a server. Stop it with `stopTestServers`. */
export async function startEndpointClient(
  flags: readonly string[] = [],
  log?: Log,
): Promise<EndpointClient> {
  const server = await startTestServer({
    unsecured: true,
    databases: [{ name: "db" }],
    flags,
    ...(log === undefined ? {} : { log }),
  });
  return clientOf(server);
}

/** Returns a client of a running server. */
export function clientOf(server: TestServer): EndpointClient {
  const client: EndpointClient = {
    server,
    send(what, body, headers = {}) {
      const space = what.indexOf(" ");
      const isText = body === undefined || typeof body === "string" || Buffer.isBuffer(body);
      const bytes = isText ? body : JSON.stringify(body);
      const path = what.slice(space + 1);
      return server.request(path.startsWith("/") ? path : `/databases/db/${path}`, {
        method: what.slice(0, space),
        headers,
        ...(bytes === undefined ? {} : { body: bytes }),
      });
    },
    async json(what, body) {
      return (await client.send(what, body)).json;
    },
    async ended(path) {
      for (;;) {
        const state = (await client.json(`GET ${path}`)) as Record<string, unknown>;
        if (state["Status"] !== "InProgress") return state;
        await sleep(5);
      }
    },
  };
  return client;
}

/** A multipart body; parts are identified by their order. */
export function multipart(boundary: string, parts: readonly (string | Buffer)[]): Buffer {
  const pieces = parts.flatMap((part, position) => [
    Buffer.from(
      `--${boundary}\r\nContent-Disposition: form-data; name="part${position}"; filename="blob"\r\n\r\n`,
    ),
    Buffer.from(part),
    Buffer.from("\r\n"),
  ]);
  return Buffer.concat([...pieces, Buffer.from(`--${boundary}--\r\n`)]);
}
