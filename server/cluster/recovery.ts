/**
 * Recovers a single node from the data folder of one stopped node of a lost cluster. Its copies become standalone
 * databases, and the shared values (certificates, settings of the server) become its own values. The copies are not
 * changed. Folders that belonged to the cluster are moved aside, so that the folder no longer belongs to the cluster.
 *
 *     const remains = await readRemains(engine);
 *     await recover(engine, remains);            // in one commit
 *     await engine.close();
 *     await moveAside(files, folder, suffix);    // Cluster/ and nats/
 *
 * Invariants:
 * - An interrupted recovery is completed by repeating it.
 * - A value that the cluster has deleted, such as a certificate, is not restored from the node's values of before it joined.
 */

import { foldedName } from "../../engine/base/case-folding.ts";
import type { Environment } from "../../engine/base/environment.ts";
import { type Engine, EngineError, type FolderReplication } from "../../engine/engine.ts";
import { isShared } from "./cluster-values.ts";
import type { ClusterMember } from "./cluster-view.ts";
import { type Copy, copyPrefix } from "./local-copies.ts";
import { Registry, sharedValuesId } from "./registry.ts";

/** Folders of a node that belong to its cluster. */
export const clusterFolders = ["Cluster", "nats"] as const;

/** A copy of a database, and its position in the stream. */
export interface FoundCopy {
  readonly name: string;
  readonly id: string;
  /** Last message of the stream that it contains, or null. */
  readonly sequence: number | null;
  readonly epoch: number | null;
  /** Whether it was complete once. Otherwise it was still being created when the node stopped. */
  readonly isComplete: boolean;
  /** Whether the cluster had deleted the database, but this node had not. */
  readonly isDeleted: boolean;
  /** Nodes that had copies, according to the shared values of this node. */
  readonly members: readonly string[];
}

/** The state of the cluster in one node's folder. */
export interface Remains {
  /** Id of the cluster, or null if it was never complete. */
  readonly topologyId: string | null;
  readonly members: readonly ClusterMember[];
  readonly copies: readonly FoundCopy[];
  /** Names of databases of the cluster without a copy here. */
  readonly lost: readonly string[];
  /** Number of certificates in the values to import. */
  readonly certificateCount: number;
  readonly values: readonly (readonly [string, unknown])[];
}

/** Returns options for opening the folder of such a node without replication, with its copies as standalone databases. */
export function withoutCluster(): FolderReplication {
  const unavailable = () => {
    throw new EngineError("stream-unavailable", "The stream of a lost cluster is not available.");
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
  if (shared === null) throw new Error("the folder was opened without the values of its cluster");
  await shared.open();
  const registry = new Registry(shared);
  const notes = [...values.entries(copyPrefix)].map(([, value]) => value as Copy);
  // Copies whose records an earlier, interrupted recovery has removed.
  const others = [...registry.databases.values()]
    .filter(({ name }) => !notes.some((note) => foldedName(note.name) === foldedName(name)))
    .map(({ name, id }) => ({ name, id, isComplete: true }));
  const copies: FoundCopy[] = [];
  for (const { name, id, isComplete } of [...notes, ...others]) {
    // Recorded, but not created yet.
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

/** Makes the copies standalone databases, and the shared values the node's own, in one commit. */
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

/** Renames the folders that belonged to the cluster to unused names. @returns the new names */
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
