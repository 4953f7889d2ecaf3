/** What monitoring learns of the cluster: nothing while there is none, so that a single node pays nothing. */

import type { ClusterView } from "../cluster/cluster-view.ts";
import { ClusterWatch } from "../cluster/cluster-watch.ts";
import type { Log } from "../logging/log.ts";
import type { ClusterFigures, ClusterSource } from "../monitoring/cluster-figures.ts";

export class ClusterMonitoring implements ClusterSource {
  readonly #view: () => ClusterView | undefined;
  readonly #log: Log;
  #watch: ClusterWatch | undefined;

  /** `view`: undefined for a single node. */
  constructor(view: () => ClusterView | undefined, log: Log) {
    this.#view = view;
    this.#log = log;
  }

  /** From now on the log is told what changes. */
  start(): void {
    this.#of(this.#view())?.start();
  }

  stop(): void {
    this.#watch?.stop();
  }

  /** Why the cluster keeps this node from serving; null: it does not. */
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
