/**
 * Requests that other nodes have passed on to this one: whose they are.
 *
 *   x-jackdaw-forwarded   the tag of the node that passes it on
 *   x-jackdaw-caller      the thumbprint of its caller's certificate; none: it is the node's own
 *   x-jackdaw-address     the address of its caller
 *   x-jackdaw-least       the message of the stream that the copy must show which answers
 *
 * Invariants:
 * - In a secured cluster only a node is believed. Its caller has the rights that he has here, at this moment.
 */
import type { Exchange } from "../http/exchange.ts";
import { unsecured } from "../security/access.ts";
import type { CertificateStore } from "../security/certificate-store.ts";

export const forwardedHeader = "x-jackdaw-forwarded";
export const callerHeader = "x-jackdaw-caller";
export const addressHeader = "x-jackdaw-address";
export const leastHeader = "x-jackdaw-least";

/** Characters of a tag or an address that are kept for the logs. */
const shownMax = 64;

export class ForwardedRequests {
  readonly #certificates: CertificateStore;
  /** Those that have not ended. */
  readonly open = new Set<Exchange>();

  constructor(certificates: CertificateStore) {
    this.#certificates = certificates;
  }

  /** Looks at who the request is of, before its rights are looked at. */
  take(exchange: Exchange): void {
    const nodeTag = exchange.header(forwardedHeader);
    if (nodeTag === undefined || exchange.origin !== undefined) return;
    const { identity, certificate, isSecure, remoteAddress } = exchange.connection;
    if (!identity.isNode) return;
    const caller = isSecure ? exchange.header(callerHeader) : undefined;
    const own = { identity: isSecure ? identity : unsecured, certificate };
    exchange.origin = {
      nodeTag: nodeTag.slice(0, shownMax),
      address: (exchange.header(addressHeader) ?? remoteAddress).slice(0, shownMax),
      ...(caller === undefined ? own : this.#certificates.identityNamed(caller)),
    };
    this.open.add(exchange);
    exchange.whenClosed(() => this.open.delete(exchange));
  }
}
