/**
 * Counts the requests in progress, in total and per client, against a limit. A client (a certificate, or an address
 * without one) may have three quarters of it over all its connections, so that other clients are always served.
 *
 * Invariants:
 * - Each acquired request is released once, whether it exceeded the limit or not.
 */
import type { ClientLoad, Connection } from "../http/connection.ts";

/** Share of the limit for one client. */
const clientShare = 3 / 4;

export class RequestShares {
  readonly requestsMax: number;
  readonly #clientMax: number;
  #count = 0;
  /** Loads of the clients with requests in progress. */
  readonly #loads = new Map<string, ClientLoad>();

  constructor(requestsMax: number) {
    this.requestsMax = requestsMax;
    this.#clientMax = Math.ceil(requestsMax * clientShare);
  }

  /** Counts a request of the connection's client. @returns whether a limit is exceeded. Hot. */
  acquire(connection: Connection): boolean {
    const { load: known } = connection;
    const load = known !== undefined && known.count > 0 ? known : this.#loadOf(connection);
    load.count++;
    this.#count++;
    return this.#count > this.requestsMax || load.count > this.#clientMax;
  }

  /** Releases a complete request. Hot. */
  release(connection: Connection): void {
    const load = connection.load as ClientLoad; // set by acquire
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
