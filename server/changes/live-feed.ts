/**
 * Figures for one web socket, told at intervals: what is new since they were told last.
 *
 * Invariants:
 * - Nothing is composed while nobody watches, or while `waitingBytesMax` bytes wait for the one who does: he gets
 *   what is then new, later.
 * - At most `liveFeedsMax` sockets are served at once.
 */

import type { Database } from "../../engine/engine.ts";
import type { MessageSocket } from "../http/message-socket.ts";

/** What is used of a web socket. */
export type FeedSocket = Pick<MessageSocket, "send" | "close" | "bufferedAmount" | "once">;

export interface LiveFeed {
  readonly everyMs: number;
  /** The next messages; none: nothing is new. */
  next(): readonly string[];
  /** Called once, when the socket is closed. */
  end?(): void;
  /** The socket is closed when this database is; omitted: it is of the server. */
  readonly database?: Database | undefined;
  /** What `next` has thrown; the socket is closed then. */
  report(error: unknown): void;
}

export const liveFeedsMax = 256;
/** Bytes that wait in a socket, beyond which nothing is told. */
const waitingBytesMax = 1024 * 1024;
/** Between two messages at most: white space is sent, which RavenDB's Studio passes over. */
const heartbeatMs = 4_000;
const heartbeat = "\r\n";

let feedCount = 0;

/** The first message is told at once. */
export function startFeed(socket: FeedSocket, feed: LiveFeed): void {
  if (feedCount >= liveFeedsMax) {
    socket.close(1013, `No more than ${liveFeedsMax} may watch at the same time.`);
    feed.end?.();
    return;
  }
  feedCount++;
  let toldMs = performance.now();
  const tell = () => {
    if (socket.bufferedAmount > waitingBytesMax) return;
    const messages = nextOf(feed, socket);
    const nowMs = performance.now();
    if (messages.length === 0 && nowMs - toldMs < heartbeatMs) return;
    toldMs = nowMs;
    for (const message of messages.length === 0 ? [heartbeat] : messages) socket.send(message);
  };
  const timer = setInterval(tell, feed.everyMs).unref();
  const stop = feed.database?.changes.listenToEnd(() =>
    socket.close(1001, "The database serves no longer."),
  );
  socket.once("close", () => {
    feedCount--;
    clearInterval(timer);
    stop?.();
    feed.end?.();
  });
  tell();
}

function nextOf(feed: LiveFeed, socket: FeedSocket): readonly string[] {
  try {
    return feed.next();
  } catch (error) {
    feed.report(error);
    socket.close(1011, "An unexpected error, see the server's log.");
    return [];
  }
}
