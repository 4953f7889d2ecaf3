/**
 * The changes of databases as they happen: one web socket a database, opened when something is watched first.
 *
 * Invariants:
 * - What several parts of the page watch is asked for once, and no longer than one of them does.
 * - Notices are gathered, and told at most four times a second.
 * - While the tab is hidden only operations are watched. When it is seen again, and when a lost connection is there again,
 *   every watcher is told `Missed`: it asks for what it shows.
 * - A lost connection is tried again after 1, 2, 4 … 30 s, by a request before the socket.
 */

import { connection, get } from "./client.ts";
import { isAbout, type Notice, type WatchCommand } from "./notices.ts";
import { signal } from "./signal.ts";
import { socketAddress } from "./socket-address.ts";

/** For the state line. */
export interface Link {
  readonly state: "well" | "lost" | "trying";
  /** Of the next attempt, while it is lost. */
  readonly retryAtMs: number;
  /** When it came back last; 0: it has never been away. */
  readonly returnedAtMs: number;
}

export const link = signal<Link>({ state: "well", retryAtMs: 0, returnedAtMs: 0 });

const gatherMs = 250;
/** More of them than this at once are as good as none: `Missed` is told instead. */
const noticesMax = 10_000;
/** A page often watches what the page before it did. */
const lingerMs = 2000;
const retrySecondsMax = 30;

interface Watcher {
  readonly command: WatchCommand;
  readonly param: string | null;
  tell(notices: readonly Notice[]): void;
}

const feeds = new Map<string, Feed>();
let failures = 0;
let retryTimer: ReturnType<typeof setTimeout> | undefined;

/**
 * Tells `tell` what the command asks for, some at a time, until the returned function is called.
 * @param param the id or name, for commands with one
 */
export function watch(
  database: string,
  command: WatchCommand,
  param: string | null,
  tell: (notices: readonly Notice[]) => void,
): () => void {
  let feed = feeds.get(database);
  if (feed === undefined) {
    feed = new Feed(database);
    feeds.set(database, feed);
  }
  return feed.add({ command, param, tell });
}

/** Does not wait for the next attempt. */
export function tryNow(): void {
  clearTimeout(retryTimer);
  void retry();
}

class Feed {
  readonly #path: string;
  readonly #watchers = new Set<Watcher>();
  /** Commands that the socket was told. */
  readonly #told = new Set<string>();
  #socket: WebSocket | null = null;
  #isOpening = false;
  #lastCommandId = 0;
  #gathered: Notice[] = [];
  #gatherTimer: ReturnType<typeof setTimeout> | undefined;
  #wasOpen = false;

  constructor(database: string) {
    this.#path = `/databases/${encodeURIComponent(database)}/changes`;
  }

  add(watcher: Watcher): () => void {
    this.#watchers.add(watcher);
    void this.open();
    this.tellCommands();
    return () => {
      this.#watchers.delete(watcher);
      setTimeout(() => this.tellCommands(), lingerMs);
    };
  }

  get isWanted(): boolean {
    return this.#watchers.size > 0;
  }

  get isOpen(): boolean {
    return this.#socket?.readyState === WebSocket.OPEN;
  }

  /** Watches and unwatches what has changed; closes a socket that nobody needs. */
  tellCommands(): void {
    const wanted = new Set<string>();
    for (const { command, param } of this.#watchers) {
      if (!document.hidden || command.startsWith("watch-operation"))
        wanted.add(JSON.stringify([command, param]));
    }
    if (this.#watchers.size === 0) {
      this.#socket?.close();
      this.#socket = null;
      this.#told.clear();
      this.#wasOpen = false;
      return;
    }
    if (!this.isOpen) return;
    for (const key of this.#told) if (!wanted.has(key)) this.#say(key, "un");
    for (const key of wanted) if (!this.#told.has(key)) this.#say(key, "");
  }

  #say(key: string, prefix: "" | "un"): void {
    const [command, param] = JSON.parse(key) as [string, string | null];
    this.#lastCommandId++;
    this.#socket?.send(
      JSON.stringify({ CommandId: this.#lastCommandId, Command: prefix + command, Param: param }),
    );
    if (prefix === "") this.#told.add(key);
    else this.#told.delete(key);
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
      if (this.#wasOpen) this.gather([{ Type: "Missed" }]);
      this.#wasOpen = true;
      this.tellCommands();
      settled();
    };
    socket.onmessage = ({ data }: MessageEvent<string>) => this.#received(data);
    socket.onclose = () => {
      if (this.#socket !== socket) return;
      this.#socket = null;
      this.#told.clear();
      if (this.isWanted) lost();
    };
  }

  #received(text: string): void {
    const messages: unknown = JSON.parse(text);
    const listed = Array.isArray(messages) ? (messages as Notice[]) : [messages as Notice];
    this.gather(listed.filter(({ Type }) => Type?.endsWith("Change")));
  }

  gather(notices: readonly Notice[]): void {
    if (notices.length === 0) return;
    if (this.#gathered.length + notices.length > noticesMax) this.#gathered = [{ Type: "Missed" }];
    else this.#gathered.push(...notices);
    this.#gatherTimer ??= setTimeout(() => this.#tell(), gatherMs);
  }

  #tell(): void {
    this.#gatherTimer = undefined;
    const gathered = this.#gathered;
    this.#gathered = [];
    for (const { command, param, tell } of [...this.#watchers]) {
      const own = gathered.filter((notice) => isAbout(command, param, notice));
      if (own.length > 0) tell(own);
    }
  }
}

/** A socket is gone, or a request did not reach the server. */
function lost(): void {
  if (link.peek().state === "lost") return;
  const seconds = Math.min(2 ** failures, retrySecondsMax);
  failures++;
  clearTimeout(retryTimer);
  retryTimer = setTimeout(() => void retry(), seconds * 1000);
  link.value = { ...link.peek(), state: "lost", retryAtMs: Date.now() + seconds * 1000 };
}

async function retry(): Promise<void> {
  link.value = { ...link.peek(), state: "trying" };
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

/** The server answers, and all sockets that are needed are open. */
function settled(): void {
  if ([...feeds.values()].some((feed) => feed.isWanted && !feed.isOpen)) return;
  if (link.peek().state === "well") return;
  failures = 0;
  clearTimeout(retryTimer);
  link.value = { state: "well", retryAtMs: 0, returnedAtMs: Date.now() };
}

connection.subscribe(({ isOnline }) => {
  if (!isOnline && link.peek().state === "well") lost();
});

document.addEventListener("visibilitychange", () => {
  for (const feed of feeds.values()) {
    feed.tellCommands();
    if (!document.hidden) feed.gather([{ Type: "Missed" }]);
  }
});
