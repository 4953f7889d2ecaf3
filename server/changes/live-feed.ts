/**
 * Sends metrics over one web socket at intervals: whatever is new since the last message.
 *
 * Invariants:
 * - Nothing is computed without a watcher, or while `waitingBytesMax` bytes are unsent. The watcher later receives whatever
 *   is new then.
 * - At most `liveFeedsMax` sockets are served concurrently.
 */

import type { Database } from "../../engine/engine.ts";
import type { MessageSocket } from "../http/message-socket.ts";

/** The used part of a web socket. */
export type FeedSocket = Pick<MessageSocket, "send" | "close" | "bufferedAmount" | "once">;

export interface LiveFeed {
  readonly everyMs: number;
  /** Returns the next messages, or none if nothing is new. */
  next(): readonly string[];
  /** Called once, when the socket is closed. */
  end?(): void;
  /** The database whose closing closes the socket, or undefined for a feed of the server. */
  readonly database?: Database | undefined;
  /** Reports an error of `next`, after which the socket is closed. */
  report(error: unknown): void;
}

export const liveFeedsMax = 256;
/** Number of unsent bytes in a socket beyond which nothing is sent. */
const waitingBytesMax = 1024 * 1024;
/** Maximum time between two messages, in milliseconds. A heartbeat is white space, which RavenDB's Studio ignores. */
const heartbeatMs = 4_000;
const heartbeat = "\r\n";

let feedCount = 0;

/** Sends the first message immediately. */
export function startFeed(socket: FeedSocket, feed: LiveFeed): void {
  if (feedCount >= liveFeedsMax) {
    socket.close(1013, `No more than ${liveFeedsMax} may watch at the same time.`);
    feed.end?.();
    return;
  }
  feedCount++;
  let toldMs = performance.now();
  const sendNew = () => {
    if (socket.bufferedAmount > waitingBytesMax) return;
    const messages = nextOf(feed, socket);
    const nowMs = performance.now();
    if (messages.length === 0 && nowMs - toldMs < heartbeatMs) return;
    toldMs = nowMs;
    for (const message of messages.length === 0 ? [heartbeat] : messages) socket.send(message);
  };
  const timer = setInterval(sendNew, feed.everyMs).unref();
  const stop = feed.database?.changes.listenToEnd(() =>
    socket.close(1001, "The database serves no longer."),
  );
  socket.once("close", () => {
    feedCount--;
    clearInterval(timer);
    stop?.();
    feed.end?.();
  });
  sendNew();
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
