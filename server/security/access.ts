/**
 * Identity and authorization: certificate -> identity -> may it use this route on this database. Independent of sockets
 * and of how certificates are stored.
 *
 * Invariants:
 * - An identity is immutable; when rights change, the connection gets a new one.
 * - An unknown caller gets the same refusal for everything that is not open.
 */

import type { X509Certificate } from "node:crypto";
import { foldedName } from "../../engine/base/case-folding.ts";

/**
 * The access level of a route, from the widest to the narrowest.
 * - open: no certificate needed
 * - valid-user: any registered certificate
 * - read, write, database-admin: that permission on the database in the path; operators have all
 * - operator, cluster-admin: that clearance
 * - cluster-node: another node of the cluster; nobody else, whatever he may do
 */
export type Access =
  | "open"
  | "valid-user"
  | "read"
  | "write"
  | "database-admin"
  | "operator"
  | "cluster-admin"
  | "cluster-node";

export const securityClearances = [
  "UnauthenticatedClients",
  "ClusterAdmin",
  "ClusterNode",
  "Operator",
  "ValidUser",
] as const;
export type SecurityClearance = (typeof securityClearances)[number];

export const databaseAccesses = ["Read", "ReadWrite", "Admin"] as const;
export type DatabaseAccess = (typeof databaseAccesses)[number];

/** Clearances ranked: a caller may grant only up to its own rank. A ClusterNode ranks as a ClusterAdmin. */
export const clearanceRank: Readonly<Record<SecurityClearance, number>> = {
  UnauthenticatedClients: 1,
  ValidUser: 1,
  Operator: 2,
  ClusterNode: 3,
  ClusterAdmin: 3,
};
const databaseRank: Readonly<Record<DatabaseAccess, number>> = { Read: 1, ReadWrite: 2, Admin: 3 };

export interface Identity {
  /** "known", or why the caller is not recognized. "unsecured": a server without certificates. */
  readonly standing: "known" | "unsecured" | "none" | "unknown" | "expired" | "not-yet-valid";
  /** 0 nobody, 1 valid user, 2 operator, 3 cluster admin. */
  readonly rank: number;
  /** A node of the cluster: it may act for others. */
  readonly isNode: boolean;
  /** Lower-case database name -> 1 read, 2 write, 3 admin. */
  readonly permissions: ReadonlyMap<string, number>;
  /** SHA-1 of the certificate, in capitals; "" without one. */
  readonly thumbprint: string;
  /** `CN=x(Thumbprint: T)`, for messages. */
  readonly label: string;
  /** The certificate's validity, in milliseconds since 1970. */
  readonly validFromMs: number;
  readonly validUntilMs: number;
}

const noPermissions: ReadonlyMap<string, number> = new Map();

function nobody(standing: Identity["standing"], rank: number): Identity {
  return {
    standing,
    rank,
    isNode: rank === 3,
    permissions: noPermissions,
    thumbprint: "",
    label: "",
    validFromMs: 0,
    validUntilMs: Number.POSITIVE_INFINITY,
  };
}

/** A caller that presented no certificate. */
export const anonymous: Identity = nobody("none", 0);
/** Every caller of a server without TLS. */
export const unsecured: Identity = nobody("unsecured", 3);

export interface Grant {
  readonly clearance: SecurityClearance;
  readonly permissions: Readonly<Record<string, DatabaseAccess>>;
}

/** An administrator of whom only the thumbprint is known, from the settings. */
export function namedAdmin(thumbprint: string): Identity {
  return { ...nobody("known", 3), isNode: false, thumbprint, label: `(Thumbprint: ${thumbprint})` };
}

/** Returns the registered certificate of a caller; "": it has none. */
export function registeredClient({ standing, thumbprint }: Identity): string {
  return standing === "known" ? thumbprint : "";
}

/** A caller of whom another node tells a thumbprint that is not registered here. */
export function namedStranger(thumbprint: string): Identity {
  return { ...nobody("unknown", 0), thumbprint, label: `(Thumbprint: ${thumbprint})` };
}

/**
 * The identity of a certificate. `grant` is its registration; undefined when it is not registered or is disabled. Its
 * validity is judged at `nowMs`.
 */
export function identify(
  certificate: X509Certificate,
  grant: Grant | undefined,
  nowMs: number,
): Identity {
  const thumbprint = certificate.fingerprint.replaceAll(":", "");
  const validFromMs = Date.parse(certificate.validFrom);
  const validUntilMs = Date.parse(certificate.validTo);
  let standing: Identity["standing"] = grant === undefined ? "unknown" : "known";
  if (nowMs > validUntilMs) standing = "expired";
  else if (nowMs < validFromMs) standing = "not-yet-valid";
  const permissions = new Map<string, number>();
  if (grant !== undefined && standing === "known") {
    for (const [name, access] of Object.entries(grant.permissions)) {
      permissions.set(foldedName(name), databaseRank[access]);
    }
  }
  return {
    standing,
    rank: grant === undefined || standing !== "known" ? 0 : clearanceRank[grant.clearance],
    isNode: standing === "known" && grant?.clearance === "ClusterNode",
    permissions,
    thumbprint,
    label: `${oneLine(certificate.subject)}(Thumbprint: ${thumbprint})`,
    validFromMs,
    validUntilMs,
  };
}

/** Above all ranks: being a node is no matter of rank. */
const nodeRank = 4;

/** What an access level requires: a rank of the identity, or else a permission on the database. */
export interface Requirement {
  readonly access: Access;
  /** An identity of this rank passes. */
  readonly rank: number;
  /** For a lower rank, at least 1: the permission needed on the database; 0 when only the rank counts. */
  readonly permission: number;
}

/** Requirements by level. */
export const requirements: Readonly<Record<Access, Requirement>> = {
  open: { access: "open", rank: 0, permission: 0 },
  "valid-user": { access: "valid-user", rank: 1, permission: 0 },
  read: { access: "read", rank: 2, permission: 1 },
  write: { access: "write", rank: 2, permission: 2 },
  "database-admin": { access: "database-admin", rank: 2, permission: 3 },
  operator: { access: "operator", rank: 2, permission: 0 },
  "cluster-admin": { access: "cluster-admin", rank: 3, permission: 0 },
  "cluster-node": { access: "cluster-node", rank: nodeRank, permission: 0 },
};

/** May `identity` use a route with this requirement? `database`: the name in the path, in any case. Hot. */
export function isAllowed(
  identity: Identity,
  requirement: Requirement,
  database: string | undefined,
): boolean {
  if (identity.rank >= requirement.rank) return true;
  if (requirement.rank === nodeRank) return identity.isNode;
  if (requirement.permission === 0 || identity.rank === 0 || database === undefined) return false;
  return hasPermission(identity, database, requirement.permission);
}

/** Does it have at least this permission (1 read, 2 write, 3 admin) on the database? Operators have all. */
export function hasPermission(identity: Identity, database: string, permission: number): boolean {
  if (identity.rank >= 2) return true;
  return (identity.permissions.get(foldedName(database)) ?? 0) >= permission;
}

const accessNames: Readonly<Record<Access, string>> = {
  open: "",
  "valid-user": "ValidUser",
  read: "Read",
  write: "ReadWrite",
  "database-admin": "DatabaseAdmin",
  operator: "Operator",
  "cluster-admin": "ClusterAdmin",
  "cluster-node": "ClusterNode",
};

const whatToDo =
  "A cluster administrator can make or register one with /admin/certificates; the server's first one is in the " +
  "folder certs of its data folder.";

/**
 * The message of a refusal: who was refused, why, and what to do.
 * `access` undefined: the message reveals only that the caller may not see the target.
 */
export function refusalMessage(
  identity: Identity,
  access: Access | undefined,
  database: string | undefined,
): string {
  const { label } = identity;
  switch (identity.standing) {
    case "none":
      return (
        "This server requires client certificate for authentication, but none was provided by the client. " +
        `Did you forget to install the certificate? ${whatToDo}`
      );
    case "unknown":
      return (
        `The supplied client certificate '${label}' is unknown to the server. In order to register your certificate ` +
        `please contact your system administrator. ${whatToDo}`
      );
    case "expired":
      return (
        `The supplied client certificate '${label}' has expired on ${longDate(identity.validUntilMs)}. ` +
        "Please contact your system administrator in order to obtain a new one."
      );
    case "not-yet-valid":
      return (
        `The supplied client certificate '${label}' cannot be used before ${longDate(identity.validFromMs)}. ` +
        "Use it from then on, or check the clocks of both machines."
      );
    default: {
      const target = database === undefined ? "the server" : `database '${database}'`;
      const base = `Could not authorize access to ${target} using provided client certificate '${label}'.`;
      if (access === undefined) return `${base} An operator can grant it with /admin/certificates.`;
      return (
        `${base} ${accessNames[access]} access is required but not given to this certificate. ` +
        "An administrator can grant it with /admin/certificates."
      );
    }
  }
}

/** "Friday, 01 January 2021" */
function longDate(ms: number): string {
  const date = new Date(ms);
  const weekday = date.toLocaleDateString("en-US", { weekday: "long", timeZone: "UTC" });
  const month = date.toLocaleDateString("en-US", { month: "long", timeZone: "UTC" });
  const day = String(date.getUTCDate()).padStart(2, "0");
  return `${weekday}, ${day} ${month} ${date.getUTCFullYear()}`;
}

/** Node puts each part of a subject on its own line. */
function oneLine(subject: string): string {
  return subject.replaceAll("\n", ", ");
}
