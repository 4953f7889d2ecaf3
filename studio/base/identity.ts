/** Who is signed in, by `/certificates/whoami`. */
import { signal } from "@preact/signals";
import { get } from "./client.ts";

export interface Identity {
  readonly name: string;
  /** Null: the server asks for no certificates. */
  readonly clearance: string | null;
  readonly notAfter: string | null;
}

interface WhoAmI {
  readonly Name?: string;
  readonly SecurityClearance?: string;
  readonly NotAfter?: string;
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
  };
}

/** May he do what concerns the server as a whole? Decided by the server; buttons that it would refuse are not offered. */
export function isOperator(who: Identity | null): boolean {
  return who !== null && (who.clearance === null || /^(Operator|Cluster)/.test(who.clearance));
}
