/** The name of who sends a request, as others are told it: that of the certificate. */
import type { Identity } from "./access.ts";
import type { CertificateStore } from "./certificate-store.ts";

/** What of a request and of the server tells who it is. */
interface Caller {
  readonly identity: Identity;
}

interface Server {
  readonly certificates: Pick<CertificateStore, "find">;
}

/** Undefined: the server asks for no certificates. */
export function callerName({ certificates }: Server, { identity }: Caller): string | undefined {
  if (identity.thumbprint === "") return undefined;
  return certificates.find(identity.thumbprint)?.Name ?? subjectName(identity.label);
}

/** `x` of `CN=x(Thumbprint: T)`. */
function subjectName(label: string): string {
  return /CN=([^,()]*)/.exec(label)?.[1]?.trim() || label;
}
