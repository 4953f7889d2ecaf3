/** Grants the rights of nodes to the certificates of the current members of a cluster. */
import type { CertificateStore } from "../security/certificate-store.ts";
import type { ClusterView } from "./cluster-view.ts";

/** Grants the rights of nodes to the members only, and follows changes of the membership. @returns a function that stops this */
export function followNodes(
  cluster: Pick<ClusterView, "members" | "onChange">,
  certificates: Pick<CertificateStore, "setNodes">,
): () => void {
  const look = () => {
    const fingerprints = cluster.members().map(({ fingerprint }) => fingerprint);
    certificates.setNodes(new Set(fingerprints.filter((one) => one !== null)));
  };
  look();
  return cluster.onChange(look);
}
