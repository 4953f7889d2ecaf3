/**
 * `jackdaw cluster recover`: converts the data folder of the last remaining node of a cluster, which must be stopped,
 * to that of a single node. Prints the plan first, and changes nothing while another node of the cluster responds.
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
import type { CommandContext } from "../command.ts";
import { localSettings } from "../connection.ts";
import { Failure } from "../failure.ts";
import { painter } from "../output.ts";
import { ProgressLine } from "../progress.ts";
import { askQuestion, isInteractive } from "../question.ts";

/** A copy of a database, and the state of its files. */
interface Copy extends FoundCopy {
  readonly documents: number;
  /** Time of the last commit, or null if unknown. */
  readonly lastCommit: string | null;
  readonly damages: readonly { readonly file: string; readonly reason: string }[];
}

/** Runs the command. @throws Failure */
export async function run(context: CommandContext): Promise<void> {
  const { arguments: given, options, print, environment } = context;
  const root = resolve(given[0] ?? localSettings(environment).dataFolder);
  const world = nodeEnvironment();
  if (!existsSync(root)) throw new Failure("missing", `Folder ${root} does not exist`);
  if (!existsSync(join(root, "Cluster"))) {
    throw new Failure(
      "missing",
      `${root} is not the data folder of a node of a cluster: it contains no folder Cluster. A single node needs no recovery`,
    );
  }
  const checked = await checkCopies(context, world, root);
  const engine = await open(world, root);
  let remains: Remains;
  let moved: string[] = [];
  try {
    remains = await readRemains(engine);
    const copies = remains.copies.map((copy) => withFiles(copy, checked));
    if (!options.is("json"))
      for (const line of planLines(context, root, remains, copies)) print(line);
    await requireNoRunningNode(root, remains);
    await confirm(context, copies);
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
  print(`${root} is now the folder of a single node; ${moved.join(" and ")} can be deleted`);
  print(
    "Start it without Cluster settings except Cluster.NodeTag, check the data, and create a backup. To create a new cluster with it, see docs/cluster.md",
  );
}

async function open(world: Environment, root: string): Promise<Engine> {
  // The replication ids of the cluster are unknown here: the records of the log are read unchanged.
  const folder = { folder: root, environment: world };
  try {
    return await openEngine({ ...folder, replication: withoutCluster() });
  } catch (error) {
    throw asFailure(error, root);
  }
}

/** Checks the files of each copy; results are keyed by the name in lower case. Changes nothing. */
async function checkCopies(
  context: CommandContext,
  world: Environment,
  root: string,
): Promise<Map<string, CheckedDatabase>> {
  const { interrupted } = context;
  const found = new Map<string, CheckedDatabase>();
  const progress = new ProgressLine(context);
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
  { streams, environment }: CommandContext,
  root: string,
  { members, lost, certificateCount }: Remains,
  copies: readonly Copy[],
): string[] {
  const paint = painter(streams.output.isTTY === true, environment);
  const nodes = members.map(({ tag, url }) => `${tag} (${url})`).join(", ");
  return [
    `${root} belongs to a node of the cluster of ${nodes === "" ? "unknown nodes" : nodes}`,
    "",
    ...copies.flatMap((copy) => copyLines(copy, paint)),
    ...lost.map((name) => `${name}: ${paint("red", "lost")}, no copy exists here`),
    "",
    `Its copies become databases of a single node, unchanged. ${paint("yellow", "Writes that other nodes acknowledged after the messages above are lost.")}`,
    `Registered certificates (${certificateCount}) and the cluster settings are kept. The folders ${clusterFolders.join(" and ")} are renamed.`,
  ];
}

function copyLines(copy: Copy, paint: ReturnType<typeof painter>): string[] {
  const { name, sequence, epoch, documents, lastCommit, isComplete, isDeleted, damages } = copy;
  const upTo =
    sequence === null
      ? "nothing of its stream"
      : `up to message ${sequence} of epoch ${epoch}${lastCommit === null ? "" : `, committed here at ${lastCommit}`}`;
  return [
    `${name}: ${documents} documents, ${upTo}`,
    ...(isComplete ? [] : [`  ${paint("yellow", "note")}: the copy was incomplete`]),
    ...(isDeleted
      ? [`  ${paint("yellow", "note")}: the cluster had deleted it; it is restored`]
      : []),
    ...damages.map(({ file, reason }) => `  ${paint("red", "damaged")}: ${file}: ${reason}`),
  ];
}

/** Checks that no other node of the cluster responds. @throws Failure conflict */
async function requireNoRunningNode(root: string, { members }: Remains): Promise<void> {
  const answering = await findRunningNodes(members, addressesIn(root));
  if (answering.length === 0) return;
  throw new Failure(
    "conflict",
    `Nothing was changed: ${answering.join(", ")}. While nodes of the cluster run, start this node normally: it catches up. Recover only if most nodes are permanently lost, after stopping the remaining nodes`,
  );
}

function addressesIn(root: string): NatsAddresses {
  const path = join(root, "nats", "nats-server.conf");
  return natsAddresses(existsSync(path) ? readFileSync(path, "utf8") : null);
}

/** Requires a confirmation. @throws Failure usage, failed */
async function confirm(
  { options, streams }: CommandContext,
  copies: readonly Copy[],
): Promise<void> {
  if (options.is("yes")) return;
  const count = copies.length === 1 ? "1 copy" : `${copies.length} copies`;
  const what = `${count} would permanently become databases of a single node`;
  if (!isInteractive(streams)) {
    throw new Failure("usage", `${what}; copy the folder, then add --yes to confirm`);
  }
  const typed = await askQuestion(streams, `${what}. Have you copied the folder? Type 'recover': `);
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
