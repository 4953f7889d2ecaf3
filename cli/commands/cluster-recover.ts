/**
 * `jackdaw cluster recover`: makes of the data folder of the node that is left of a cluster, which is stopped, that of a
 * single node. It says first what it would do, and does nothing while a node of the cluster answers.
 */

import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { foldedName } from "../../engine/base/case-folding.ts";
import {
  bytesToCheck,
  type CheckedDatabase,
  checkDatabase,
  type Engine,
  EngineError,
  type Environment,
  nodeEnvironment,
  openEngine,
} from "../../engine/engine.ts";
import {
  clusterFolders,
  type FoundCopy,
  moveAside,
  type Remains,
  readRemains,
  recover,
  withoutCluster,
} from "../../server/cluster/recovery.ts";
import {
  findRunningNodes,
  type NatsAddresses,
  natsAddresses,
} from "../../server/cluster/running-nodes.ts";
import type { Surroundings } from "../command.ts";
import { localSettings } from "../connection.ts";
import { Failure } from "../failure.ts";
import { painter } from "../output.ts";
import { ProgressLine } from "../progress.ts";
import { ask, canAsk } from "../question.ts";

/** A copy, and what its files are like. */
interface Copy extends FoundCopy {
  readonly documents: number;
  /** Of the last commit; null: not known. */
  readonly lastCommit: string | null;
  readonly damages: readonly { readonly file: string; readonly reason: string }[];
}

/** @throws Failure */
export async function run(surroundings: Surroundings): Promise<void> {
  const { arguments: given, options, print, environment } = surroundings;
  const root = resolve(given[0] ?? localSettings(environment).dataFolder);
  const world = nodeEnvironment();
  if (!existsSync(root)) throw new Failure("missing", `There is no folder ${root}`);
  if (!existsSync(join(root, "Cluster"))) {
    throw new Failure(
      "missing",
      `${root} is not the data folder of a node of a cluster: it has no folder Cluster. A single node needs no recovery`,
    );
  }
  const checked = await checkCopies(surroundings, world, root);
  const engine = await open(world, root);
  let remains: Remains;
  let moved: string[] = [];
  try {
    remains = await readRemains(engine);
    const copies = remains.copies.map((copy) => withFiles(copy, checked));
    if (!options.is("json"))
      for (const line of planLines(surroundings, root, remains, copies)) print(line);
    await refuseWhileAnswering(root, remains);
    await confirm(surroundings, copies);
    await recover(engine, remains);
  } catch (error) {
    throw asFailure(error, root);
  } finally {
    await engine.close();
  }
  const suffix = `.lost-${new Date().toISOString().replaceAll(/[-:]|\.\d+/g, "")}`;
  moved = await moveAside(world, root, suffix);
  const { certificateCount, lost } = remains;
  if (options.is("json")) {
    const copies = remains.copies.map((copy) => withFiles(copy, checked));
    print(JSON.stringify({ folder: root, copies, lost, certificateCount, moved }));
    return;
  }
  print("");
  print(`${root} is the folder of a single node now; ${moved.join(" and ")} can be deleted`);
  print(
    "Start it without any Cluster setting but Cluster.NodeTag, look at the data, and make a backup. To found a new cluster with it: docs/cluster.md",
  );
}

async function open(world: Environment, root: string): Promise<Engine> {
  // The cluster's values know no id here: what their log has is read as it is.
  const folder = { folder: root, environment: world };
  try {
    return await openEngine({ ...folder, replication: withoutCluster() });
  } catch (error) {
    throw asFailure(error, root);
  }
}

/** What the files of each copy are like, by the name in lower case. Nothing is changed. */
async function checkCopies(
  surroundings: Surroundings,
  world: Environment,
  root: string,
): Promise<Map<string, CheckedDatabase>> {
  const { interrupted } = surroundings;
  const found = new Map<string, CheckedDatabase>();
  const progress = new ProgressLine(surroundings);
  try {
    const lock = await world.files.lockDirectory(root);
    try {
      const names = (await world.files.list(`${root}/Databases`)).filter(
        (name) => !name.startsWith("."),
      );
      let total = 0;
      for (const name of names) total += await bytesToCheck(world, `${root}/Databases/${name}`);
      let bytes = 0;
      for (const name of names) {
        const passed = (count: number) => {
          bytes += count;
          interrupted.throwIfAborted();
          progress.showBytes(bytes, total);
        };
        const folder = `${root}/Databases/${name}`;
        found.set(foldedName(name), await checkDatabase(world, folder, passed, lock));
      }
    } finally {
      progress.end();
      await lock.release();
    }
  } catch (error) {
    if (interrupted.aborted) throw new Failure("interrupted", "Interrupted; nothing was changed");
    throw asFailure(error, root);
  }
  return found;
}

function withFiles(copy: FoundCopy, checked: ReadonlyMap<string, CheckedDatabase>): Copy {
  const files = checked.get(foldedName(copy.name));
  const micros = files?.committedMicros ?? 0;
  return {
    ...copy,
    documents: files?.documents ?? 0,
    lastCommit: micros === 0 ? null : new Date(micros / 1000).toISOString(),
    damages: (files?.damages ?? []).map(({ file, reason }) => ({ file, reason })),
  };
}

function planLines(
  { streams, environment }: Surroundings,
  root: string,
  { members, lost, certificateCount }: Remains,
  copies: readonly Copy[],
): string[] {
  const paint = painter(streams.output.isTTY === true, environment);
  const nodes = members.map(({ tag, url }) => `${tag} (${url})`).join(", ");
  return [
    `${root} is of a node of the cluster of ${nodes === "" ? "nodes that it never knew" : nodes}`,
    "",
    ...copies.flatMap((copy) => copyLines(copy, paint)),
    ...lost.map((name) => `${name}: ${paint("red", "lost")}, it has no copy here`),
    "",
    `Its copies become databases of a single node, as they are. ${paint("yellow", "What the other nodes had acknowledged after the messages above is lost.")}`,
    `Registered certificates (${certificateCount}) and the settings of the cluster stay. The folders ${clusterFolders.join(" and ")} are moved aside.`,
  ];
}

function copyLines(copy: Copy, paint: ReturnType<typeof painter>): string[] {
  const { name, sequence, epoch, documents, lastCommit, isComplete, isDeleted, damages } = copy;
  const upTo =
    sequence === null
      ? "it has nothing of its stream"
      : `up to message ${sequence} of epoch ${epoch}${lastCommit === null ? "" : `, written here at ${lastCommit}`}`;
  return [
    `${name}: ${documents} documents, ${upTo}`,
    ...(isComplete
      ? []
      : [`  ${paint("yellow", "note")}: it was being made, and never had all that there was`]),
    ...(isDeleted
      ? [`  ${paint("yellow", "note")}: the cluster had deleted it; it comes back`]
      : []),
    ...damages.map(({ file, reason }) => `  ${paint("red", "damaged")}: ${file}: ${reason}`),
  ];
}

/** @throws Failure conflict */
async function refuseWhileAnswering(root: string, { members }: Remains): Promise<void> {
  const answering = await findRunningNodes(members, addressesIn(root));
  if (answering.length === 0) return;
  throw new Failure(
    "conflict",
    `Nothing was changed: ${answering.join(", ")}. While nodes of the cluster run, start this one as ever: it catches up. Only when most of them are gone for good is there something to recover; then stop what is left of them first`,
  );
}

function addressesIn(root: string): NatsAddresses {
  const path = join(root, "nats", "nats-server.conf");
  return natsAddresses(existsSync(path) ? readFileSync(path, "utf8") : null);
}

/** @throws Failure usage, failed */
async function confirm({ options, streams }: Surroundings, copies: readonly Copy[]): Promise<void> {
  if (options.is("yes")) return;
  const count = copies.length === 1 ? "1 copy" : `${copies.length} copies`;
  const what = `${count} would become databases of a single node, for good`;
  if (!canAsk(streams)) {
    throw new Failure("usage", `${what}; add --yes to do it, after you have copied the folder`);
  }
  const typed = await ask(streams, `${what}. Have you copied the folder? Type 'recover': `);
  if (typed !== "recover") throw new Failure("failed", "Nothing was changed");
}

function asFailure(error: unknown, root: string): Error {
  if (!(error instanceof EngineError)) return error as Error;
  const { code, message } = error;
  if (code === "database-locked") {
    const what = `${message.replace(/\.$/, "")}; stop the server first`;
    return new Failure("conflict", what, { cause: error });
  }
  return new Failure("failed", `${root}: ${message}`, { cause: error });
}
