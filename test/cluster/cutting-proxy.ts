/**
 * A TCP proxy on loopback that represents a network link: while it is cut, data is delayed until it
 * is healed, as in a network that lost packets for a while. Links are distinguished by the source
 * address of a connection (`from-own-address.cjs` gives each process its own).
 *
 * Invariants:
 * - A cut connection is not closed; its users detect the cut only by timeouts.
 */
import { createServer, connect as open, type Server, type Socket } from "node:net";

/** Source of a connection: its loopback address; `all` for any. */
type Origin = string | "all";

interface Pair {
  readonly origin: string;
  readonly near: Socket;
  readonly far: Socket;
}

export class CuttingProxy {
  readonly port: number;
  readonly #server: Server;
  readonly #target: () => number;
  readonly #pairs = new Set<Pair>();
  readonly #cut = new Set<Origin>();

  private constructor(server: Server, target: () => number) {
    this.#server = server;
    this.#target = target;
    this.port = (server.address() as { port: number }).port;
    server.on("connection", (near) => this.#connect(near));
  }

  /** `target`: returns the loopback port for each connection. `port` 0: any. */
  static async open(target: () => number, port = 0): Promise<CuttingProxy> {
    const server = createServer({ pauseOnConnect: true });
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(port, "127.0.0.1", resolve);
    });
    return new CuttingProxy(server, target);
  }

  get address(): string {
    return `127.0.0.1:${this.port}`;
  }

  cut(origin: Origin = "all"): void {
    this.#cut.add(origin);
    for (const pair of this.#pairs) this.#apply(pair);
  }

  /** Rejects connections, like a machine without a listener. */
  refuse(): void {
    this.#server.close();
  }

  /** Accepts connections again. */
  listen(): void {
    if (!this.#server.listening) this.#server.listen(this.port, "127.0.0.1");
  }

  heal(origin: Origin = "all"): void {
    if (origin === "all") this.#cut.clear();
    else this.#cut.delete(origin);
    for (const pair of this.#pairs) this.#apply(pair);
  }

  close(): void {
    this.#server.close();
    for (const { near, far } of this.#pairs) {
      near.destroy();
      far.destroy();
    }
  }

  #isCut(origin: string): boolean {
    return this.#cut.has("all") || this.#cut.has(origin);
  }

  #connect(near: Socket): void {
    const far = open(this.#target(), "127.0.0.1");
    const pair = { origin: near.remoteAddress ?? "", near, far };
    this.#pairs.add(pair);
    const carry = (from: Socket, to: Socket) => {
      from.setNoDelay(true);
      from.on("data", (bytes: Buffer) => {
        if (!to.write(bytes)) from.pause();
      });
      to.on("drain", () => this.#apply(pair));
      from.on("end", () => to.end());
      from.on("error", () => to.destroy());
      from.on("close", () => {
        to.destroy();
        this.#pairs.delete(pair);
      });
    };
    carry(near, far);
    carry(far, near);
    this.#apply(pair);
  }

  #apply({ origin, near, far }: Pair): void {
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      if (this.#isCut(origin) || to.writableNeedDrain) from.pause();
      else from.resume();
    }
  }
}
