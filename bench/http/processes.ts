/** Processes shared by the HTTP benches: the server in one, a load of clients in another. Measures nothing itself. */
import { type ChildProcess, fork, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import type * as http2 from "node:http2";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { LoadOptions, LoadResult } from "./load.ts";

/** Ticks per second of process times in /proc, on every Linux that Node supports. */
const ticksPerSecond = 100;

export interface Server {
  readonly url: string;
  readonly process: ChildProcess;
}

export interface Pair {
  readonly key: string;
  readonly cert: string;
  readonly ca: string;
}

/** The path of a script relative to this one. */
export function script(path: string): string {
  return fileURLToPath(new URL(path, import.meta.url));
}

/** Starts the server on a free port, with its files in `folder`. */
export async function startJackdaw(folder: string, flags: readonly string[] = []): Promise<Server> {
  const child = spawn(
    process.execPath,
    [
      script("../../server/main.js"),
      "--ServerUrl=https://127.0.0.1:0",
      `--DataDir=${folder}`,
      ...flags,
    ],
    { stdio: ["pipe", "pipe", "inherit"] },
  );
  for await (const line of createInterface({ input: child.stdout })) {
    const url = /^Server available on: (.*)$/.exec(line)?.[1];
    if (url !== undefined) return { url, process: child };
  }
  throw new Error("the server did not start");
}

/** A certificate that the server made in `folder`: the administrator's or its own. */
export function readPair(folder: string, whose: "client" | "server"): Pair {
  const read = (name: string) => readFileSync(join(folder, "certs", name), "utf8");
  const name = whose === "client" ? "admin.client.certificate.localhost" : "server";
  return { key: read(`${name}.key`), cert: read(`${name}.crt`), ca: read("ca.crt") };
}

export function startLoad(): ChildProcess {
  return fork(script("./load.js"));
}

/** @throws Error when a request failed */
export async function runLoad(load: ChildProcess, options: LoadOptions): Promise<LoadResult> {
  load.send(options);
  const [result] = (await once(load, "message")) as [LoadResult];
  if (result.failures > 0) throw new Error(`${result.failures} requests failed`);
  return result;
}

/** User and system time of a process and its threads; NaN without /proc. */
export function processorMs(pid: number): number {
  const fields = statusFields(pid, "stat").split(") ")[1]?.split(" ") ?? [];
  return ((Number(fields[11]) + Number(fields[12])) * 1000) / ticksPerSecond;
}

/** User and system time of the main thread of a process; NaN without /proc. */
export function mainThreadMs(pid: number): number {
  const fields = statusFields(pid, `task/${pid}/stat`).split(") ")[1]?.split(" ") ?? [];
  return ((Number(fields[11]) + Number(fields[12])) * 1000) / ticksPerSecond;
}

/** A file of a process in /proc; "" where there is none. */
export function statusFields(pid: number, file: string): string {
  const path = `/proc/${pid}/${file}`;
  return existsSync(path) ? readFileSync(path, "utf8") : "";
}

export async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill();
  await once(child, "exit");
}

/** Sends one request. @throws Error for a status of 300 and above */
export async function ask(
  session: http2.ClientHttp2Session,
  method: string,
  path: string,
  content?: unknown,
): Promise<{ headers: Record<string, string>; body: string }> {
  const stream = session.request({ ":method": method, ":path": path });
  stream.end(content === undefined ? undefined : JSON.stringify(content));
  const [headers] = (await once(stream, "response")) as [http2.IncomingHttpHeaders];
  const chunks = (await stream.toArray()) as Buffer[];
  const status = Number(headers[":status"]);
  if (status >= 300) throw new Error(`${method} ${path}: ${status} ${Buffer.concat(chunks)}`);
  const plain = Object.entries(headers).filter(
    (pair): pair is [string, string] =>
      typeof pair[0] === "string" && !pair[0].startsWith(":") && pair[0] !== "date",
  );
  return { headers: Object.fromEntries(plain), body: Buffer.concat(chunks).toString("base64") };
}
