/** Identity of the caller, from `/certificates/whoami`. */

import { signal } from "@preact/signals";
import { get } from "./client.ts";
import { address } from "./router.ts";

interface Identity {
  readonly name: string;
  /** Null if the server requires no certificates. */
  readonly clearance: string | null;
  readonly notAfter: string | null;
  /** Access by database name: `Read`, `ReadWrite` or `Admin`. */
  readonly permissions: Readonly<Record<string, string>>;
}

interface WhoAmI {
  readonly Name?: string;
  readonly SecurityClearance?: string;
  readonly NotAfter?: string;
  readonly Permissions?: Readonly<Record<string, string>>;
}

export const identity = signal<Identity | null>(null);
/** True if the server requires a certificate that the browser did not present. */
export const lacksCertificate = signal(false);

export async function loadIdentity(): Promise<void> {
  const { body } = await get<WhoAmI | null>("/certificates/whoami");
  // Over TLS, every registered caller has a name.
  lacksCertificate.value = body === null && window.location.protocol === "https:";
  identity.value = {
    name: body?.Name ?? "everybody",
    clearance: body?.SecurityClearance ?? null,
    notAfter: body?.NotAfter ?? null,
    permissions: body?.Permissions ?? {},
  };
}

/** Access levels of the server's routes, in ascending order. */
type Right = "write" | "database-admin" | "operator" | "cluster-admin";

const ranks: Readonly<Record<string, number>> = { Operator: 2, ClusterNode: 3, ClusterAdmin: 3 };

/**
 * Returns true if the caller has an access level for a database, by default that of the current page. The server
 * checks access; the studio hides actions that it would reject.
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
