import { setImmediate as tick } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { HeldReplies, type HeldShare } from "../../../server/http-threads/held-replies.ts";

const megabyte = 1024 * 1024;

class FakeConnection {
  heldBytes = 0;
  takenBytes = 0;
  isFull = false;
  isClosed = false;
  readonly share: HeldShare;

  constructor(replies: HeldReplies) {
    this.share = replies.shareOf(this);
  }

  setFull(isFull: boolean): void {
    this.isFull = isFull;
  }

  endHolding(): void {
    this.isClosed = true;
  }

  hold(bytes: number): void {
    this.heldBytes += bytes;
    this.share.report();
  }

  take(bytes: number): void {
    this.heldBytes -= bytes;
    this.takenBytes += bytes;
    this.share.report();
  }
}

/** Connections whose replies may hold 16 MB. */
function open(count: number): { replies: HeldReplies; connections: FakeConnection[] } {
  const replies = new HeldReplies(16 * megabyte);
  const connections = Array.from({ length: count }, () => new FakeConnection(replies));
  return { replies, connections };
}

function closed(connections: readonly FakeConnection[]): number[] {
  return connections.flatMap(({ isClosed }, n) => (isClosed ? [n] : []));
}

describe("replies that the kernel has not accepted", () => {
  test("are counted until it accepts them", () => {
    const { replies, connections } = open(2);
    connections[0]?.hold(100_000);
    connections[1]?.hold(200_000);
    expect(replies.bytes).toBe(300_000);
    connections[0]?.take(100_000);
    expect(replies.bytes).toBe(200_000);
    connections[1]?.share.close();
    expect(replies.bytes).toBe(0);
  });

  test("are counted by the sweep if nothing reports them", () => {
    const { replies, connections } = open(100);
    for (const connection of connections) connection.heldBytes = 1000;
    replies.sweep();
    expect(replies.bytes).toBe(100_000);
  });

  test("of 256 KB delay further requests of the connection until half of it was read", () => {
    const { connections } = open(2);
    const [one, other] = connections as [FakeConnection, FakeConnection];
    one.hold(256 * 1024);
    expect([one.isFull, other.isFull]).toEqual([true, false]);
    one.take(100_000);
    expect(one.isFull).toBe(true);
    one.take(50_000);
    expect(one.isFull).toBe(false);
  });
});

describe("over the limit", () => {
  test("closes only the connections that hold most and do not read", () => {
    const { replies, connections } = open(20);
    const hold = () => {
      for (const [n, connection] of connections.entries())
        connection.hold(n < 10 ? 600_000 : 300_000);
    };
    hold();
    replies.sweep();
    hold();
    replies.sweep();
    expect(closed(connections)).toEqual([0, 1]);
    expect(replies.bytes).toBeLessThanOrEqual(replies.bytesMax);
  });

  test("keeps connections that read", () => {
    const { replies, connections } = open(20);
    for (let sweep = 0; sweep < 10; sweep++) {
      for (const connection of connections) {
        connection.take(connection.heldBytes / 2);
        connection.hold(megabyte - connection.heldBytes);
      }
      replies.sweep();
    }
    expect(replies.bytes).toBeGreaterThan(replies.bytesMax);
    expect(closed(connections)).toEqual([]);
    // One of them stops reading.
    for (let sweep = 0; sweep < 3; sweep++) {
      for (const [n, connection] of connections.entries()) {
        if (n === 7) continue;
        connection.take(connection.heldBytes / 2);
        connection.hold(megabyte - connection.heldBytes);
      }
      replies.sweep();
    }
    expect(closed(connections)).toEqual([7]);
  });

  test("does not treat a connection that just started to hold replies as unread", () => {
    const { replies, connections } = open(20);
    for (const connection of connections) connection.hold(megabyte);
    replies.sweep();
    expect(closed(connections)).toEqual([]);
    replies.sweep();
    expect(closed(connections).length).toBe(4);
  });

  test("keeps a slow reader of one large reply", () => {
    const { replies, connections } = open(2);
    connections[0]?.hold(30 * megabyte);
    for (let sweep = 0; sweep < 5; sweep++) {
      replies.sweep();
      connections[0]?.take(70_000);
    }
    expect(closed(connections)).toEqual([]);
  });

  test("delays requests from 64 KB on", () => {
    const { connections } = open(200);
    for (const connection of connections) connection.hold(100_000);
    expect(connections[0]?.isFull).toBe(false);
    connections[0]?.share.report();
    expect(connections[0]?.isFull).toBe(true);
  });

  test("beyond twice the limit, closes connections without waiting for a sweep", async () => {
    const { replies, connections } = open(50);
    for (const connection of connections) connection.hold(megabyte);
    await tick();
    expect(replies.bytes).toBeLessThanOrEqual(2 * replies.bytesMax);
    expect(closed(connections).length).toBe(18);
  });

  test("beyond twice the limit, keeps connections that read", async () => {
    const { replies, connections } = open(50);
    for (const connection of connections.slice(0, 8)) {
      connection.hold(8 * megabyte);
      connection.take(megabyte);
    }
    for (const connection of connections.slice(8)) connection.hold(megabyte);
    await tick();
    expect(closed(connections).every((n) => n >= 8)).toBe(true);
    expect(closed(connections).length).toBeGreaterThan(0);
    expect(replies.bytes).toBeGreaterThan(2 * replies.bytesMax);
  });

  test("never closes the only connection with held replies", async () => {
    const { replies, connections } = open(3);
    connections[1]?.hold(100 * megabyte);
    await tick();
    for (let sweep = 0; sweep < 3; sweep++) replies.sweep();
    expect(closed(connections)).toEqual([]);
  });
});
