/**
 * Registered client certificates and their grants, stored durably by thumbprint. Maps a certificate to an identity, and
 * notifies listeners when that mapping changes. It neither generates certificates nor serves requests.
 *
 * Invariants:
 * - Listeners are notified after a change is durable, within the same event-loop tick.
 * - Certificates are looked up by the SHA-256 of their bytes; the SHA-1 thumbprint only names them.
 * - The server's own certificate, those of the other nodes and the well-known admins are recognized without being stored
 *   here.
 */
import { X509Certificate } from "node:crypto";
import { EngineError } from "../../engine/base/errors.ts";
import type { ValueStore } from "../settings/value-store.ts";
import {
  anonymous,
  type DatabaseAccess,
  type Grant,
  type Identity,
  identify,
  namedAdmin,
  namedStranger,
  type SecurityClearance,
} from "./access.ts";

/** A registered certificate, as stored. */
export interface RegisteredCertificate {
  readonly Name: string;
  /** SHA-1, in capitals. */
  readonly Thumbprint: string;
  readonly SecurityClearance: SecurityClearance;
  readonly Permissions: Readonly<Record<string, DatabaseAccess>>;
  readonly Disabled: boolean;
  /** Base64 of the DER bytes. */
  readonly Certificate: string;
}

interface Entry {
  readonly registered: RegisteredCertificate;
  readonly certificate: X509Certificate;
}

const keyPrefix = "certificates/";
const adminKey = "server/first-admin";

export class CertificateStore {
  private readonly values: ValueStore;
  private readonly wellKnownAdmins: readonly string[];
  private readonly byThumbprint = new Map<string, Entry>();
  private readonly byFingerprint = new Map<string, Entry>();
  private readonly listeners = new Set<(thumbprint: string | undefined) => void>();
  private own: X509Certificate | undefined;
  /** SHA-256 of the certificates of the cluster's nodes. */
  private nodes: ReadonlySet<string> = new Set();
  private provisionalAdmin: X509Certificate | undefined;

  /** Loads the stored certificates. `wellKnownAdmins` contains thumbprints in capitals. */
  constructor(values: ValueStore, wellKnownAdmins: readonly string[]) {
    this.values = values;
    this.wellKnownAdmins = wellKnownAdmins;
    for (const [, text] of values.entries(keyPrefix)) {
      this.keep(JSON.parse(text) as RegisteredCertificate);
    }
  }

  /** The server's own certificate ranks as ClusterNode; the previous one loses that. */
  setServerCertificate(certificate: X509Certificate): void {
    const before = this.own;
    this.own = certificate;
    if (before !== undefined) this.announce(thumbprintOf(before));
    this.announce(thumbprintOf(certificate));
  }

  /**
   * Sets the SHA-256 fingerprints of the cluster's nodes, `AB:CD:…`. They rank as ClusterNode; removed ones lose that
   * rank immediately.
   */
  setNodes(fingerprints: ReadonlySet<string>): void {
    const { nodes } = this;
    const isSame =
      fingerprints.size === nodes.size && [...fingerprints].every((one) => nodes.has(one));
    if (isSame) return;
    this.nodes = new Set(fingerprints);
    this.announce(undefined);
  }

  get serverCertificate(): X509Certificate | undefined {
    return this.own;
  }

  get wellKnownAdminThumbprints(): readonly string[] {
    return this.wellKnownAdmins;
  }

  /** The current identity of a certificate. */
  identityOf(certificate: X509Certificate | undefined): Identity {
    if (certificate === undefined) return anonymous;
    return identify(certificate, this.grantOf(certificate), Date.now());
  }

  /** Returns the identity of the caller that another node reports, by the certificate's thumbprint, in any case. */
  identityNamed(thumbprint: string): {
    identity: Identity;
    certificate: X509Certificate | undefined;
  } {
    const upper = thumbprint.toUpperCase();
    const certificate = this.byThumbprint.get(upper)?.certificate;
    if (certificate !== undefined) return { identity: this.identityOf(certificate), certificate };
    const isAdmin = this.wellKnownAdmins.includes(upper);
    return { identity: isAdmin ? namedAdmin(upper) : namedStranger(upper), certificate };
  }

  /** All certificates, ordered by name. */
  list(): RegisteredCertificate[] {
    return [...this.byThumbprint.values()]
      .map((entry) => entry.registered)
      .sort((one, other) => (one.Name < other.Name ? -1 : one.Name > other.Name ? 1 : 0));
  }

  /** Yields the end of validity of each certificate, in milliseconds since the Unix epoch, by thumbprint. */
  *expiries(): Generator<readonly [thumbprint: string, untilMs: number]> {
    for (const [thumbprint, { certificate }] of this.byThumbprint) {
      yield [thumbprint, Date.parse(certificate.validTo)];
    }
  }

  /** `thumbprint` in any case. */
  find(thumbprint: string): RegisteredCertificate | undefined {
    return this.byThumbprint.get(thumbprint.toUpperCase())?.registered;
  }

  /** Registers a certificate, or replaces the registration under its thumbprint. Durable when it resolves. */
  async put(
    certificate: X509Certificate,
    terms: Omit<RegisteredCertificate, "Thumbprint" | "Certificate">,
  ): Promise<RegisteredCertificate> {
    const registered: RegisteredCertificate = {
      Name: terms.Name,
      Thumbprint: thumbprintOf(certificate),
      SecurityClearance: terms.SecurityClearance,
      Permissions: terms.Permissions,
      Disabled: terms.Disabled,
      Certificate: certificate.raw.toString("base64"),
    };
    const known = this.byThumbprint.get(registered.Thumbprint);
    if (known !== undefined && known.registered.Certificate !== registered.Certificate) {
      throw new EngineError(
        "invalid-operation",
        `Another certificate with the thumbprint ${registered.Thumbprint} is already registered.`,
      );
    }
    await this.values.put(keyPrefix + registered.Thumbprint, JSON.stringify(registered));
    this.keep(registered);
    this.announce(registered.Thumbprint);
    return registered;
  }

  /** Removes a certificate; has no effect if it is not registered. Durable when it resolves. */
  async delete(thumbprint: string): Promise<void> {
    const upper = thumbprint.toUpperCase();
    const entry = this.byThumbprint.get(upper);
    if (entry === undefined) return;
    await this.values.delete(keyPrefix + upper);
    this.byThumbprint.delete(upper);
    this.byFingerprint.delete(entry.certificate.fingerprint256);
    this.announce(upper);
  }

  /**
   * Registers the cluster admin that was generated together with the server's certificates. Only once: an admin that is
   * deleted later stays deleted.
   */
  async putFirstAdmin(certificate: X509Certificate, name: string): Promise<void> {
    const thumbprint = thumbprintOf(certificate);
    if (this.values.get(adminKey) === JSON.stringify(thumbprint)) return;
    await this.put(certificate, {
      Name: name,
      SecurityClearance: "ClusterAdmin",
      Permissions: {},
      Disabled: false,
    });
    await this.values.put(adminKey, JSON.stringify(thumbprint));
  }

  /** Whether a first admin was ever registered. */
  get hasFirstAdmin(): boolean {
    return this.values.get(adminKey) !== undefined;
  }

  /**
   * Sets an admin that has rights until a first one is registered: a node can register one only when the cluster is
   * complete.
   */
  setProvisionalAdmin(certificate: X509Certificate): void {
    this.provisionalAdmin = certificate;
  }

  /** Loads changes that another node has made. */
  reload(): void {
    const found = new Map<string, string>();
    for (const [key, text] of this.values.entries(keyPrefix)) {
      found.set(key.slice(keyPrefix.length), text);
    }
    for (const [thumbprint, { registered, certificate }] of [...this.byThumbprint]) {
      const text = found.get(thumbprint);
      if (text === JSON.stringify(registered)) {
        found.delete(thumbprint);
        continue;
      }
      this.byThumbprint.delete(thumbprint);
      this.byFingerprint.delete(certificate.fingerprint256);
      if (text === undefined) this.announce(thumbprint);
    }
    for (const [thumbprint, text] of found) {
      this.keep(JSON.parse(text) as RegisteredCertificate);
      this.announce(thumbprint);
    }
    if (this.provisionalAdmin === undefined || !this.hasFirstAdmin) return;
    const provisional = thumbprintOf(this.provisionalAdmin);
    this.provisionalAdmin = undefined;
    this.announce(provisional);
  }

  /**
   * Calls `listener` with the thumbprint after each change, or with undefined if any identity may have changed.
   * @returns a function that unsubscribes
   */
  onChange(listener: (thumbprint: string | undefined) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  private grantOf(certificate: X509Certificate): Grant | undefined {
    const fingerprint = certificate.fingerprint256;
    if (fingerprint === this.own?.fingerprint256 || this.nodes.has(fingerprint)) {
      return { clearance: "ClusterNode", permissions: {} };
    }
    if (this.wellKnownAdmins.includes(thumbprintOf(certificate))) {
      return { clearance: "ClusterAdmin", permissions: {} };
    }
    if (fingerprint === this.provisionalAdmin?.fingerprint256 && !this.hasFirstAdmin) {
      return { clearance: "ClusterAdmin", permissions: {} };
    }
    const registered = this.byFingerprint.get(fingerprint)?.registered;
    if (registered === undefined || registered.Disabled) return undefined;
    return { clearance: registered.SecurityClearance, permissions: registered.Permissions };
  }

  private keep(registered: RegisteredCertificate): void {
    const certificate = new X509Certificate(Buffer.from(registered.Certificate, "base64"));
    const entry: Entry = { registered, certificate };
    this.byThumbprint.set(registered.Thumbprint, entry);
    this.byFingerprint.set(certificate.fingerprint256, entry);
  }

  private announce(thumbprint: string | undefined): void {
    for (const listener of this.listeners) listener(thumbprint);
  }
}

/** SHA-1 of the certificate in capitals: RavenDB's identifier of a certificate. */
export function thumbprintOf(certificate: X509Certificate): string {
  return certificate.fingerprint.replaceAll(":", "");
}
