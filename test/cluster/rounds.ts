/** Rounds of faults under traffic, and the results of the checks at the end. */
import { mkdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { SeededRandom } from "../support/random.ts";
import { type Contents, checkHistory, checkSame } from "./checks.ts";
import { runClientWorkers } from "./client-workers.ts";
import { type ClusterNode, ClusterNodes, type ClusterOptions } from "./cluster-nodes.ts";
import { caughtUp, contentsOf } from "./contents.ts";
import { faults } from "./faults.ts";
import { History } from "./history.ts";
import { checkerPath, checkLinearizable } from "./linearizable.ts";
import { runWorkers, type Traffic } from "./workers.ts";

interface Rounds {
  readonly rounds: number;
  readonly seed: number;
  readonly options: ClusterOptions;
  /** Names of faults: each is injected once, in some order, and then any; all by default. */
  readonly only?: readonly string[];
  readonly print: (line: string) => void;
}

interface RoundsReport {
  /** The violations; empty if the run is correct. */
  readonly problems: readonly string[];
  readonly summary: string;
  /** Skipped faults and checks, with the reason. */
  readonly leftOut: ReadonlySet<string>;
}

const database = "proof";
/** Maximum time until all nodes accept writes again after a fault. */
const recoveryMs = 60_000;
const quietMs = 1_000;
const problemCountMax = 20;
const withoutChecker =
  "linearizability of compare-exchange values and of documents by change vector: there is no Go here, with which the Porcupine checker is built";

export async function runRounds(requested: Rounds): Promise<RoundsReport> {
  const { print } = requested;
  const cluster = await ClusterNodes.start(requested.options);
  const history = new History();
  const problems: string[] = [];
  const leftOut = new Set<string>();
  const refusals = new Map<string, number>();
  let isDone = false;
  let sessions = 0;
  const traffic: Traffic = {
    cluster,
    database,
    history,
    isDone: () => isDone,
    sessionEpoch: () => sessions,
    problems: refusals,
  };
  try {
    await cluster.complete();
    await cluster.createDatabase(database);
    const working = Promise.all([runWorkers(traffic, requested.seed), runClientWorkers(traffic)]);
    // Reported below; until then it must not end the process.
    working.catch(() => undefined);
    try {
      await runFaults(requested, cluster, leftOut, () => sessions++);
    } catch (error) {
      problems.push((error as Error).message);
    }
    isDone = true;
    await working;
    if (problems.length === 0) problems.push(...(await checkAll(cluster, history, leftOut)));
  } catch (error) {
    problems.push((error as Error).stack ?? String(error));
  } finally {
    isDone = true;
    if (problems.length > 0) print(keep(history, cluster, requested.seed));
    await cluster.stop();
  }
  for (const [kind, count] of refusals) print(`  ${count} x ${kind}`);
  return { problems: problems.slice(0, problemCountMax), summary: history.summary(), leftOut };
}

async function runFaults(
  { rounds, seed, only, print }: Rounds,
  cluster: ClusterNodes,
  leftOut: Set<string>,
  sessionsEnd: () => void,
): Promise<void> {
  const random = new SeededRandom(seed);
  const names = shuffled(only ?? Object.keys(faults), random);
  const context = { cluster, database, random, sessionsEnd };
  await pause(quietMs);
  for (let round = 0; round < rounds; round++) {
    const at = round < names.length ? round : random.below(names.length);
    const name = names[at] as string;
    const beganMs = performance.now();
    const fault = faults[name];
    if (fault === undefined) throw new Error(`the fault "${name}" does not exist`);
    const reason = await fault(context);
    if (reason !== undefined) leftOut.add(`${name}: ${reason}`);
    const faultMs = performance.now() - beganMs;
    const recoveredMs = await recovered(cluster, name);
    print(
      `round ${round}: ${name}${reason === undefined ? "" : ` (left out: ${reason})`}: ${(faultMs / 1000).toFixed(1)} s, all take writes ${(recoveredMs / 1000).toFixed(1)} s later`,
    );
    await pause(quietMs);
  }
}

/** The names in an order determined by the seed. */
function shuffled(names: readonly string[], random: SeededRandom): string[] {
  const order = [...names];
  for (let at = order.length - 1; at > 0; at--) {
    const other = random.below(at + 1);
    [order[at], order[other]] = [order[other] as string, order[at] as string];
  }
  return order;
}

/** Resolves with the elapsed time when each node has accepted a write. */
async function recovered(cluster: ClusterNodes, after: string): Promise<number> {
  const beganMs = performance.now();
  const takesWrites = async ({ tag, send }: ClusterNode) => {
    const path = `/databases/${database}/docs?id=probes/${tag}`;
    const { status, text } = await send.put(path, { after }, { timeoutMs: 5_000 });
    return status === 201 ? null : `${tag}: ${status} ${text.slice(0, 300)}`;
  };
  for (const node of cluster.nodes) {
    await cluster.eventually(
      `after "${after}" node ${node.tag} takes writes`,
      () => takesWrites(node),
      recoveryMs,
    );
  }
  return performance.now() - beganMs;
}

async function checkAll(
  cluster: ClusterNodes,
  history: History,
  leftOut: Set<string>,
): Promise<string[]> {
  await caughtUp(cluster, database);
  const contents = new Map<string, Contents>();
  for (const node of cluster.nodes) contents.set(node.tag, await contentsOf(node, database));
  const problems = checkSame(contents);
  for (const [tag, one] of contents) {
    problems.push(...checkHistory(history, one).map((problem) => `${tag}: ${problem}`));
  }
  const program = checkerPath();
  if (program === null) leftOut.add(withoutChecker);
  else problems.push(...checkLinearizable(program, history.of("register")));
  return problems;
}

/** Writes the data of a failed run. @returns the folder */
function keep(history: History, cluster: ClusterNodes, seed: number): string {
  const folder = join(process.env["CLUSTER_REPORTS"] ?? tmpdir(), `jackdaw-history-${seed}`);
  mkdirSync(folder, { recursive: true });
  const lines = history.events.map((event) => JSON.stringify(event)).join("\n");
  writeFileSync(join(folder, "history.jsonl"), `${lines}\n`);
  for (const { child } of [...cluster.nodes, ...cluster.nats]) {
    writeFileSync(join(folder, `${child.name.replaceAll(" ", "-")}.log`), child.lines.join("\n"));
  }
  return `the history and the output of the processes are in ${folder}`;
}
