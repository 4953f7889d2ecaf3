/** Who is signed in, by `/certificates/whoami`. */

import { get } from "./client.ts";
import { address } from "./router.ts";
import { signal } from "./signal.ts";

export interface Identity {
  readonly name: string;
  /** Null: the server asks for no certificates. */
  readonly clearance: string | null;
  readonly notAfter: string | null;
  /** `Read`, `ReadWrite` or `Admin` by the names of databases. */
  readonly permissions: Readonly<Record<string, string>>;
}

interface WhoAmI {
  readonly Name?: string;
  readonly SecurityClearance?: string;
  readonly NotAfter?: string;
  readonly Permissions?: Readonly<Record<string, string>>;
}

export const identity = signal<Identity | null>(null);
/** Does the server want a certificate that the browser did not show? */
export const lacksCertificate = signal(false);

export async function askIdentity(): Promise<void> {
  const { body } = await get<WhoAmI | null>("/certificates/whoami");
  // Over TLS everybody whom the server knows has a name.
  lacksCertificate.value = body === null && window.location.protocol === "https:";
  identity.value = {
    name: body?.Name ?? "everybody",
    clearance: body?.SecurityClearance ?? null,
    notAfter: body?.NotAfter ?? null,
    permissions: body?.Permissions ?? {},
  };
}

/** From the widest to the narrowest, as the routes of the server have them. */
export type Right = "write" | "database-admin" | "operator" | "cluster-admin";

const ranks: Readonly<Record<string, number>> = { Operator: 2, ClusterNode: 3, ClusterAdmin: 3 };

/**
 * May the caller do that, on this database? By default on the one of the present page. The server decides; what it would
 * refuse is not offered.
 */
export function may(right: Right, database = address.value.path[1]): boolean {
  if (identity.value === null) return false;
  const { clearance, permissions } = identity.value;
  const rank = clearance === null ? 3 : (ranks[clearance] ?? 1);
  if (right === "cluster-admin") return rank === 3;
  if (right === "operator" || rank >= 2) return rank >= 2;
  const given = Object.entries(permissions).find(
    ([name]) => name.toLowerCase() === database?.toLowerCase(),
  )?.[1];
  return given === "Admin" || (given === "ReadWrite" && right === "write");
}
