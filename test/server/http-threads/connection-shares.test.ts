import { EventEmitter } from "node:events";
import type { Socket } from "node:net";
import { describe, expect, test } from "vitest";
import { ConnectionShares, networkOf } from "../../../server/http-threads/connection-shares.ts";

let port = 1000;

class FakeSocket extends EventEmitter {
  readonly remotePort = port++;
  readonly localAddress = "10.0.0.1";
  readonly remoteAddress: string;
  destroyed = false;

  constructor(remoteAddress: string) {
    super();
    this.remoteAddress = remoteAddress;
  }

  destroy(): void {
    if (this.destroyed) return;
    this.destroyed = true;
    this.emit("close");
  }
}

interface Opened {
  readonly socket: FakeSocket;
  readonly connection: { client: string; usedMs: number; isIdle: boolean };
}

class Port {
  readonly shares: ConnectionShares;
  readonly opened: Opened[] = [];

  constructor(countMax: number, isSecure = true) {
    this.shares = new ConnectionShares(countMax, isSecure);
  }

  /** Connects, and presents a certificate. `client`: the registered one; "": none. */
  open(address: string, client: string): Opened {
    const socket = new FakeSocket(address);
    const connection = { client, usedMs: performance.now(), isIdle: true };
    if (this.shares.enter(socket as unknown as Socket)) {
      this.shares.identify(socket as unknown as Socket, connection);
    }
    const opened = { socket, connection };
    this.opened.push(opened);
    return opened;
  }

  openMany(count: number, address: string, client: string): Opened[] {
    return Array.from({ length: count }, () => this.open(address, client));
  }

  /** Open connections. */
  get count(): number {
    return this.opened.filter(({ socket }) => !socket.destroyed).length;
  }
}

function countOf(opened: readonly Opened[]): number {
  return opened.filter(({ socket }) => !socket.destroyed).length;
}

const none = "";
const admin = "A";

describe("with TLS", () => {
  test("an address without a certificate gets a quarter of the connections", () => {
    const port = new Port(100);
    const first = port.openMany(25, "10.1.1.1", none);
    expect(countOf(first)).toBe(25);
    const more = port.openMany(30, "10.1.1.1", none);
    expect(countOf([...first, ...more])).toBe(25);
    // The newest stay.
    expect(more.slice(-25).every(({ socket }) => !socket.destroyed)).toBe(true);
  });

  test("a certificate that is not registered counts as none", () => {
    const port = new Port(100);
    port.openMany(60, "10.1.1.1", none);
    expect(port.count).toBe(25);
  });

  test("an administrator gets in while clients without a certificate hold all that they may", () => {
    const port = new Port(100);
    for (let n = 0; n < 20; n++) port.openMany(20, `10.1.1.${n}`, none);
    expect(port.count).toBe(75);
    const admins = port.openMany(30, "10.1.1.1", admin);
    expect(countOf(admins)).toBe(30);
    expect(port.count).toBeLessThanOrEqual(100);
  });

  test("sockets without a handshake give way", () => {
    const port = new Port(100);
    for (let n = 0; n < 300; n++) {
      port.shares.enter(new FakeSocket(`10.1.${n % 250}.1`) as unknown as Socket);
    }
    expect(countOf([port.open("10.1.1.1", admin)])).toBe(1);
  });

  test("one certificate gets three quarters, and others the rest", () => {
    const port = new Port(100);
    const first = port.openMany(90, "10.1.1.1", admin);
    expect(countOf(first)).toBe(75);
    const others = port.openMany(18, "10.1.1.1", "B");
    expect(countOf(others)).toBe(18);
    expect(port.count).toBe(93);
  });

  test("one address with several certificates may use all but the room for handshakes", () => {
    const port = new Port(160);
    for (const name of ["A", "B", "C", "D"]) port.openMany(38, "10.1.1.1", name);
    expect(port.count).toBe(150);
  });

  test("when registered clients hold everything, one of the largest that is idle gives way", () => {
    const port = new Port(160);
    const large = port.openMany(110, "10.1.1.1", admin);
    port.openMany(40, "10.1.1.2", "B");
    const third = port.open("10.1.1.3", "C");
    expect(third.socket.destroyed).toBe(false);
    expect(countOf(large)).toBe(109);
  });

  test("connections with requests in progress stay; the new one is refused instead", () => {
    const port = new Port(100);
    const own = port.openMany(75, "10.1.1.1", admin);
    for (const { connection } of own) connection.isIdle = false;
    expect(port.open("10.1.1.1", admin).socket.destroyed).toBe(true);
    expect(countOf(own)).toBe(75);
    (own[3] as Opened).connection.isIdle = true;
    expect(port.open("10.1.1.1", admin).socket.destroyed).toBe(false);
    expect(own[3]?.socket.destroyed).toBe(true);
  });

  test("the connection that was used least recently gives way", () => {
    const port = new Port(100);
    const own = port.openMany(75, "10.1.1.1", admin);
    for (const [n, { connection }] of own.entries()) connection.usedMs = n === 40 ? 1 : 1000 + n;
    port.open("10.1.1.1", admin);
    expect(own.findIndex(({ socket }) => socket.destroyed)).toBe(40);
  });

  test("a certificate that is registered later counts from then on", () => {
    const port = new Port(100);
    const { socket, connection } = port.open("10.1.1.1", none);
    connection.client = admin;
    port.shares.identify(socket as unknown as Socket, connection);
    port.openMany(30, "10.1.1.1", none);
    expect(socket.destroyed).toBe(false);
  });

  test("closed connections leave their room", () => {
    const port = new Port(10);
    for (let n = 0; n < 50; n++) port.open("10.1.1.1", admin).socket.destroy();
    expect(countOf(port.openMany(7, "10.1.1.1", admin))).toBe(7);
  });

  test.each([1, 2, 3, 5])(
    "with %i connections in all, one of an administrator is served",
    (countMax) => {
      const port = new Port(countMax);
      port.openMany(20, "10.1.1.1", none);
      expect(port.open("10.1.1.1", admin).socket.destroyed).toBe(false);
      expect(port.count).toBeLessThanOrEqual(countMax);
    },
  );
});

describe("without TLS", () => {
  test("an address gets three quarters of the connections, and others the rest", () => {
    const port = new Port(100, false);
    const first = port.openMany(90, "10.1.1.1", none);
    expect(countOf(first)).toBe(75);
    expect(countOf(port.openMany(25, "10.1.1.2", none))).toBe(25);
    // When all are used, one that is idle gives way.
    expect(port.open("10.1.1.3", none).socket.destroyed).toBe(false);
    expect(port.count).toBe(100);
  });

  test("connections with requests in progress stay", () => {
    const port = new Port(100, false);
    for (const { connection } of port.openMany(75, "10.1.1.1", none)) {
      connection.isIdle = false;
    }
    expect(port.open("10.1.1.1", none).socket.destroyed).toBe(true);
    expect(port.open("10.1.1.2", none).socket.destroyed).toBe(false);
  });
});

test.each([
  ["10.1.2.3", "10.1.2.3"],
  ["::ffff:10.1.2.3", "10.1.2.3"],
  ["::1", "0:0:0:0::/64"],
  ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
  ["2001:db8:1:2::9", "2001:db8:1:2::/64"],
  ["2001:db8::9", "2001:db8:0:0::/64"],
  ["fe80::1%eth0", "fe80:0:0:0::/64"],
  ["", ""],
])("the network of %s is %s", (address, network) => {
  expect(networkOf(address)).toBe(network);
});
