/**
 * Requests that other nodes have forwarded to this one, and the identities of their callers.
 *
 *   x-jackdaw-forwarded   tag of the forwarding node
 *   x-jackdaw-caller      thumbprint of the caller's certificate; omitted if the node itself is the caller
 *   x-jackdaw-address     address of the caller
 *   x-jackdaw-least       minimum message of the stream that the answering copy must show
 *
 * Invariants:
 * - In a secured cluster these headers are trusted only from nodes. The caller has the rights that it has here and now.
 */
import type { Exchange } from "../http/exchange.ts";
import { unsecured } from "../security/access.ts";
import type { CertificateStore } from "../security/certificate-store.ts";

export const forwardedHeader = "x-jackdaw-forwarded";
export const callerHeader = "x-jackdaw-caller";
export const addressHeader = "x-jackdaw-address";
export const leastHeader = "x-jackdaw-least";

/** Maximum length of a tag or an address in the logs, in characters. */
const shownMax = 64;

export class ForwardedRequests {
  readonly #certificates: CertificateStore;
  /** Forwarded requests in progress. */
  readonly open = new Set<Exchange>();

  constructor(certificates: CertificateStore) {
    this.#certificates = certificates;
  }

  /** Determines the caller of the request, before its rights are checked. */
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
