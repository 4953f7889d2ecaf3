/**
 * The connections of clients by their certificates.
 *
 * Invariants:
 * - A change of a certificate's rights applies to its open connections in the same tick, its expiry within `checkMs`.
 */
import type { Connection } from "../http/connection.ts";
import type { Exchange } from "../http/exchange.ts";
import type { ForwardedRequests } from "../routing/forwarded-requests.ts";
import type { CertificateUse } from "../routing/services.ts";
import { isAllowed } from "../security/access.ts";
import type { CertificateStore } from "../security/certificate-store.ts";

const checkMs = 500;
/** Maximum number of certificates whose last use is tracked, besides those with open connections. */
const usedCertificatesMax = 1_000;

export class Clients {
  readonly #certificates: CertificateStore;
  readonly #forwardedRequests: ForwardedRequests;
  readonly #byThumbprint = new Map<string, Set<Connection>>();
  /** When certificates without open connections were used last, as `performance.now()`; those used first are first. */
  readonly #usedMs = new Map<string, number>();
  readonly #timer: NodeJS.Timeout;
  readonly #stopListening: () => void;
  readonly #onIdentity: (connection: Connection) => void;

  /** `onIdentity`: called when the rights of a connection's client have changed. */
  constructor(
    certificates: CertificateStore,
    forwardedRequests: ForwardedRequests,
    onIdentity: (connection: Connection) => void,
  ) {
    this.#onIdentity = onIdentity;
    this.#certificates = certificates;
    this.#forwardedRequests = forwardedRequests;
    this.#stopListening = certificates.onChange((thumbprint) => this.#reconsider(thumbprint));
    this.#timer = setInterval(() => this.#checkDates(), checkMs).unref();
  }

  add(connection: Connection): void {
    const { thumbprint } = connection.identity;
    if (thumbprint === "") return;
    const known = this.#byThumbprint.get(thumbprint);
    if (known === undefined) this.#byThumbprint.set(thumbprint, new Set([connection]));
    else known.add(connection);
  }

  /** The connection has closed. */
  remove(connection: Connection): void {
    const { thumbprint } = connection.identity;
    const known = this.#byThumbprint.get(thumbprint);
    if (known?.delete(connection) !== true || known.size > 0) return;
    this.#byThumbprint.delete(thumbprint);
    this.#usedMs.delete(thumbprint);
    if (connection.identity.standing !== "known") return;
    this.#usedMs.set(thumbprint, connection.usedMs);
    for (const oldest of this.#usedMs.keys()) {
      if (this.#usedMs.size <= usedCertificatesMax) break;
      this.#usedMs.delete(oldest);
    }
  }

  /** The use of a certificate since the server was started. */
  use(thumbprint: string): CertificateUse {
    let usedMs = this.#usedMs.get(thumbprint) ?? null;
    const open = this.#byThumbprint.get(thumbprint);
    for (const connection of open ?? []) usedMs = Math.max(usedMs ?? 0, connection.usedMs);
    return { openCount: open?.size ?? 0, usedMs };
  }

  close(): void {
    clearInterval(this.#timer);
    this.#stopListening();
  }

  /**
   * A certificate's rights have changed (undefined: those of any): updates identities, and aborts exchanges that are no
   * longer allowed.
   */
  #reconsider(thumbprint: string | undefined): void {
    const known =
      thumbprint === undefined
        ? [...this.#byThumbprint.values()].flatMap((connections) => [...connections])
        : (this.#byThumbprint.get(thumbprint) ?? []);
    for (const connection of known) {
      connection.identity = this.#certificates.identityOf(connection.certificate);
      this.#onIdentity(connection);
      for (const exchange of connection.open) abortUnlessAllowed(exchange);
    }
    for (const exchange of this.#forwardedRequests.open) {
      const { origin } = exchange;
      if (origin === undefined || origin.identity.standing === "unsecured") continue;
      if (thumbprint !== undefined && origin.identity.thumbprint !== thumbprint) continue;
      const current = this.#certificates.identityNamed(origin.identity.thumbprint);
      exchange.origin = { ...origin, ...current };
      abortUnlessAllowed(exchange);
    }
  }

  #checkDates(): void {
    const now = Date.now();
    for (const [thumbprint, connections] of this.#byThumbprint) {
      for (const { identity } of connections) {
        const isOver = identity.standing === "known" && now > identity.validUntilMs;
        const hasBegun = identity.standing === "not-yet-valid" && now >= identity.validFromMs;
        if (isOver || hasBegun) this.#reconsider(thumbprint);
        break; // all have the same certificate
      }
    }
  }
}

/** Requests forwarded by a removed node are aborted, too. */
function abortUnlessAllowed(exchange: Exchange): void {
  const { requirement, databaseName, origin, identity, connection } = exchange;
  if (requirement === undefined) return;
  const isTrusted = origin === undefined || connection.identity.isNode;
  if (!isTrusted || !isAllowed(identity, requirement, databaseName)) exchange.abort();
}
