/**
 * `npm run stress abuse`: malicious clients, and their effect on others. Each case starts the built server as a process
 * with two databases, sets up, attacks one of them, and meanwhile requests a document of the other continuously.
 *
 *     npm run stress abuse -- [--short] [--area wire|channels|batches|scripts|queries] [--only PART OF A NAME] [--runs 3] [--tolerance 1] [--list]
 *
 * To add a case, add an object to the table of its area (`wire.ts`, `floods.ts`, `channels.ts`, `batches.ts`, `scripts.ts`,
 * `queries.ts`, `index-queries.ts`; its shape is in `abuse-case.ts`, the tools of an attack in `abuse-server.ts`):
 *
 *     {
 *       name: "a PUT of a document that is too deep",
 *       area: "wire",
 *       who: "writer",
 *       setUp: (server) => server.fill(1000, (n) => `{"N":${n}}`),
 *       attack: async (server) => [await server.request(`${server.database}/docs?id=a`, { method: "PUT", body: deep })],
 *       check: ([reply]) => assertRefused(reply, [400], /nested/),
 *     },
 *
 * A case passes when, in the median of three attacks, the GET of the other database waits at most `waitMsMax` and no
 * turn of the server's main thread takes more than the allowed processor time; when the server's resident memory grew
 * by at most `growthBytesMax` at any time, and by at most `keptBytesMax` once `givenBackMs` have passed since the last
 * attack; and when the server is alive, no GET failed, and `check` passes. If the first attack is within the limits,
 * the second decides; in the short form the first. `--tolerance` multiplies the limits of time and memory, for a busy
 * machine: .ci/run is to find what blocks others for seconds, not to measure milliseconds.
 *
 * Columns: the longest wait without the share of other processes on the machine (raw: with it) and the longest when
 * idle; the longest turns of the server's main thread and of its HTTP threads in processor time; peak growth, and growth
 * at the end; processor time of an attack.
 *
 * The last line is `N passed, N failed`, for .ci/run. Exit code 1 when one failed.
 */
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { Worker } from "node:worker_threads";
import type { AbuseCase } from "./abuse-case.ts";
import { AbuseServer, probedPath } from "./abuse-server.ts";
import { batchCases } from "./batches.ts";
import { channelCases } from "./channels.ts";
import { floodCases } from "./floods.ts";
import { indexQueryCases } from "./index-queries.ts";
import type { ProbeReport, ProbeTarget } from "./probe.ts";
import { queryCases } from "./queries.ts";
import { scriptCases } from "./scripts.ts";
import { wireCases } from "./wire.ts";

const waitMsMax = 50;
const growthBytesMax = 200 * 1024 * 1024;
const keptBytesMax = 100 * 1024 * 1024;
const givenBackMs = 10_000;
const idleMs = { short: 100, full: 700 };
/** An attack that does not end is one that failed. */
const attackMsMax = 180_000;

const cases: readonly AbuseCase[] = [
  ...wireCases,
  ...floodCases,
  ...channelCases,
  ...batchCases,
  ...scriptCases,
  ...queryCases,
  ...indexQueryCases,
];

/** What one attack came to. */
interface Attack {
  readonly probe: ProbeReport;
  readonly turnMs: number;
  readonly workerTurnMs: number;
  readonly processorMs: number;
  readonly tookMs: number;
}

interface Outcome {
  readonly problems: readonly string[];
  readonly figures: string;
}

class Probe {
  readonly #worker: Worker;

  constructor(server: AbuseServer) {
    const { host, port, pid, tls } = server;
    const target: ProbeTarget = { host, port, pid, tls, path: probedPath };
    this.#worker = new Worker(new URL("./probe.js", import.meta.url), { workerData: target });
  }

  /** What was seen since the last question. */
  async report(): Promise<ProbeReport> {
    const answered = once(this.#worker, "message") as Promise<[ProbeReport]>;
    this.#worker.postMessage("report");
    return (await answered)[0];
  }

  async stop(): Promise<void> {
    await this.#worker.terminate();
  }
}

async function attackOnce(
  one: AbuseCase,
  server: AbuseServer,
  probe: Probe,
  problems: Set<string>,
): Promise<Attack> {
  await probe.report();
  const before = await server.turns();
  const started = performance.now();
  try {
    const attack = one.attack(server);
    const late = sleep(attackMsMax, "late" as const, { ref: false });
    const replies = await Promise.race([attack, late]);
    if (replies === "late") problems.add(`the attack took more than ${attackMsMax / 1000} s`);
    else await one.check?.(replies, server);
  } catch (error) {
    problems.add((error as Error).message.split("\n")[0] ?? "");
  }
  const tookMs = performance.now() - started;
  server.endAttack();
  await sleep(50); // what the end of its connections costs belongs to it
  const report = await probe.report();
  const { turnMs, workerTurnMs, processorMs } = await server.turns();
  const spentMs = processorMs - before.processorMs;
  return { probe: report, turnMs, workerTurnMs, processorMs: spentMs, tookMs };
}

interface RunOptions {
  readonly isShort: boolean;
  readonly runs: number;
  readonly tolerance: number;
}

async function runCase(one: AbuseCase, options: RunOptions): Promise<Outcome> {
  const { isShort, runs, tolerance } = options;
  const problems = new Set<string>();
  const server = await AbuseServer.start(isShort, one.flags, one.isSecure);
  const probe = new Probe(server);
  try {
    await one.setUp?.(server);
    const restMs = isShort ? idleMs.short : idleMs.full;
    await sleep(restMs);
    await probe.report();
    await sleep(restMs);
    const idle = await probe.report();
    const attacks: Attack[] = [];
    const limit = (one.waitMsMax ?? waitMsMax) * tolerance;
    for (let run = 0; run < runs; run++) {
      attacks.push(await attackOnce(one, server, probe, problems));
      const within = attacks.filter(
        (attack) => attack.probe.waitMs <= limit && attack.turnMs <= limit,
      ).length;
      if (!server.isAlive || within >= (isShort ? 1 : 2)) break;
    }
    let last = await probe.report();
    const until = performance.now() + givenBackMs;
    while (server.isAlive && last.bytesNow - idle.bytesNow > keptBytesMax * tolerance) {
      if (performance.now() > until) break;
      await sleep(250);
      last = await probe.report();
    }
    const growth = Math.max(...attacks.map((attack) => attack.probe.bytesPeak)) - idle.bytesNow;
    const kept = last.bytesNow - idle.bytesNow;
    const worst = medianBy(attacks, (attack) => attack.probe.waitMs);
    const turn = medianBy(attacks, (attack) => attack.turnMs).turnMs;
    const failures = attacks.reduce((sum, attack) => sum + attack.probe.failures, 0);
    if (!server.isAlive) problems.add("the server died");
    if (failures > 0) problems.add(`${failures} GETs of the other database failed`);
    if (worst.probe.waitMs > limit) problems.add(`waits of more than ${limit} ms`);
    if (turn > limit) problems.add(`a turn of more than ${limit} ms of processor time`);
    const growthMax = (one.growthBytesMax ?? growthBytesMax) * tolerance;
    if (growth > growthMax) problems.add(`grew by more than ${megabytes(growthMax)}`);
    if (kept > keptBytesMax * tolerance)
      problems.add(`${megabytes(kept)} kept after ${givenBackMs / 1000} s`);
    return { problems: [...problems], figures: figuresOf(worst, idle, growth, kept) };
  } finally {
    await probe.stop();
    await server.stop();
  }
}

function figuresOf(worst: Attack, idle: ProbeReport, growth: number, kept: number): string {
  const { probe, turnMs, workerTurnMs, processorMs, tookMs } = worst;
  return (
    `wait ${ms(probe.waitMs)} (raw ${ms(probe.rawWaitMs)}, idle ${ms(idle.waitMs)}), p99 ${probe.p99Ms.toFixed(1)}, ` +
    `turn ${ms(turnMs)}, of HTTP threads ${ms(workerTurnMs)}, +${megabytes(growth)}, kept ${megabytes(kept)}, ` +
    `${(processorMs / 1000).toFixed(1)} s of processor in ${(tookMs / 1000).toFixed(1)} s`
  );
}

function medianBy<T>(items: readonly T[], value: (item: T) => number): T {
  const sorted = [...items].sort((one, other) => value(one) - value(other));
  const middle = sorted[sorted.length >> 1];
  if (middle === undefined) throw new Error("there was no attack");
  return middle;
}

function ms(value: number): string {
  return `${value.toFixed(0)} ms`;
}

function megabytes(bytes: number): string {
  return `${(bytes / 1024 / 1024).toFixed(0)} MB`;
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      short: { type: "boolean", default: false },
      tolerance: { type: "string", default: "1" },
      area: { type: "string" },
      only: { type: "string" },
      runs: { type: "string", default: "3" },
      list: { type: "boolean", default: false },
    },
  });
  const chosen = cases.filter(
    ({ area, name, isLong, gap }) =>
      (values.area === undefined || area === values.area) &&
      (values.only === undefined || name.includes(values.only)) &&
      !(values.short && (isLong === true || gap !== undefined)),
  );
  let passed = 0;
  let failed = 0;
  for (const one of chosen) {
    const title = `${one.area}: ${one.name} (${one.who})`;
    if (values.list) {
      console.log(title);
      continue;
    }
    let outcome: Outcome;
    try {
      outcome = await runCase(one, {
        isShort: values.short,
        runs: Number(values.runs),
        tolerance: Number(values.tolerance),
      });
    } catch (error) {
      outcome = { problems: [`it could not be run: ${(error as Error).message}`], figures: "" };
    }
    const isGood = outcome.problems.length === 0;
    if (isGood) passed++;
    else failed++;
    console.log(`${isGood ? "ok  " : "FAIL"} ${title}: ${outcome.figures}`);
    for (const problem of outcome.problems) console.log(`       ${problem}`);
    if (!isGood && one.gap !== undefined) console.log(`       known: ${one.gap}`);
  }
  if (!values.list) console.log(`${passed} passed, ${failed} failed`);
  process.exit(failed > 0 ? 1 : 0);
}

await main();
