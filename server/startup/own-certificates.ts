/** Registers the server's own certificates at its start, alone or as a node of a cluster. */
import type { X509Certificate } from "node:crypto";
import type { ClusterView } from "../cluster/cluster-view.ts";
import { followNodes } from "../cluster/node-certificates.ts";
import type { Log } from "../logging/log.ts";
import { type CertificateStore, thumbprintOf } from "../security/certificate-store.ts";
import { readAdminCertificate, type ServerCertificate } from "../security/server-certificate.ts";

export async function registerOwn(
  certificates: CertificateStore,
  shown: ServerCertificate | undefined,
  cluster: ClusterView | undefined,
  log: Log,
): Promise<void> {
  if (shown === undefined) return;
  const { certificate, admin } = shown;
  certificates.setServerCertificate(certificate);
  if (cluster !== undefined) {
    followNodes(cluster, certificates);
    cluster.onChange(() => certificates.reload());
  }
  if (admin === undefined) return;
  const first = readAdminCertificate(admin);
  if (cluster === undefined) await certificates.putFirstAdmin(first, admin.name);
  else offerAdmin(certificates, { certificate: first, name: admin.name }, cluster, log);
}

/**
 * Registers this node's generated administrator if the cluster has none. Otherwise that certificate has no rights, which is
 * logged, because the server's first lines have named it.
 */
export function offerAdmin(
  certificates: CertificateStore,
  { certificate, name }: { readonly certificate: X509Certificate; readonly name: string },
  cluster: Pick<ClusterView, "tag" | "leaderTag" | "onChange">,
  log: Pick<Log, "warn">,
): void {
  certificates.setProvisionalAdmin(certificate);
  let isTold = false;
  cluster.onChange(() => {
    if (certificates.hasFirstAdmin) {
      if (isTold) return;
      isTold = true;
      if (certificates.find(thumbprintOf(certificate)) === undefined) log.warn(withoutRights(name));
      return;
    }
    // If this fails, the next change or the next leader does it.
    if (cluster.leaderTag === cluster.tag) {
      certificates.putFirstAdmin(certificate, name).catch(() => undefined);
    }
  });
}

function withoutRights(name: string): string {
  return `The certificate ${name}, which this node has generated, has no rights, because the cluster already has an administrator. Use that certificate, or register this one with it`;
}
