/** The name of a caller for other clients: that of the certificate. */
import type { Identity } from "./access.ts";
import type { CertificateStore } from "./certificate-store.ts";

/** The parts of a request and of the server that identify the caller. */
interface Caller {
  readonly identity: Identity;
}

interface Server {
  readonly certificates: Pick<CertificateStore, "find">;
}

/** Returns undefined if the server uses no certificates. */
export function callerName({ certificates }: Server, { identity }: Caller): string | undefined {
  if (identity.thumbprint === "") return undefined;
  return certificates.find(identity.thumbprint)?.Name ?? subjectName(identity.label);
}

/** `x` of `CN=x(Thumbprint: T)`. */
function subjectName(label: string): string {
  return /CN=([^,()]*)/.exec(label)?.[1]?.trim() || label;
}
