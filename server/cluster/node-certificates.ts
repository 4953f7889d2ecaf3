/** The nodes of a cluster know each other by their certificates: those of its members, at any time. */
import type { CertificateStore } from "../security/certificate-store.ts";
import type { ClusterView } from "./cluster-view.ts";

/** From now on the members, and nobody else, have the rights of nodes. @returns ends that */
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
