/** The components of a cluster node as one module, which single nodes do not load. */
export { Cluster } from "./cluster.ts";
export { ClusterDirectory } from "./cluster-directory.ts";
export { ClusterHistory } from "./cluster-history.ts";
export { ClusterValues, clusterCommandIndex } from "./cluster-values.ts";
export { startNats } from "./nats/nats.ts";
export { OpenCopies } from "./open-copies.ts";
export { Peers } from "./peers.ts";
