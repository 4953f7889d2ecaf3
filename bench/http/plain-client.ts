/**
 * The server in a separate process without certificates, and a client: for benches of databases rather than
 * connections. Measures nothing itself.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { Agent, type IncomingMessage, request } from "node:http";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import type { Server } from "./processes.ts";

const pollMs = 5;

export interface QueryReply {
  readonly IsStale: boolean;
  readonly TotalResults: number;
}

/** Starts the server, or another version of it: its `executable`. Resolves when it has printed its URL. */
export async function startPlain(
  folder: string,
  {
    settings = [],
    executable,
  }: { settings?: readonly string[]; executable?: string | undefined } = {},
): Promise<Server> {
  const own = fileURLToPath(new URL("../../server/main.js", import.meta.url));
  const child = spawn(
    process.execPath,
    [executable ?? own, "--ServerUrl=http://127.0.0.1:0", `--DataDir=${folder}`, ...settings],
    { stdio: ["pipe", "pipe", "inherit"] },
  );
  return { url: await urlOf(child), process: child };
}

async function urlOf(child: ChildProcess): Promise<string> {
  if (child.stdout === null) throw new Error("the server has no output");
  for await (const line of createInterface({ input: child.stdout })) {
    const url = /^Server available on: (.*)$/.exec(line)?.[1];
    if (url !== undefined) return url;
  }
  throw new Error("the server did not start");
}

/** A client of one database, with keep-alive connections. */
export class PlainClient {
  readonly #url: string;
  readonly #database: string;
  readonly #agent = new Agent({ keepAlive: true });

  constructor(url: string, database: string) {
    this.#url = url;
    this.#database = database;
  }

  /** Creates the database and runs a bulk insert. */
  async fill(commands: Iterable<string>): Promise<void> {
    await this.create();
    await this.insert(commands);
  }

  async create(): Promise<void> {
    const name = this.#database;
    const record = JSON.stringify({ DatabaseName: name });
    await this.ask("PUT", `/admin/databases?name=${name}&replicationFactor=1`, [record]);
  }

  /** Runs a bulk insert. */
  async insert(commands: Iterable<string>): Promise<void> {
    await this.ask("POST", `/databases/${this.#database}/bulk_insert?id=1`, commands);
  }

  async remove(): Promise<void> {
    const body = JSON.stringify({ DatabaseNames: [this.#database], HardDelete: true });
    await this.ask("DELETE", "/admin/databases", [body]);
  }

  /** Patches by query, and waits for the operation to complete. */
  async patch(query: string, staleTimeout: string): Promise<void> {
    const body = JSON.stringify({ Query: { Query: query } });
    const path = `/databases/${this.#database}/queries?allowStale=false&staleTimeout=${staleTimeout}`;
    const started = JSON.parse(await this.ask("PATCH", path, [body])) as { OperationId: number };
    for (;;) {
      const path = `/databases/${this.#database}/operations/state?id=${started.OperationId}`;
      const state = JSON.parse(await this.ask("GET", path)) as { Status: string };
      if (state.Status === "Completed") return;
      if (state.Status !== "InProgress") throw new Error(JSON.stringify(state));
      await new Promise((resolve) => setTimeout(resolve, pollMs));
    }
  }

  /** Runs one query. @returns the parsed reply */
  async query(body: Readonly<Record<string, unknown>>): Promise<QueryReply> {
    const path = `/databases/${this.#database}/queries`;
    return JSON.parse(await this.ask("POST", path, [JSON.stringify(body)])) as QueryReply;
  }

  /** Sends one request. @throws Error for a status of 300 and above */
  async ask(method: string, path: string, body?: Iterable<string>): Promise<string> {
    const sent = request(this.#url + path, {
      method,
      agent: this.#agent,
      headers: {
        "Content-Type": "application/json",
        "Raven-Client-Version": "7.2.0",
        ...(body === undefined ? {} : { "Transfer-Encoding": "chunked" }),
      },
    });
    const answered = once(sent, "response") as Promise<[IncomingMessage]>;
    if (body === undefined) sent.end();
    else Readable.from(chunksOf(body)).pipe(sent);
    const [reply] = await answered;
    const text = Buffer.concat((await reply.toArray()) as Buffer[]).toString();
    if ((reply.statusCode ?? 0) >= 300) throw new Error(`${method} ${path}: ${text}`);
    return text;
  }
}

/** Joins small texts into larger chunks. */
function* chunksOf(texts: Iterable<string>): Generator<string> {
  let chunk = "";
  for (const text of texts) {
    chunk += text;
    if (chunk.length < 256 * 1024) continue;
    yield chunk;
    chunk = "";
  }
  if (chunk !== "") yield chunk;
}
