/**
 * One client connection: its identity, and the exchanges open on it.
 *
 * Invariants:
 * - `identity` is set when the connection is made, and replaced when its certificate's rights change; exchanges that
 *   the new identity does not allow are then aborted.
 */
import type { X509Certificate } from "node:crypto";
import type { Identity } from "../security/access.ts";
import type { Exchange } from "./exchange.ts";

/** The requests in progress of a client: of a certificate, or of an address without one. */
export interface ClientLoad {
  readonly key: string;
  count: number;
}

export class Connection {
  identity: Identity;
  readonly certificate: X509Certificate | undefined;
  readonly isSecure: boolean;
  readonly remoteAddress: string;
  /** Exchanges from the first byte of the request to the last of the reply; web sockets while they are open. */
  readonly open = new Set<Exchange>();
  /** Counts the requests in progress of its client, over all connections of that; set by the first request. */
  load: ClientLoad | undefined = undefined;
  /** Requests that have not begun, in order of arrival. */
  readonly waiting: Exchange[] = [];
  /** When its last request began, as `performance.now()`; before the first: when it was made. */
  usedMs = performance.now();

  constructor(
    identity: Identity,
    certificate: X509Certificate | undefined,
    isSecure: boolean,
    remoteAddress: string,
  ) {
    this.identity = identity;
    this.certificate = certificate;
    this.isSecure = isSecure;
    this.remoteAddress = remoteAddress;
  }

  /** Does the client have a registered certificate, or need none? */
  get isKnown(): boolean {
    const { standing } = this.identity;
    return standing === "known" || standing === "unsecured";
  }
}
