/**
 * Makes of what is left of a cluster, the data folder of one node that is stopped, that of a single node. Its copies become
 * databases of its own, and what the nodes had in common (certificates, settings of the server) its own values. Nothing of
 * the copies is changed; what belonged to the cluster is moved aside, so that the folder takes no part in it any more.
 *
 *     const remains = await readRemains(engine);
 *     await recover(engine, remains);            // in one commit
 *     await engine.close();
 *     await moveAside(files, folder, suffix);    // Cluster/ and nats/
 *
 * Invariants:
 * - A folder whose recovery was interrupted anywhere is recovered by doing it again.
 * - What the cluster has deleted (a certificate) does not come back from what the node had before it joined.
 */

import { foldedName } from "../../engine/base/case-folding.ts";
import type { Environment } from "../../engine/base/environment.ts";
import { type Engine, EngineError, type FolderReplication } from "../../engine/engine.ts";
import { isShared } from "./cluster-values.ts";
import type { ClusterMember } from "./cluster-view.ts";
import { type Copy, copyPrefix } from "./local-copies.ts";
import { Registry, sharedValuesId } from "./registry.ts";

/** Folders of a node that are of its cluster. */
export const clusterFolders = ["Cluster", "nats"] as const;

/** A copy of a database, and how far it goes. */
export interface FoundCopy {
  readonly name: string;
  readonly id: string;
  /** The last message of the stream that it has; null: it has nothing of it. */
  readonly sequence: number | null;
  readonly epoch: number | null;
  /** Had it ever all that there was? Otherwise it was being made when the node ended. */
  readonly isComplete: boolean;
  /** Had the cluster deleted the database, and this node not yet? */
  readonly isDeleted: boolean;
  /** Nodes that had copies, as far as the cluster's values here say. */
  readonly members: readonly string[];
}

/** What a node has of its cluster. */
export interface Remains {
  /** null: it never was complete. */
  readonly topologyId: string | null;
  readonly members: readonly ClusterMember[];
  readonly copies: readonly FoundCopy[];
  /** Names of databases of the cluster that have no copy here. */
  readonly lost: readonly string[];
  /** Of the values that become this node's own. */
  readonly certificateCount: number;
  readonly values: readonly (readonly [string, unknown])[];
}

/** For opening the folder of such a node: nothing is replicated, and its copies are plain databases. */
export function withoutCluster(): FolderReplication {
  const unavailable = () => {
    throw new EngineError("stream-unavailable", "There is no stream of a cluster that is lost.");
  };
  return {
    of: () => null,
    cluster: {
      databaseId: sharedValuesId,
      originTag: "A",
      stream: {
        append: async () => ({ kind: "unknown" }),
        read: async () => unavailable(),
        follow: () => ({ stop: () => undefined }),
        bounds: async () => unavailable(),
        purgeBelow: async () => unavailable(),
      },
      generation: 1,
      tag: "A",
      standAfterMs: Number.MAX_SAFE_INTEGER,
      isSeed: false,
      watcher: {
        roleChanged: () => undefined,
        needSnapshot: () => undefined,
        blocked: () => undefined,
        fetchRange: async () => [],
      },
    },
  };
}

/** @throws EngineError database-damaged */
export async function readRemains({ databases, values, shared }: Engine): Promise<Remains> {
  if (shared === null) throw new Error("the folder was opened as that of a cluster's node");
  await shared.open();
  const registry = new Registry(shared);
  const notes = [...values.entries(copyPrefix)].map(([, value]) => value as Copy);
  // Those whose notes are gone already, when an earlier recovery was interrupted.
  const others = [...registry.databases.values()]
    .filter(({ name }) => !notes.some((note) => foldedName(note.name) === foldedName(name)))
    .map(({ name, id }) => ({ name, id, isComplete: true }));
  const copies: FoundCopy[] = [];
  for (const { name, id, isComplete } of [...notes, ...others]) {
    // One that was noted, and not made yet.
    if (!databases.has(name)) continue;
    const database = await databases.find(name);
    if (database?.id !== id) continue;
    const { mark } = database;
    const members = registry.databases.get(foldedName(name))?.members ?? [];
    const found = { sequence: mark?.sequence ?? null, epoch: mark?.epoch ?? null };
    const isDeleted = registry.deleted.has(id);
    copies.push({ name, id, ...found, isComplete: isComplete === true, isDeleted, members });
    await databases.unload(name);
  }
  const here = new Set(copies.map(({ name }) => foldedName(name)));
  const common = [...shared.entries("")].filter(([key]) => isShared(key));
  return {
    topologyId: registry.topologyId,
    members: [...registry.members.values()],
    copies: copies.sort((one, other) => (foldedName(one.name) < foldedName(other.name) ? -1 : 1)),
    lost: [...registry.databases.values()]
      .map(({ name }) => name)
      .filter((name) => !here.has(foldedName(name))),
    certificateCount: common.filter(([key]) => key.startsWith("certificates/")).length,
    values: common,
  };
}

/** Makes the copies databases of this node, and what the nodes shared its own values; in one commit. */
export async function recover({ values }: Engine, remains: Remains): Promise<void> {
  const kept = new Set(remains.values.map(([key]) => key));
  const stale = [...values.entries("")]
    .map(([key]) => key)
    .filter((key) => key.startsWith(copyPrefix) || (isShared(key) && !kept.has(key)));
  await values.change([
    ...remains.values.map(([key, value]) => ({ key, value })),
    ...stale.map((key) => ({ key, value: null })),
  ]);
}

/** Moves what belonged to the cluster to names that nothing uses. @returns the new names */
export async function moveAside(
  { files }: Pick<Environment, "files">,
  folder: string,
  suffix: string,
): Promise<string[]> {
  const moved: string[] = [];
  for (const name of clusterFolders) {
    if (!(await files.exists(`${folder}/${name}`))) continue;
    await files.rename(`${folder}/${name}`, `${folder}/${name}${suffix}`);
    moved.push(`${name}${suffix}`);
  }
  await files.syncDirectory(folder);
  return moved;
}
