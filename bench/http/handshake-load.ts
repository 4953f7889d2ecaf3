/**
 * The clients of the `handshake` bench, in a separate process: each request uses a new TLS connection with a client
 * certificate. Started with fork(); replies to each `HandshakeLoad` of its parent with `{}`.
 */
import { once } from "node:events";
import * as http2 from "node:http2";
import * as tls from "node:tls";
import { type Pair, sendRequest } from "./processes.ts";

export interface HandshakeLoad extends Pair {
  readonly url: string;
  readonly connections: number;
  readonly inFlight: number;
  /** True if the session of an earlier connection is resumed. */
  readonly isResumed: boolean;
}

process.on("message", (load: HandshakeLoad) => {
  run(load).then(
    () => process.send?.({}),
    (error: unknown) => {
      console.error(error);
      process.exit(1);
    },
  );
});
process.once("disconnect", () => process.exit(0));

async function run(load: HandshakeLoad): Promise<void> {
  let left = load.connections;
  const client = async (): Promise<void> => {
    let session: Buffer | undefined;
    // The first connection of each client cannot resume a session.
    if (load.isResumed) session = await connect(load, undefined);
    while (left-- > 0) {
      const next = await connect(load, session);
      if (load.isResumed) session = next;
    }
  };
  await Promise.all(Array.from({ length: load.inFlight }, client));
}

/** Opens a connection and sends one request. @returns its session @throws Error when a session was not resumed */
async function connect(
  { url, key, cert, ca }: HandshakeLoad,
  session: Buffer | undefined,
): Promise<Buffer | undefined> {
  const { hostname, port } = new URL(url);
  const known = session === undefined ? {} : { session };
  const socket = tls.connect({
    ...{ host: hostname, port: Number(port), key, cert, ca, ALPNProtocols: ["h2"] },
    ...known,
  });
  let fresh: Buffer | undefined;
  socket.on("session", (one: Buffer) => {
    fresh = one;
  });
  await once(socket, "secureConnect");
  if (session !== undefined && !socket.isSessionReused()) throw new Error("not continued");
  const http = http2.connect(url, { createConnection: () => socket });
  await sendRequest(http, "GET", "/databases/bench/docs?id=users%2F7");
  http.close();
  await once(socket, "close");
  return fresh;
}
