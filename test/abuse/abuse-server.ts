/**
 * The built server as a separate process, with a temporary folder and a free port, and the means of an attacker:
 * requests, raw sockets, HTTP/2 sessions. Without certificates unless `isSecure`.
 *
 * Invariants:
 * - `stop` ends the process and removes its folder, whatever its state.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import * as http from "node:http";
import * as http2 from "node:http2";
import * as https from "node:https";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import * as tls from "node:tls";
import { fileURLToPath } from "node:url";
import type { TurnReport } from "./turn-watch.ts";

/** The build is there: this file runs from dist/. */
const program = fileURLToPath(new URL("../../../bin/jackdaw", import.meta.url));
const noTurns: TurnReport = { turnMs: 0, workerTurnMs: 0, processorMs: 0 };
const turnWatch = new URL("./turn-watch.js", import.meta.url).href;
const stopMs = 10_000;

/** Of the database that is attacked, and of the other one, whose GETs are measured. */
const attackedDatabase = "attacked";
const otherDatabase = "other";
export const probedPath = `/databases/${otherDatabase}/docs?id=probe`;

export interface Reply {
  /** 0: there was no answer. */
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly text: string;
}

interface Sent {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer | AsyncIterable<Buffer | string>;
}

export class AbuseServer {
  readonly url: string;
  readonly host = "127.0.0.1";
  readonly port: number;
  readonly pid: number;
  /** The path of the attacked database: `/databases/attacked`. */
  readonly database = `/databases/${attackedDatabase}`;
  readonly isShort: boolean;
  readonly #child: ChildProcess;
  readonly #folder: string;
  readonly #agent = new http.Agent({ keepAlive: true, maxSockets: 64 });
  /** Of the administrator; undefined: there is no TLS. */
  readonly tls: { ca: string; cert: string; key: string } | undefined;
  readonly #open = new Set<() => void>();

  private constructor(
    child: ChildProcess,
    folder: string,
    lines: readonly string[],
    isShort: boolean,
  ) {
    this.#child = child;
    this.#folder = folder;
    this.isShort = isShort;
    this.pid = child.pid ?? 0;
    this.url = told(lines, "Server available on: ") ?? "";
    this.port = Number(new URL(this.url).port);
    const file = (label: string) => readFileSync(told(lines, label) ?? "", "utf8");
    this.tls = this.url.startsWith("https:")
      ? {
          ca: file("CA certificate:"),
          cert: file("Client certificate:"),
          key: file("Client key:"),
        }
      : undefined;
  }

  /** Starts one, with both databases and the document that is asked for. */
  static async start(
    isShort: boolean,
    flags: readonly string[] = [],
    isSecure = false,
  ): Promise<AbuseServer> {
    const folder = mkdtempSync(join(tmpdir(), "jackdaw-abuse-"));
    const child = spawn(
      process.execPath,
      [
        "--import",
        turnWatch,
        program,
        `--ServerUrl=${isSecure ? "https" : "http"}://127.0.0.1:0`,
        `--DataDir=${join(folder, "data")}`,
        ...flags,
      ],
      { stdio: ["pipe", "pipe", "inherit", "ipc"], cwd: folder },
    );
    const lines = await linesUntilAvailable(child);
    const server = new AbuseServer(child, folder, lines, isShort);
    for (const name of [attackedDatabase, otherDatabase]) {
      await server.ask(`/admin/databases?name=${name}&replicationFactor=1`, {
        method: "PUT",
        body: JSON.stringify({ DatabaseName: name }),
      });
    }
    const document = '{"Name":"probe","@metadata":{"@collection":"Probes"}}';
    await server.ask(probedPath, { method: "PUT", body: document });
    return server;
  }

  get isAlive(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** `full`, or in the short form `short`. */
  count(full: number, short: number): number {
    return this.isShort ? short : full;
  }

  /** One request, answered or not: never rejects. */
  request(path: string, { method = "GET", headers, body }: Sent = {}): Promise<Reply> {
    const send = this.tls === undefined ? http.request : https.request;
    return new Promise((resolve) => {
      let isAnswered = false;
      const options = {
        method,
        headers: { "Content-Type": "application/json", ...headers },
        ...(this.tls === undefined ? { agent: this.#agent } : { ...this.tls, agent: false }),
      };
      const sent = send(this.url + path, options, (reply) => {
        isAnswered = true;
        const chunks: Buffer[] = [];
        reply.on("data", (chunk: Buffer) => chunks.push(chunk));
        const end = () => {
          const text = Buffer.concat(chunks).toString();
          resolve({ status: reply.statusCode ?? 0, headers: reply.headers, text });
        };
        reply.on("end", end);
        reply.on("error", end);
      });
      sent.on("error", (error) => {
        if (!isAnswered) resolve({ status: 0, headers: {}, text: String(error) });
      });
      if (body === undefined || typeof body === "string" || Buffer.isBuffer(body)) sent.end(body);
      else void pour(body, sent);
    });
  }

  /** As `request`, for what must succeed. @throws when it does not */
  async ask(path: string, sent?: Sent): Promise<Reply> {
    const reply = await this.request(path, sent);
    if (reply.status >= 200 && reply.status < 300) return reply;
    throw new Error(
      `${sent?.method ?? "GET"} ${path}: ${reply.status} ${reply.text.slice(0, 500)}`,
    );
  }

  /** Stores documents by bulk insert: `textOf(n)` is the JSON text of `users/n`, for n from 0 to `count` - 1. */
  async fill(count: number, textOf: (n: number) => string, collection = "Users"): Promise<void> {
    async function* commands(): AsyncGenerator<string> {
      let piece = "[";
      for (let n = 0; n < count; n++) {
        const text = textOf(n).trimEnd().slice(0, -1);
        const comma = text.trim() === "{" ? "" : ",";
        piece += `${n === 0 ? "" : ","}{"Id":"users/${n}","Type":"PUT","Document":${text}${comma}"@metadata":{"@collection":"${collection}"}}}`;
        if (piece.length < 64 * 1024) continue;
        yield piece;
        piece = "";
      }
      yield `${piece}]`;
    }
    await this.ask(`${this.database}/bulk_insert?id=1`, { method: "POST", body: commands() });
  }

  /** A connection of its own (HTTP/1.1, where there is TLS); ends with the attack at the latest. */
  async connect(): Promise<Socket> {
    const socket =
      this.tls === undefined
        ? connect(this.port, this.host)
        : tls.connect({ ...this.tls, port: this.port, host: this.host });
    socket.on("error", () => undefined);
    this.track(socket, () => socket.destroy());
    await once(socket, this.tls === undefined ? "connect" : "secureConnect");
    return socket;
  }

  /** A session of HTTP/2 (with prior knowledge, where there is no TLS); ends with the attack at the latest. */
  session(options: http2.ClientSessionOptions = {}): http2.ClientHttp2Session {
    const session = http2.connect(this.url, { ...this.tls, ...options });
    session.on("error", () => undefined);
    this.track(session, () => session.destroy());
    return session;
  }

  /** Ends what `connect` and `session` made. */
  endAttack(): void {
    for (const end of this.#open) end();
    this.#open.clear();
  }

  /** What the server's process measured since the last question. */
  async turns(): Promise<TurnReport> {
    if (!this.isAlive) return noTurns;
    const answered = once(this.#child, "message") as Promise<[TurnReport]>;
    this.#child.send("report");
    const nothing = sleep(stopMs, undefined, { ref: false });
    const [report] = (await Promise.race([answered, nothing])) ?? [];
    return report ?? noTurns;
  }

  async stop(): Promise<void> {
    this.endAttack();
    this.#agent.destroy();
    if (this.isAlive) {
      const exited = once(this.#child, "exit");
      this.#child.kill();
      const timer = setTimeout(() => this.#child.kill("SIGKILL"), stopMs);
      await exited;
      clearTimeout(timer);
    }
    rmSync(this.#folder, { recursive: true, force: true });
  }

  /** Calls `end` when the attack ends, unless `one` has closed before. */
  track(one: { once(event: "close", done: () => void): unknown }, end: () => void): void {
    this.#open.add(end);
    one.once("close", () => this.#open.delete(end));
  }
}

function told(lines: readonly string[], label: string): string | undefined {
  const line = lines.find((one) => one.startsWith(label));
  return line?.slice(label.length).trim();
}

async function linesUntilAvailable(child: ChildProcess): Promise<string[]> {
  const lines: string[] = [];
  if (child.stdout === null) throw new Error("the server has no output");
  const reader = createInterface({ input: child.stdout });
  for await (const line of reader) {
    lines.push(line);
    if (line.startsWith("Server available on: ")) {
      child.stdout.resume();
      return lines;
    }
  }
  throw new Error(`the server did not start: ${lines.join("\n")}`);
}

function drained(request: http.ClientRequest): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      request.off("drain", done);
      request.off("close", done);
      resolve();
    };
    request.on("drain", done);
    request.on("close", done);
  });
}

async function pour(
  body: AsyncIterable<Buffer | string>,
  request: http.ClientRequest,
): Promise<void> {
  try {
    for await (const chunk of body) {
      if (request.destroyed) return;
      if (!request.write(chunk)) await drained(request);
    }
    request.end();
  } catch {
    request.destroy();
  }
}
