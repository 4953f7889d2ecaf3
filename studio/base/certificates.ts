/** Client certificates in the format of the server. */
import { send } from "./client.ts";

export const clearances = ["ClusterAdmin", "Operator", "ValidUser"] as const;
export type Clearance = (typeof clearances)[number];
export const accesses = ["Read", "ReadWrite", "Admin"] as const;
export type DatabaseRight = (typeof accesses)[number];
export type Rights = Readonly<Record<string, DatabaseRight>>;

export interface Certificate {
  readonly Name: string;
  readonly Thumbprint: string;
  readonly SecurityClearance: string;
  readonly Permissions: Rights;
  readonly NotBefore: string;
  readonly NotAfter: string;
  readonly Disabled: boolean;
  readonly Usage: "Client" | "RavenServer";
}

export interface CertificateUse {
  readonly Since: string;
  readonly Results: readonly {
    readonly Thumbprint: string;
    readonly OpenConnections: number;
    readonly LastUsed: string;
  }[];
}

export const clearanceTexts: Readonly<Record<string, string>> = {
  ClusterAdmin: "Cluster admin",
  ClusterNode: "This server",
  Operator: "Operator",
  ValidUser: "Selected databases",
  UnauthenticatedClients: "None",
};

export const accessTexts: Readonly<Record<DatabaseRight, string>> = {
  Read: "read",
  ReadWrite: "read and write",
  Admin: "administer",
};

/** Describes the access of a certificate: `shop: read and write`, or `All`. */
export function rightsText({ SecurityClearance, Permissions }: Certificate): string {
  if (SecurityClearance !== "ValidUser") return "All";
  const rights = Object.entries(Permissions);
  if (rights.length === 0) return "None";
  return rights.map(([name, access]) => `${name}: ${accessTexts[access]}`).join(", ");
}

const dayMs = 86_400_000;
/** Days before expiry from which a warning is shown. */
const warningDays = 30;

interface Expiry {
  readonly state: "good" | "soon" | "over";
  readonly atMs: number;
}

/** Parses a time of the server, which is in UTC with or without a zone. */
export function timeOf(time: string): number {
  return new Date(time.endsWith("Z") ? time : `${time}Z`).getTime();
}

export function expiryOf({ NotAfter }: { readonly NotAfter: string }, nowMs: number): Expiry {
  const atMs = timeOf(NotAfter);
  if (atMs <= nowMs) return { state: "over", atMs };
  return { state: atMs - nowMs < warningDays * dayMs ? "soon" : "good", atMs };
}

/** Abbreviates a thumbprint. */
export function shortThumbprint(thumbprint: string): string {
  return `${thumbprint.slice(0, 4)} ${thumbprint.slice(4, 8)} … ${thumbprint.slice(-4)}`;
}

export interface CertificateTerms {
  readonly Name: string;
  readonly SecurityClearance: string;
  readonly Permissions: Rights;
}

export async function editCertificate(thumbprint: string, terms: CertificateTerms): Promise<void> {
  await send("POST", "/admin/certificates/edit", { json: { Thumbprint: thumbprint, ...terms } });
}

export async function revokeCertificate(thumbprint: string): Promise<void> {
  await send("DELETE", `/admin/certificates?thumbprint=${thumbprint}`);
}

/** Returns the request body for a new certificate. The reply is a zip with the certificate and its key. */
export function newCertificate(terms: CertificateTerms, months: number, password: string): object {
  const until = new Date();
  until.setMonth(until.getMonth() + months);
  return {
    ...terms,
    NotAfter: until.toISOString(),
    ...(password === "" ? {} : { Password: password }),
  };
}
