/** The parts of a cluster node that replace those of a single node. A single node loads none of them. */
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

interface ClusterNode {
  /** Replication options for opening the data folder. */
  readonly replication: FolderReplication;
  /** Called once the folder is open. @throws StartError nats-unusable; EngineError database-damaged */
  open(storage: Storage, shown: PresentedCertificate | undefined): Promise<ClusterServices>;
}

/** The parts that replace those of a single node. */
export interface ClusterServices {
  readonly cluster: ClusterView;
  readonly peers: PeerLink;
  readonly history: ClusterHistory;
  /** Copies that other nodes are fetching from this one. */
  readonly copies: OpenCopies;
  readonly databases: DatabaseDirectory;
  readonly values: ValueStore;
  readonly commandIndex: CommandIndex;
  /** Called once the server listens. */
  serve(address: ServerAddress): void;
  /** Called before the databases are closed. */
  stop(): Promise<void>;
  /** Called after the databases were closed. */
  close(): Promise<void>;
}

/** Returns undefined for a single node. @throws StartError setting-invalid */
export async function prepareCluster(config: Config, log: Log): Promise<ClusterNode | undefined> {
  const { cluster: settings, nodeTag } = config;
  if (settings === undefined) return undefined;
  if (config.runInMemory) {
    throw new StartError(
      "setting-invalid",
      "A cluster node stores its copies on disk: omit RunInMemory",
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
      if (shared === null) throw new Error("the data folder must be opened for a cluster");
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
