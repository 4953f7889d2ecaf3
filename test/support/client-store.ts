/**
 * Document stores of the official clients, each on a database of its own, in the ways they are used: unencrypted and in
 * memory, and over mutual TLS and on disk.
 *
 * Invariants:
 * - Everything opened is closed by `closeStores`.
 */
import { readFileSync } from "node:fs";
import * as current from "ravendb";
import * as older from "ravendb-5.4";
import { startTestServer, stopTestServers, type TestServer } from "./start-test-server.ts";

/** How a client connects, and where its server stores data. */
interface Way {
  readonly name: string;
  readonly isSecure: boolean;
}

export const ways: readonly Way[] = [
  { name: "over HTTP, in memory", isSecure: false },
  { name: "over mutual TLS, on disk", isSecure: true },
];

/** Both supported versions; their common parts are equal. */
export const clients = [
  ["7.2", current],
  ["5.4", older as unknown as typeof current],
] as const;

type Store = current.DocumentStore | older.DocumentStore;

const stores: Store[] = [];
let databases = 0;

/** Starts a server of that type; `openStore` creates the databases. */
export function startServer({ isSecure }: Way): Promise<TestServer> {
  return startTestServer(isSecure ? { flags: ["--RunInMemory=false"] } : { unsecured: true });
}

/** A store on a separate new database. `prepare` is called before it is initialized. */
export async function openStore(
  server: TestServer,
  prepare: (store: current.DocumentStore) => void = () => undefined,
): Promise<current.DocumentStore> {
  const name = await newDatabase(server);
  const store = new current.DocumentStore(server.url, name, authentication(server));
  prepare(store);
  store.initialize();
  stores.push(store);
  return store;
}

/** Like `openStore`, with the client of version 5.4. */
export async function openOlderStore(server: TestServer): Promise<older.DocumentStore> {
  const name = await newDatabase(server);
  const store = new older.DocumentStore(server.url, name, authentication(server));
  store.initialize();
  stores.push(store);
  return store;
}

async function newDatabase(server: TestServer): Promise<string> {
  databases++;
  const name = `client-${databases}`;
  await server.running.services.databases.create(name, { DatabaseName: name });
  return name;
}

/** Client options to authenticate as the first admin; empty if the server is unsecured. */
export function authentication(server: TestServer): current.IAuthOptions & older.IAuthOptions {
  const pfx = server.running.certificate?.admin?.pfx;
  if (pfx === undefined) return undefined as never; // The clients interpret it as "none".
  // The clients accept PEM with RSA keys only.
  return {
    type: "pfx",
    certificate: readFileSync(pfx),
    password: "",
    ca: server.authority.certificate,
  };
}

export async function closeStores(): Promise<void> {
  for (const store of stores.splice(0)) store.dispose();
  await stopTestServers();
}
