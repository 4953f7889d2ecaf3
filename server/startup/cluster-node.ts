/** A server as a node of a cluster: the parts that replace those of a single node. Of a single node nothing is loaded. */
import { resolve } from "node:path";
import type { FolderReplication } from "../../engine/engine.ts";
import type { ClusterHistory } from "../cluster/cluster-history.ts";
import type { ClusterView } from "../cluster/cluster-view.ts";
import type { OpenCopies } from "../cluster/open-copies.ts";
import type { PeerLink } from "../cluster/peer-link.ts";
import type { CommandIndex } from "../databases/command-index.ts";
import { interfaceVersion } from "../http/response.ts";
import type { Log } from "../logging/log.ts";
import type { DatabaseDirectory } from "../routing/services.ts";
import type { PresentedCertificate } from "../security/presented-certificate.ts";
import type { Config } from "../settings/config.ts";
import type { ServerAddress } from "../settings/server-address.ts";
import { StartError } from "../settings/start-error.ts";
import type { ValueStore } from "../settings/value-store.ts";
import type { Storage } from "./storage.ts";

export interface ClusterNode {
  /** For the opening of the data folder. */
  readonly replication: FolderReplication;
  /** Once the folder is open. @throws StartError nats-unusable; EngineError database-damaged */
  open(storage: Storage, shown: PresentedCertificate | undefined): Promise<ClusterServices>;
}

/** What the server has in place of the parts of a single node. */
export interface ClusterServices {
  readonly cluster: ClusterView;
  readonly peers: PeerLink;
  readonly history: ClusterHistory;
  /** Those that other nodes take from this one. */
  readonly copies: OpenCopies;
  readonly databases: DatabaseDirectory;
  readonly values: ValueStore;
  readonly commandIndex: CommandIndex;
  /** Once it can be reached. */
  serve(address: ServerAddress): void;
  /** Before the databases are closed. */
  stop(): Promise<void>;
  /** After they were. */
  close(): Promise<void>;
}

/** Undefined: a single node. @throws StartError setting-invalid */
export async function prepareCluster(config: Config, log: Log): Promise<ClusterNode | undefined> {
  const { cluster: settings, nodeTag } = config;
  if (settings === undefined) return undefined;
  if (config.runInMemory) {
    throw new StartError(
      "setting-invalid",
      "A node of a cluster keeps its copies on the disk: leave RunInMemory out",
    );
  }
  const parts = await import("../cluster/cluster-parts.ts");
  const { trimAfterAbsenceMs } = config;
  const version = interfaceVersion;
  const cluster = new parts.Cluster({ tag: nodeTag, version, log, trimAfterAbsenceMs });
  const dataFolder = resolve(config.dataFolder);
  return {
    replication: cluster.replication,
    open: async ({ databases, shared, values }, shown) => {
      if (shared === null) throw new Error("the data folder was opened for a cluster");
      const nats = await parts.startNats({ settings, nodeTag, dataFolder, log });
      await cluster.open({ nats, databases, shared, values });
      const nodes = {
        members: () => cluster.reachable(),
        onChange: (listener: () => void) => cluster.onChange(listener),
      };
      const peers = new parts.Peers(nodes, shown);
      const history = new parts.ClusterHistory(cluster);
      return {
        cluster,
        peers,
        history,
        copies: new parts.OpenCopies((id) => cluster.openedById(id)),
        databases: new parts.ClusterDirectory(cluster, databases),
        values: new parts.ClusterValues(values, cluster, cluster.bootstrap),
        commandIndex: parts.clusterCommandIndex(cluster, cluster.bootstrap),
        serve: ({ url, tcpUrl = null }) => {
          const member = () => {
            const fingerprint = shown?.current.certificate.fingerprint256 ?? null;
            return { tag: nodeTag, url, tcpUrl, fingerprint };
          };
          cluster.serve({ peers, member });
        },
        stop: () => {
          history.close();
          return cluster.stop();
        },
        close: async () => {
          await cluster.close();
          peers.close();
        },
      };
    },
  };
}
