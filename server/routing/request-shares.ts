/**
 * Counts the requests in progress, in all and for each client, against their limit. A client (a certificate, or an
 * address without one) gets three quarters of it, over all its connections: however many requests it leaves
 * unfinished, others are served.
 *
 * Invariants:
 * - A request that was taken is given back once, whether it was over the limit or not.
 */
import type { ClientLoad, Connection } from "../http/connection.ts";

/** The part of the limit for one client. */
const clientShare = 3 / 4;

export class RequestShares {
  readonly requestsMax: number;
  readonly #clientMax: number;
  #count = 0;
  /** Of the clients with requests in progress. */
  readonly #loads = new Map<string, ClientLoad>();

  constructor(requestsMax: number) {
    this.requestsMax = requestsMax;
    this.#clientMax = Math.ceil(requestsMax * clientShare);
  }

  /** Counts a request of the connection's client. @returns whether it is over a limit. Hot. */
  take(connection: Connection): boolean {
    const { load: known } = connection;
    const load = known !== undefined && known.count > 0 ? known : this.#loadOf(connection);
    load.count++;
    this.#count++;
    return this.#count > this.requestsMax || load.count > this.#clientMax;
  }

  /** The request is complete. Hot. */
  give(connection: Connection): void {
    const load = connection.load as ClientLoad; // set when it was taken
    this.#count--;
    load.count--;
    if (load.count === 0) this.#loads.delete(load.key);
  }

  #loadOf(connection: Connection): ClientLoad {
    const key = connection.identity.thumbprint || connection.remoteAddress;
    let load = this.#loads.get(key);
    if (load === undefined) {
      load = { key, count: 0 };
      this.#loads.set(key, load);
    }
    connection.load = load;
    return load;
  }
}
