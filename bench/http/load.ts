/**
 * The clients of a server, in a separate process: HTTP/2 connections with a certificate, each with several requests
 * in flight. Started with fork(); replies to each `LoadOptions` of its parent with a `LoadResult`.
 */
import * as http2 from "node:http2";
import { percentile, seeded } from "../harness.ts";

export interface LoadOptions {
  readonly url: string;
  readonly key: string;
  readonly cert: string;
  readonly ca: string;
  readonly connections: number;
  readonly inFlightPerConnection: number;
  readonly requests: number;
  /** Share of GET requests (0 to 1); the others are PUT. */
  readonly getShare: number;
  /** Number of documents; ids are `users/<n>` with n below this. */
  readonly documents: number;
  /** Body of a PUT, in UTF-8. */
  readonly body: string;
  readonly seed: number;
}

export interface LoadResult {
  readonly ms: number;
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
  /** Number of failed requests, and replies other than 200 and 201. */
  readonly failures: number;
}

process.on("message", (options: LoadOptions) => {
  runLoad(options).then(
    (result) => process.send?.(result),
    (error: unknown) => {
      console.error(error);
      process.exit(1);
    },
  );
});
process.once("disconnect", () => process.exit(0));

async function runLoad(options: LoadOptions): Promise<LoadResult> {
  const { key, cert, ca } = options;
  const sessions = await Promise.all(
    Array.from({ length: options.connections }, () => connect(options.url, { key, cert, ca })),
  );
  const random = seeded(options.seed);
  const body = Buffer.from(options.body);
  const latencies: number[] = [];
  let failures = 0;
  let left = options.requests;
  const worker = async (session: http2.ClientHttp2Session) => {
    while (left > 0) {
      left--;
      const path = `/databases/bench/docs?id=users%2F${random() % options.documents}`;
      const isGet = options.getShare === 1 || random() / 2 ** 32 < options.getShare;
      const start = performance.now();
      const status = await request(session, path, isGet ? null : body);
      latencies.push(performance.now() - start);
      if (status !== (isGet ? 200 : 201)) failures++;
    }
  };
  const start = performance.now();
  await Promise.all(
    sessions.flatMap((session) =>
      Array.from({ length: options.inFlightPerConnection }, () => worker(session)),
    ),
  );
  const ms = performance.now() - start;
  for (const session of sessions) session.close();
  latencies.sort((a, b) => a - b);
  return {
    ms,
    p50: percentile(latencies, 0.5),
    p95: percentile(latencies, 0.95),
    p99: percentile(latencies, 0.99),
    failures,
  };
}

function connect(
  url: string,
  pair: { key: string; cert: string; ca: string },
): Promise<http2.ClientHttp2Session> {
  return new Promise((resolve, reject) => {
    const session = http2.connect(url, pair);
    session.once("connect", () => resolve(session));
    session.once("error", reject);
  });
}

function request(
  session: http2.ClientHttp2Session,
  path: string,
  body: Buffer | null,
): Promise<number> {
  return new Promise((resolve) => {
    let status = 0;
    const stream = session.request(
      body === null
        ? { ":path": path }
        : { ":path": path, ":method": "PUT", "content-type": "application/json" },
    );
    stream.once("response", (headers) => {
      status = headers[":status"] ?? 0;
    });
    stream.on("data", () => undefined);
    stream.once("error", () => undefined);
    stream.once("close", () => resolve(status));
    if (body === null) stream.end();
    else stream.end(body);
  });
}
