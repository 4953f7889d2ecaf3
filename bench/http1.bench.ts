/**
 * GET by id and durable PUT over persistent HTTP/1.1 connections without TLS, compared with a bare node:http server
 * that reads the same requests and sends the same bytes. The measure is the server's processor time per request; the
 * load comes from a third process.
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { type BenchSize, documentText, median, ratio, temporaryFolder } from "./harness.ts";
import type { DocumentLoad } from "./http/document-load.ts";
import { PlainClient, startPlain } from "./http/plain-client.ts";
import { mainThreadMs, processorMs, type Server, script, stop } from "./http/processes.ts";
import type { RawResult } from "./http/raw-client.ts";

const inFlight = 64;
const documents = 10_000;
const body = `${documentText(7).slice(0, -1)},"@metadata":{"@collection":"Users"}}`;

/** Runs the bench. @returns the printed lines */
export async function run(size: BenchSize): Promise<string[]> {
  const isSmoke = size === "smoke";
  const lines: string[] = [];
  const folder = temporaryFolder();
  const children: ChildProcess[] = [];
  try {
    const server = await startPlain(folder.path);
    children.push(server.process);
    await new PlainClient(server.url, "bench").fill(commands());
    const bare = fork(script("./bare-http1.js"));
    children.push(bare);
    const load = fork(script("./document-load.js"));
    children.push(load);
    for (const method of ["GET", "PUT"] as const) {
      const requests = isSmoke ? 200 : 20_000;
      const asked = { method, requests, inFlight, documents, body };
      const line = await compare(asked, server, bare, load, isSmoke ? 1 : 7);
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
  asked: Omit<DocumentLoad, "url" | "seed">,
  server: Server,
  bare: ChildProcess,
  load: ChildProcess,
  rounds: number,
): Promise<string> {
  const own: number[] = [];
  const engine: number[] = [];
  const limit: number[] = [];
  for (let seed = 0; seed <= rounds; seed++) {
    const micros = async (url: string, pid: number | undefined) => {
      const before = processorMs(pid ?? 0);
      const mainThreadBefore = mainThreadMs(pid ?? 0);
      load.send({ ...asked, url, seed });
      const [result] = (await once(load, "message")) as [RawResult];
      const perRequest = (usedMs: number) => (usedMs * 1000) / asked.requests;
      return {
        result,
        micros: perRequest(processorMs(pid ?? 0) - before),
        mainThreadMicros: perRequest(mainThreadMs(pid ?? 0) - mainThreadBefore),
      };
    };
    const ours = await micros(server.url, server.process.pid);
    bare.send({ body: ours.result.reply });
    const [{ port }] = (await once(bare, "message")) as [{ port: number }];
    const bares = await micros(`http://127.0.0.1:${port}`, bare.pid);
    if (seed === 0 && rounds > 1) continue; // warm-up
    own.push(ours.micros);
    engine.push(ours.mainThreadMicros);
    limit.push(bares.micros);
  }
  const name = asked.method === "GET" ? "GET" : "durable PUT";
  return (
    `${name} over HTTP/1.1, ${asked.inFlight} in flight: processor ${median(own).toFixed(1)} µs per request ` +
    `(engine thread ${median(engine).toFixed(1)}), ` +
    `${ratio(median(own), median(limit))} bare (${median(limit).toFixed(1)} µs)`
  );
}

function* commands(): Generator<string> {
  for (let n = 0; n < documents; n++) {
    yield `${n === 0 ? "[" : ","}{"Id":"users/${n}","Type":"PUT","Document":${body}}`;
  }
  yield "]";
}
