/** The cluster's metrics and readiness; empty on a single node, which pays nothing for it. */

import type { ClusterView } from "../cluster/cluster-view.ts";
import { ClusterWatch } from "../cluster/cluster-watch.ts";
import type { Log } from "../logging/log.ts";
import type { ClusterFigures, ClusterSource } from "../monitoring/cluster-figures.ts";

export class ClusterMonitoring implements ClusterSource {
  readonly #view: () => ClusterView | undefined;
  readonly #log: Log;
  #watch: ClusterWatch | undefined;

  /** `view` returns undefined on a single node. */
  constructor(view: () => ClusterView | undefined, log: Log) {
    this.#view = view;
    this.#log = log;
  }

  /** Starts to log changes. */
  start(): void {
    this.#of(this.#view())?.start();
  }

  stop(): void {
    this.#watch?.stop();
  }

  /** Returns the reason why the cluster makes this node unready, or null. */
  notReady(): string | null {
    return this.#of(this.#view())?.notReady() ?? null;
  }

  figures(): ClusterFigures | undefined {
    const view = this.#view();
    const watch = this.#of(view);
    if (view === undefined || watch === undefined) return undefined;
    const { leaderTag, epoch, nodes, databases, tag } = watch.look();
    const copies = databases.flatMap(({ id, name, copies: all }) => {
      const own = all.find((copy) => copy.tag === tag);
      if (own === undefined) return [];
      return {
        database: name,
        role: own.role ?? "stopped",
        epoch: own.epoch,
        applied: own.applied,
        behind: own.behind ?? 0,
        behindSeconds: watch.behindSeconds(id),
        gaps: view.health?.gaps(id) ?? 0,
      };
    });
    const leaderlessCount = databases.filter((one) => one.leaderTag === null).length;
    return { leaderTag, epoch, nodes, copies, leaderlessCount, nats: view.health?.nats ?? null };
  }

  #of(view: ClusterView | undefined): ClusterWatch | undefined {
    if (view !== undefined) this.#watch ??= new ClusterWatch(view, this.#log);
    return this.#watch;
  }
}
