/**
 * One connection of a client: who is on it, and which exchanges are open on it.
 *
 * Invariants:
 * - `identity` is decided when the connection is made, and replaced when the rights of its certificate change;
 *   exchanges that the new identity may not have are then aborted.
 */
import type { X509Certificate } from "node:crypto";
import type { Identity } from "./access.ts";
import type { Exchange } from "./exchange.ts";

export class Connection {
  identity: Identity;
  readonly certificate: X509Certificate | undefined;
  readonly isSecure: boolean;
  readonly remoteAddress: string;
  /** From the first byte of the request to the last of the reply; web sockets while they live. */
  readonly open = new Set<Exchange>();
  /** Requests that have not begun, in the order in which they came. */
  readonly waiting: Exchange[] = [];
  /** Are replies given in the order of the requests (HTTP/1.1)? */
  isOrdered = false;
  /** On an ordered connection: a request has begun, and its reply is not taken yet. */
  isAwaitingReader = false;
  /** Stop, and go on with, reading from it; undefined where the protocol has its own limits. */
  pause: (() => void) | undefined = undefined;
  resume: (() => void) | undefined = undefined;

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
}
