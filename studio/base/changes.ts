/**
 * Change notices of databases. Each database has one web socket, which is opened by the first watcher.
 *
 * Invariants:
 * - The same command of several watchers is sent once, and revoked when its last watcher is removed.
 * - Notices are batched, and delivered at most four times per second.
 * - While the tab is hidden, only operations are watched. When the tab becomes visible, and when a lost connection is
 *   restored, every watcher receives `Missed` and reloads its data.
 * - Reconnecting is attempted after 1, 2, 4 … 30 s, with a request before the socket.
 */

import { signal } from "@preact/signals";
import { connection, get } from "./client.ts";
import { isAbout, type Notice, type WatchCommand } from "./notices.ts";
import { socketAddress } from "./socket-address.ts";

/** State of the connection, for the state line. */
interface Link {
  readonly state: "connected" | "lost" | "connecting";
  /** Time of the next attempt while the connection is lost, in milliseconds since 1970. */
  readonly retryAtMs: number;
  /** Time of the last reconnect, in milliseconds since 1970; 0 if the connection was never lost. */
  readonly returnedAtMs: number;
}

export const link = signal<Link>({ state: "connected", retryAtMs: 0, returnedAtMs: 0 });

const batchMs = 250;
/** Maximum number of batched notices. Above it, watchers receive `Missed` instead. */
const noticesMax = 10_000;
/** Delay before a command is revoked, because the next page often watches the same. */
const lingerMs = 2000;
const retrySecondsMax = 30;

interface Watcher {
  readonly command: WatchCommand;
  readonly param: string | null;
  notify(notices: readonly Notice[]): void;
}

const feeds = new Map<string, Feed>();
let failures = 0;
let retryTimer: ReturnType<typeof setTimeout> | undefined;

/**
 * Calls `notify` with batches of notices for the command until the returned function is called.
 * @param param the id or name, for commands that have one
 */
export function watch(
  database: string,
  command: WatchCommand,
  param: string | null,
  notify: (notices: readonly Notice[]) => void,
): () => void {
  let feed = feeds.get(database);
  if (feed === undefined) {
    feed = new Feed(database);
    feeds.set(database, feed);
  }
  return feed.add({ command, param, notify });
}

/** Reconnects immediately. */
export function reconnectNow(): void {
  clearTimeout(retryTimer);
  void retry();
}

class Feed {
  readonly #path: string;
  readonly #watchers = new Set<Watcher>();
  /** Commands that were sent on the socket. */
  readonly #sent = new Set<string>();
  #socket: WebSocket | null = null;
  #isOpening = false;
  #lastCommandId = 0;
  #batch: Notice[] = [];
  #batchTimer: ReturnType<typeof setTimeout> | undefined;
  #wasOpen = false;

  constructor(database: string) {
    this.#path = `/databases/${encodeURIComponent(database)}/changes`;
  }

  add(watcher: Watcher): () => void {
    this.#watchers.add(watcher);
    void this.open();
    this.updateCommands();
    return () => {
      this.#watchers.delete(watcher);
      setTimeout(() => this.updateCommands(), lingerMs);
    };
  }

  get isWanted(): boolean {
    return this.#watchers.size > 0;
  }

  get isOpen(): boolean {
    return this.#socket?.readyState === WebSocket.OPEN;
  }

  /** Sends added and removed commands; closes a socket without watchers. */
  updateCommands(): void {
    const wanted = new Set<string>();
    for (const { command, param } of this.#watchers) {
      if (!document.hidden || command.startsWith("watch-operation"))
        wanted.add(JSON.stringify([command, param]));
    }
    if (this.#watchers.size === 0) {
      this.#socket?.close();
      this.#socket = null;
      this.#sent.clear();
      this.#wasOpen = false;
      return;
    }
    if (!this.isOpen) return;
    for (const key of this.#sent) if (!wanted.has(key)) this.#send(key, "un");
    for (const key of wanted) if (!this.#sent.has(key)) this.#send(key, "");
  }

  #send(key: string, prefix: "" | "un"): void {
    const [command, param] = JSON.parse(key) as [string, string | null];
    this.#lastCommandId++;
    this.#socket?.send(
      JSON.stringify({ CommandId: this.#lastCommandId, Command: prefix + command, Param: param }),
    );
    if (prefix === "") this.#sent.add(key);
    else this.#sent.delete(key);
  }

  async open(): Promise<void> {
    if (this.#socket !== null || this.#isOpening) return;
    this.#isOpening = true;
    let address: string;
    try {
      address = await socketAddress(this.#path);
    } catch {
      lost();
      return;
    } finally {
      this.#isOpening = false;
    }
    if (!this.isWanted) return;
    const socket = new WebSocket(address);
    this.#socket = socket;
    socket.onopen = () => {
      if (this.#wasOpen) this.addNotices([{ Type: "Missed" }]);
      this.#wasOpen = true;
      this.updateCommands();
      settled();
    };
    socket.onmessage = ({ data }: MessageEvent<string>) => this.#received(data);
    socket.onclose = () => {
      if (this.#socket !== socket) return;
      this.#socket = null;
      this.#sent.clear();
      if (this.isWanted) lost();
    };
  }

  #received(text: string): void {
    const messages: unknown = JSON.parse(text);
    const listed = Array.isArray(messages) ? (messages as Notice[]) : [messages as Notice];
    this.addNotices(listed.filter(({ Type }) => Type?.endsWith("Change")));
  }

  addNotices(notices: readonly Notice[]): void {
    if (notices.length === 0) return;
    if (this.#batch.length + notices.length > noticesMax) this.#batch = [{ Type: "Missed" }];
    else this.#batch.push(...notices);
    this.#batchTimer ??= setTimeout(() => this.#deliver(), batchMs);
  }

  #deliver(): void {
    this.#batchTimer = undefined;
    const batch = this.#batch;
    this.#batch = [];
    for (const { command, param, notify } of [...this.#watchers]) {
      const own = batch.filter((notice) => isAbout(command, param, notice));
      if (own.length > 0) notify(own);
    }
  }
}

/** Called when a socket closes, or a request does not reach the server. */
function lost(): void {
  if (link.peek().state === "lost") return;
  const seconds = Math.min(2 ** failures, retrySecondsMax);
  failures++;
  clearTimeout(retryTimer);
  retryTimer = setTimeout(() => void retry(), seconds * 1000);
  link.value = { ...link.peek(), state: "lost", retryAtMs: Date.now() + seconds * 1000 };
}

async function retry(): Promise<void> {
  link.value = { ...link.peek(), state: "connecting" };
  try {
    await get("/build/version");
  } catch {
    lost();
    return;
  }
  const wanted = [...feeds.values()].filter((feed) => feed.isWanted && !feed.isOpen);
  for (const feed of wanted) void feed.open();
  if (wanted.length === 0) settled();
}

/** Called when the server responds; marks the connection as restored if all needed sockets are open. */
function settled(): void {
  if ([...feeds.values()].some((feed) => feed.isWanted && !feed.isOpen)) return;
  if (link.peek().state === "connected") return;
  failures = 0;
  clearTimeout(retryTimer);
  link.value = { state: "connected", retryAtMs: 0, returnedAtMs: Date.now() };
}

connection.subscribe(({ isOnline }) => {
  if (!isOnline && link.peek().state === "connected") lost();
});

document.addEventListener("visibilitychange", () => {
  for (const feed of feeds.values()) {
    feed.updateCommands();
    if (!document.hidden) feed.addNotices([{ Type: "Missed" }]);
  }
});
