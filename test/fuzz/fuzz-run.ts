/**
 * Sends mutated requests to a real server in this process and checks the oracles below. Each round starts with a new
 * database, and ends with a complete check of it and a comparison with its files.
 *
 * Oracles:
 * - No reply reports an internal failure (500, or a stopped database), and no error is logged.
 * - A reply labeled JSON is valid JSON; every reply arrives, complete, within a time limit.
 * - A GET from another database always answers 200.
 * - No unhandled rejection, no uncaught exception, and memory stays below a limit.
 */
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import * as http from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { OpenDatabase } from "../../engine/api/database/open-database.ts";
import { openedDatabase } from "../../engine/api/database.ts";
import { nodeEnvironment } from "../../engine/base/platform/node-environment.ts";
import type { Databases } from "../../engine/engine.ts";
import { routes } from "../../server/endpoints/route-table.ts";
import { loadConfig } from "../../server/settings/config.ts";
import { type RunningServer, startServer } from "../../server/startup/run.ts";
import { openStorage } from "../../server/startup/storage.ts";
import { pictureOf } from "../support/database-picture.ts";
import { describeRequest, type FuzzRequest, plainRequest, requestOf } from "./request-maker.ts";
import { backupRoot, databaseName, writtenSeeds } from "./seeds.ts";
import { conversationOf, converse } from "./socket-maker.ts";

interface FuzzOptions {
  readonly seed: number;
  /** Number of requests from the start number. */
  readonly from: number;
  readonly count: number;
  /** Called for each failure when it occurs. */
  readonly onFailure: (text: string) => void;
  readonly onRound?: (text: string) => void;
  readonly failuresMax?: number;
}

interface FuzzResult {
  readonly sent: number;
  readonly failures: number;
  /** Number of replies by status; 0 for conversations, which have no status. */
  readonly statuses: ReadonlyMap<number, number>;
  readonly slowestMs: number;
  /** Milliseconds by method and path. */
  readonly spentMs: ReadonlyMap<string, number>;
}

const bystander = "bystander-of-all";
const requestsPerRound = 5_000;
/** One in this many inputs is a conversation, and one queries the bystander database. */
const conversationEvery = 23;
const bystanderEvery = 17;
const answerMs = 20_000;
const heapBytesMax = 1_500 * 1024 * 1024;

interface Answer {
  readonly status: number;
  readonly type: string;
  readonly body: Buffer;
  /** It ended early. */
  readonly isCut: boolean;
}

export async function fuzz(options: FuzzOptions): Promise<FuzzResult> {
  const folder = mkdtempSync(join(tmpdir(), "jackdaw-fuzz-"));
  const run = new FuzzRun(options, folder);
  const onRejection = (error: unknown) => run.fail("a promise rejection was not handled", error);
  process.on("unhandledRejection", onRejection);
  process.on("uncaughtException", onRejection);
  try {
    await run.start();
    await run.all();
    return run.result;
  } finally {
    await run.stop();
    process.off("unhandledRejection", onRejection);
    process.off("uncaughtException", onRejection);
    rmSync(folder, { recursive: true, force: true });
  }
}

class FuzzRun {
  readonly #options: FuzzOptions;
  readonly #folder: string;
  readonly #agent = new http.Agent({ keepAlive: true, maxSockets: 4 });
  readonly #statuses = new Map<number, number>();
  #server: RunningServer | null = null;
  #number = 0;
  /** The start of the round: earlier requests in it may matter. */
  #roundAt = 0;
  #sent = 0;
  #failures = 0;
  #slowestMs = 0;
  readonly #spentMs = new Map<string, number>();
  /** The first error that the server logged since the last request began. */
  #logged: Error | null = null;
  /** Failures are shown once for each location of origin. */
  readonly #seen = new Map<string, number>();
  /** The current input, for failures without a reply. */
  #current = "";

  constructor(options: FuzzOptions, folder: string) {
    this.#options = options;
    this.#folder = folder;
  }

  get result(): FuzzResult {
    return {
      sent: this.#sent,
      failures: this.#failures,
      statuses: this.#statuses,
      slowestMs: this.#slowestMs,
      spentMs: this.#spentMs,
    };
  }

  async start(): Promise<void> {
    const { config } = loadConfig({
      argv: [
        "--ServerUrl=http://127.0.0.1:0",
        `--DataDir=${this.#folder}`,
        "--Server.ShutdownTimeoutInSec=1",
        `--Backup.LocalRootPath=${backupRoot}`,
      ],
      environment: {},
      readFile: () => "",
      defaultFile: "",
    });
    this.#server = await startServer({
      config,
      routes,
      openStorage: (known) =>
        openStorage(known, (message, cause, event) => {
          // Writers are held back while compaction lags: intended, and more likely on a busy machine.
          if (event !== "writers-held") this.fail(`the engine reports: ${message}`, cause);
        }),
      logError: (_reference, error) => {
        this.#logged ??= error instanceof Error ? error : new Error(String(error));
      },
    });
    await this.#databases.create(bystander, {});
    await this.#send({
      method: "PUT",
      target: `/databases/${bystander}/docs?id=a`,
      headers: [],
      body: Buffer.from("{}"),
    });
  }

  async stop(): Promise<void> {
    this.#agent.destroy();
    await this.#server?.stop();
  }

  async all(): Promise<void> {
    const { from, count } = this.#options;
    const end = from + count;
    for (let number = from; number < end && !this.#isOver; ) {
      this.#roundAt = number;
      await this.#begin();
      const roundEnd = Math.min(end, number + requestsPerRound);
      for (; number < roundEnd && !this.#isOver; number++) await this.#one(number);
      await this.#check();
      this.#options.onRound?.(
        `${this.#sent} sent, ${this.#failures} failures, slowest ${Math.round(this.#slowestMs)} ms, heap ${Math.round(process.memoryUsage().heapUsed / 1024 ** 2)} MB`,
      );
    }
  }

  get #isOver(): boolean {
    return this.#failures >= (this.#options.failuresMax ?? Number.POSITIVE_INFINITY);
  }

  get #running(): RunningServer {
    if (this.#server === null) throw new Error("the server was not started");
    return this.#server;
  }

  get #databases(): Databases {
    return this.#running.services.databases as Databases;
  }

  fail(what: string, cause?: unknown): void {
    this.#failures++;
    const text = cause instanceof Error ? (cause.stack ?? cause.message) : String(cause ?? "");
    const place =
      cause instanceof Error ? text.split("\n").slice(0, 3).join("\n") : what.slice(0, 40);
    const times = (this.#seen.get(place) ?? 0) + 1;
    this.#seen.set(place, times);
    if (times > 1) return;
    const { seed } = this.#options;
    this.#options.onFailure(
      `FAILURE ${this.#failures}: ${what}\n  --seed ${seed} --from ${this.#number} --requests 1 (or from ${this.#roundAt})\n  ${this.#current}\n  ${text}\n`,
    );
  }

  /** Replaces the database of the last round by one with data of every type. */
  async #begin(): Promise<void> {
    this.#current = "the begin of a round";
    for (const name of this.#databases.names()) {
      if (name !== bystander) await this.#databases.delete(name);
    }
    await this.#databases.create(databaseName, { DatabaseName: databaseName });
    // All seeds are valid, so that mutated requests find data.
    for (const seed of writtenSeeds) {
      if (!seed.path.startsWith(`/databases/${databaseName}/`) || seed.method === "DELETE")
        continue;
      await this.#expect(plainRequest(seed));
    }
  }

  async #one(number: number): Promise<void> {
    this.#number = number;
    const { seed } = this.#options;
    if (number % bystanderEvery === 0) await this.#askBystander();
    if (number % 100 === 0) await this.#revive();
    this.#sent++;
    if (number % conversationEvery !== 0) {
      await this.#expect(requestOf(seed, number));
      return;
    }
    const conversation = conversationOf(seed, number);
    const shown = conversation.pieces
      .map((piece) => piece.toString().slice(0, 2000))
      .join("\n    ");
    this.#current = `${conversation.kind}:\n    ${shown}`;
    const { address } = this.#running;
    const answer = await converse(conversation, { http: address.port, tcp: address.tcpPort });
    const logged = this.#takeLogged();
    if (/^HTTP\/1\.1 500/.test(answer) || logged !== undefined) {
      this.fail(`a conversation was answered ${answer.slice(0, 1000)}`, logged);
    }
    this.#count(0);
  }

  #count(status: number): void {
    this.#statuses.set(status, (this.#statuses.get(status) ?? 0) + 1);
  }

  async #askBystander(): Promise<void> {
    const target = `/databases/${bystander}/docs?id=a`;
    const { status } = await this.#send({ method: "GET", target, headers: [], body: undefined });
    if (status !== 200) this.fail(`another database's GET was answered ${status}`);
  }

  /** A request may legitimately have deleted or disabled the database. */
  async #revive(): Promise<void> {
    const databases = this.#databases;
    if (!databases.has(databaseName)) await databases.create(databaseName, {});
    const database = await databases.find(databaseName);
    if (database?.isDisabled !== true) return;
    await database.changeSettings((record) => ({ ...record, Disabled: false }));
  }

  async #expect(request: FuzzRequest): Promise<void> {
    this.#current = describeRequest(this.#running.address.url, request);
    const began = performance.now();
    this.#logged = null;
    const answer = await this.#send(request);
    const logged = this.#takeLogged();
    const tookMs = performance.now() - began;
    this.#slowestMs = Math.max(this.#slowestMs, tookMs);
    const path = `${request.method} ${request.target.split("?")[0]?.slice(0, 80)}`;
    this.#spentMs.set(path, (this.#spentMs.get(path) ?? 0) + tookMs);
    this.#count(answer.status);
    const text = answer.body.toString("utf8", 0, 1500);
    if (answer.status >= 500 && !isDeclared(answer.status, text)) {
      this.fail(`answered ${answer.status}: ${text}`, logged);
    } else if (logged !== undefined) this.fail("an error was logged", logged);
    else if (answer.isCut && answer.status !== 431 && !isWait(request)) {
      this.fail(`an answer of status ${answer.status} was cut off, or never came: ${text}`);
    } else if (isJson(request, answer) && !parses(answer.body)) {
      this.fail(`a reply labeled JSON is not valid JSON: ${text}`);
    }
  }

  #takeLogged(): Error | undefined {
    const logged = this.#logged ?? undefined;
    this.#logged = null;
    return logged;
  }

  #send({ method, target, headers, body }: FuzzRequest): Promise<Answer> {
    return new Promise((resolve) => {
      const { port } = this.#running.address;
      const sent: http.OutgoingHttpHeaders = {};
      for (const [name, value] of headers) sent[name] = value;
      if (body !== undefined) sent["Content-Length"] = body.length;
      const chunks: Buffer[] = [];
      let status = 0;
      let type = "";
      let isOver = false;
      const end = (isCut: boolean) => {
        if (isOver) return;
        isOver = true;
        clearTimeout(timer);
        resolve({ status, type, body: Buffer.concat(chunks), isCut });
      };
      const request = http.request({
        host: "127.0.0.1",
        port,
        method,
        path: target,
        headers: sent,
        agent: this.#agent,
      });
      const timer = setTimeout(() => {
        request.destroy();
        end(true);
      }, answerMs);
      request.on("error", (error) => {
        // A client that requests another protocol in a header may be disconnected.
        if (status === 0) chunks.push(Buffer.from(String(error)));
        end(true);
      });
      request.on("response", (response) => {
        status = response.statusCode ?? 0;
        type = String(response.headers["content-type"] ?? "");
        if (response.headers["content-encoding"] !== undefined) type = "";
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("end", () => end(!response.complete));
        response.on("error", () => end(true));
      });
      request.end(body);
    });
  }

  /** The complete check at the end of a round. */
  async #check(): Promise<void> {
    this.#current = "the end of a round";
    try {
      await this.#revive();
      const databaseApi = await this.#databases.find(databaseName);
      if (databaseApi === undefined) throw new Error("the database is gone");
      const database = openedDatabase(databaseApi);
      await database.operations.stop();
      database.checkInvariants();
      database.queries.indexes.checkInvariants();
      const damaged = await database.blobs.findDamaged();
      if (damaged.length > 0) throw new Error(`contents are damaged: ${damaged.join(", ")}`);
      await database.flush();
      await this.#compareWithFiles(database);
    } catch (error) {
      this.fail("the final check of the database failed", error);
    }
    const { heapUsed } = process.memoryUsage();
    if (heapUsed > heapBytesMax) this.fail(`the heap has ${heapUsed} bytes`);
  }

  async #compareWithFiles(database: OpenDatabase): Promise<void> {
    // Indexes and tasks may still write, so the comparison uses one view, and the copy as well.
    await database.compactionEnded();
    while (database.logMetrics.unsyncedBytes > 0) await database.flush();
    const picture = JSON.stringify(pictureOf(database), bigints);
    const copy = mkdtempSync(join(tmpdir(), "jackdaw-fuzz-copy-"));
    try {
      cpSync(join(this.#folder, "Databases", databaseName), copy, {
        recursive: true,
        filter: (path) => !/\bLOCK[^/]*$/.test(path),
      });
      const again = await OpenDatabase.open(nodeEnvironment(), databaseName, copy, {
        log: { mustExist: true },
      });
      try {
        again.checkInvariants();
        const found = JSON.stringify(pictureOf(again), bigints);
        if (found !== picture) throw new Error(`its files differ: ${difference(picture, found)}`);
      } finally {
        await again.abandon();
      }
    } finally {
      rmSync(copy, { recursive: true, force: true });
    }
  }
}

function bigints(_key: string, value: unknown): unknown {
  return typeof value === "bigint" ? String(value) : value;
}

function difference(one: string, other: string): string {
  let at = 0;
  while (at < one.length && one[at] === other[at]) at++;
  return `at ${at}:\n${one.slice(Math.max(0, at - 200), at + 200)}\n${other.slice(Math.max(0, at - 200), at + 200)}`;
}

/**
 * 503 is the defined reply for a disabled database, for the topology of a missing one, and for the
 * health of a server with a failed index, which a request may have deployed.
 */
function isDeclared(status: number, text: string): boolean {
  const declared = /DatabaseDisabledException|"Database .* wasn't found"|^not ready$/m;
  return status === 503 && declared.test(text);
}

/** Whether it may legitimately wait: for a time, or for indexes that may be paused. */
function isWait({ target }: FuzzRequest): boolean {
  return target.startsWith("/admin/test/delay") || /[?&]waitFor\w+Timeout=/i.test(target);
}

/** C# texts, whose replies RavenDB 7.2.7 labels as JSON. */
const codePath = /\/(?:docs\/class|sample-data\/classes|c-sharp-index-definition)(?:\?|$)/;

function isJson({ method, target }: FuzzRequest, { status, type, body }: Answer): boolean {
  if (codePath.test(target)) return false;
  if (method === "HEAD" || status === 304 || status === 204 || body.length === 0) return false;
  return type.startsWith("application/json");
}

function parses(body: Buffer): boolean {
  try {
    JSON.parse(body.toString());
    return true;
  } catch {
    return false;
  }
}
