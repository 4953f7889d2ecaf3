/**
 * The package's `jackdaw-db/testing`: a server in the process of the tests, for the official client, with a database for
 * each test. Everything is in memory.
 *
 *     const server = await startTestServer();
 *     const { name } = await server.database();
 *     const store = new DocumentStore(server.url, name);
 *     …
 *     await server.close();
 *
 * Invariants:
 * - The server listens on the loopback interface only, and does not keep the process alive.
 * - The declarations of this file name no types of other files.
 */
import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { routes } from "../server/endpoints/route-table.ts";
import { loadConfig } from "../server/settings/config.ts";
import { type RunningServer, startServer } from "../server/startup/run.ts";
import { openStorage } from "../server/startup/storage.ts";

export interface TestServerOptions {
  /** With TLS and certificates of its own: see `TestServer.authOptions`. */
  readonly secure?: boolean;
  /** Settings of the server by name, such as `{ "Query.MaxWorkInMillions": "10" }`. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Told of errors whose details no reply shows. Left out: they are printed on standard error. */
  readonly report?: (message: string, cause?: unknown) => void;
}

/** A server for tests. It ends with the process; `close` ends it earlier. */
export interface TestServer {
  /** Such as `http://127.0.0.1:40123`. */
  readonly url: string;
  /** The third argument of `DocumentStore` for a secure server; undefined for another. */
  readonly authOptions: TestAuthOptions | undefined;
  /** Creates an empty database with a name of its own. `settings`: its record, in RavenDB's terms. */
  database(settings?: Readonly<Record<string, unknown>>): Promise<TestDatabase>;
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface TestDatabase {
  readonly name: string;
  /** Deletes it, which frees its memory. Otherwise it ends with the server. */
  delete(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** The administrator's certificate, as the official client takes it. */
export interface TestAuthOptions {
  readonly type: "pfx";
  readonly certificate: Uint8Array;
  readonly password: string;
  readonly ca: string;
}

/** Seconds that `close` leaves to requests in flight. */
const shutdownSeconds = 1;

/** Starts a server on a free port. */
export async function startTestServer(options: TestServerOptions = {}): Promise<TestServer> {
  // Only the certificates are in it.
  const folder = options.secure === true ? await mkdtemp(join(tmpdir(), "jackdaw-test-")) : null;
  const remove = () => (folder === null ? null : rm(folder, { recursive: true, force: true }));
  try {
    const running = await start(folder, options);
    running.unref();
    return new EmbeddedServer(running, authOptionsOf(running), remove);
  } catch (error) {
    await remove();
    throw error;
  }
}

function start(
  folder: string | null,
  { settings = {}, report = printed }: TestServerOptions,
): Promise<RunningServer> {
  const { config } = loadConfig({
    argv: [
      `--ServerUrl=${folder === null ? "http" : "https"}://127.0.0.1:0`,
      `--DataDir=${folder ?? "."}`,
      "--RunInMemory=true",
      "--Http.Threads=0",
      `--Server.ShutdownTimeoutInSec=${shutdownSeconds}`,
      ...Object.entries(settings).map(([name, value]) => `--${name}=${value}`),
    ],
    environment: {},
    readFile: () => "",
    defaultFile: "",
  });
  return startServer({
    config,
    routes,
    openStorage: (known) => openStorage(known, report),
    logError: (reference, error) => report(`Error ${reference}`, error),
  });
}

function printed(message: string, cause?: unknown): void {
  console.error(message, cause ?? "");
}

/** Undefined without TLS. */
function authOptionsOf({ certificate }: RunningServer): TestAuthOptions | undefined {
  const { admin, authorityPath } = certificate ?? {};
  if (admin === undefined || authorityPath === undefined) return undefined;
  const pfx = new Uint8Array(readFileSync(admin.pfx));
  return { type: "pfx", certificate: pfx, password: "", ca: readFileSync(authorityPath, "utf8") };
}

class EmbeddedServer implements TestServer {
  readonly authOptions: TestAuthOptions | undefined;
  readonly #running: RunningServer;
  readonly #remove: () => Promise<void> | null;
  #count = 0;
  #closing: Promise<void> | null = null;

  /** `remove` removes its folder. */
  constructor(
    running: RunningServer,
    authOptions: TestAuthOptions | undefined,
    remove: () => Promise<void> | null,
  ) {
    this.authOptions = authOptions;
    this.#running = running;
    this.#remove = remove;
  }

  get url(): string {
    return this.#running.address.url;
  }

  async database(settings: Readonly<Record<string, unknown>> = {}): Promise<TestDatabase> {
    const { databases } = this.#running.services;
    this.#count++;
    const name = `test-${this.#count}`;
    await databases.create(name, { ...settings, DatabaseName: name });
    const remove = async () => {
      await databases.delete(name);
    };
    return { name, delete: remove, [Symbol.asyncDispose]: remove };
  }

  close(): Promise<void> {
    this.#closing ??= this.#end();
    return this.#closing;
  }

  async #end(): Promise<void> {
    try {
      await this.#running.stop();
    } finally {
      await this.#remove();
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
