/**
 * `jackdaw-db/testing`: an in-memory server in the test process, for the official client, with a database for each
 * test.
 *
 *     const server = await startTestServer();
 *     const { name } = await server.database();
 *     const store = new DocumentStore(server.url, name);
 *     …
 *     await server.close();
 *
 * Invariants:
 * - The server listens on the loopback interface only, and does not keep the process alive.
 * - The declarations of this file use no types of other files.
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
  /** Use TLS with generated certificates: see `TestServer.authOptions`. */
  readonly secure?: boolean;
  /** Server settings by name, for example `{ "Query.MaxWorkInMillions": "10" }`. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Receives errors whose details are not part of a reply. If omitted, they are printed on standard error. */
  readonly report?: (message: string, cause?: unknown) => void;
}

/** A server for tests. It stops with the process, or when `close` is called. */
export interface TestServer {
  /** For example `http://127.0.0.1:40123`. */
  readonly url: string;
  /** Third argument of `DocumentStore` for a secure server; undefined for an insecure one. */
  readonly authOptions: TestAuthOptions | undefined;
  /** Creates an empty database with a unique name. `settings` is its database record, with RavenDB's names. */
  database(settings?: Readonly<Record<string, unknown>>): Promise<TestDatabase>;
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface TestDatabase {
  readonly name: string;
  /** Deletes the database and frees its memory. Otherwise it exists until the server is closed. */
  delete(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** The administrator's certificate, in the format of the official client. */
export interface TestAuthOptions {
  readonly type: "pfx";
  readonly certificate: Uint8Array;
  readonly password: string;
  readonly ca: string;
}

/** Time that `close` allows requests in progress to complete, in seconds. */
const shutdownSeconds = 1;

/** Starts a server on a free port. */
export async function startTestServer(options: TestServerOptions = {}): Promise<TestServer> {
  // The folder holds only the certificates.
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
  { settings = {}, report = printError }: TestServerOptions,
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

function printError(message: string, cause?: unknown): void {
  console.error(message, cause ?? "");
}

/** Returns the client's options, or undefined without TLS. */
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

  /** `remove` deletes the server's folder. */
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
