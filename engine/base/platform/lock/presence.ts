/**
 * A socket in the folder, on which its owner answers while it lives. The kernel finds it by its file, so it is
 * reachable from other network and PID namespaces and by other users, and it is closed when the process ends, however
 * it ends. Linux only, and only where the file system supports sockets.
 */
import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { connect, createServer, type Server } from "node:net";

/** Milliseconds for an owner to answer. A suspended or busy one does not; then its heartbeat is watched. */
const answerMs = 300;

/**
 * "answers": the owner lives. "refused": no process of this kernel listens on it. "silent": one listens but does not
 * answer. "unknown": nothing can be determined.
 */
type Presence = "answers" | "refused" | "silent" | "unknown";

export interface PresenceSocket {
  readonly name: string;
  close(): Promise<void>;
}

/** Listens on a new socket in `folder` and answers with `nonce`. Null where that is not possible. */
export async function openPresence(folder: string, nonce: string): Promise<PresenceSocket | null> {
  if (process.platform !== "linux") return null;
  const name = `LOCK.${nonce}.sock`;
  const directory = await openFolder(folder);
  if (directory === null) return null;
  const server = await listen(`${pathOf(directory)}/${name}`, nonce);
  if (server === null) {
    await directory.close();
    return null;
  }
  return {
    name,
    close: async () => {
      // Closing removes the file, for which the folder must be open.
      await new Promise<void>((resolve) => server.close(() => resolve()));
      await directory.close();
    },
  };
}

/** Checks whether the owner of the socket lives. */
export async function askPresence(folder: string, name: string, nonce: string): Promise<Presence> {
  if (process.platform !== "linux") return "unknown";
  const directory = await openFolder(folder);
  if (directory === null) return "unknown";
  try {
    return await ask(`${pathOf(directory)}/${name}`, nonce);
  } finally {
    await directory.close();
  }
}

/** A socket path has at most 107 bytes: this one is short, whatever the folder's path. */
function pathOf(directory: FileHandle): string {
  return `/proc/self/fd/${directory.fd}`;
}

async function openFolder(folder: string): Promise<FileHandle | null> {
  return await open(folder, constants.O_RDONLY | constants.O_DIRECTORY).catch(() => null);
}

function listen(path: string, nonce: string): Promise<Server | null> {
  return new Promise((resolve) => {
    const server = createServer((connection) => {
      connection.on("error", () => undefined);
      connection.unref();
      connection.end(nonce);
    });
    server.once("error", () => resolve(null));
    server.listen({ path, readableAll: true, writableAll: true }, () => {
      server.on("error", () => undefined);
      server.unref();
      resolve(server);
    });
  });
}

function ask(path: string, nonce: string): Promise<Presence> {
  return new Promise((resolve) => {
    const connection = connect({ path });
    let answer = "";
    const timer = setTimeout(() => end("silent"), answerMs);
    const end = (presence: Presence): void => {
      clearTimeout(timer);
      connection.destroy();
      resolve(presence);
    };
    connection.on("data", (bytes) => {
      answer += bytes.toString("latin1");
    });
    connection.on("end", () => end(answer === nonce ? "answers" : "unknown"));
    connection.on("error", (error: NodeJS.ErrnoException) => {
      end(error.code === "ECONNREFUSED" ? "refused" : "unknown");
    });
  });
}
