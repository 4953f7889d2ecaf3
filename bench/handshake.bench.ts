/**
 * A TLS connection with a client certificate and one GET, compared with a bare node:http2 server: new and resumed
 * sessions. The measure is the server's processor time per connection; the clients are in a third process.
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import * as http2 from "node:http2";
import { type BenchSize, documentText, median, ratio, temporaryFolder } from "./harness.ts";
import type { HandshakeLoad } from "./http/handshake-load.ts";
import {
  processorMs,
  readPair,
  type Server,
  script,
  sendRequest,
  startJackdaw,
  stop,
} from "./http/processes.ts";

const inFlight = 8;

/** Runs the bench. @returns the printed lines */
export async function run(size: BenchSize): Promise<string[]> {
  const isSmoke = size === "smoke";
  const lines: string[] = [];
  const folder = temporaryFolder();
  const children: ChildProcess[] = [];
  try {
    const jackdaw = await startJackdaw(folder.path);
    children.push(jackdaw.process);
    const client = readPair(folder.path, "client");
    const session = http2.connect(jackdaw.url, client);
    const document = JSON.parse(documentText(7)) as object;
    const record = { DatabaseName: "bench" };
    await sendRequest(session, "PUT", "/admin/databases?name=bench&replicationFactor=1", record);
    const put = await sendRequest(session, "PUT", "/databases/bench/docs?id=users%2F7", document);
    const get = await sendRequest(session, "GET", "/databases/bench/docs?id=users%2F7");
    session.close();
    const child = fork(script("./bare-server.js"));
    children.push(child);
    child.send({ ...readPair(folder.path, "server"), get, put });
    const [{ port }] = (await once(child, "message")) as [{ port: number }];
    const bare = { url: `https://127.0.0.1:${port}`, process: child };
    const load = fork(script("./handshake-load.js"));
    children.push(load);
    for (const isResumed of [false, true]) {
      const asked = { ...client, connections: isSmoke ? 16 : 300, inFlight, isResumed };
      const line = await compare(asked, { jackdaw, bare }, load, isSmoke ? 1 : 7);
      lines.push(line);
      console.log(line);
    }
  } finally {
    for (const child of children) await stop(child);
    folder.remove();
  }
  return lines;
}

async function compare(
  asked: Omit<HandshakeLoad, "url">,
  servers: Record<"jackdaw" | "bare", Server>,
  load: ChildProcess,
  rounds: number,
): Promise<string> {
  const micros = { jackdaw: [] as number[], bare: [] as number[] };
  for (let round = 0; round <= rounds; round++) {
    for (const name of ["jackdaw", "bare"] as const) {
      const { url, process } = servers[name];
      const before = processorMs(process.pid ?? 0);
      load.send({ ...asked, url });
      await once(load, "message");
      const used = ((processorMs(process.pid ?? 0) - before) * 1000) / asked.connections;
      if (round > 0 || rounds === 1) micros[name].push(used);
    }
  }
  const own = median(micros.jackdaw);
  const bare = median(micros.bare);
  const kind = asked.isResumed ? "continued session" : "new session";
  return `a connection with one GET, ${kind}: processor ${own.toFixed(0)} µs, ${ratio(own, bare)} bare (${bare.toFixed(0)} µs)`;
}
