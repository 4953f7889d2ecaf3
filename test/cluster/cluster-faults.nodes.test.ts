/**
 * Three servers and three NATS servers, as separate processes, under traffic of all types while
 * they are killed, suspended, isolated, wiped and damaged. The replies to clients are then checked
 * against the final contents.
 *
 * By default each of the short faults is injected once. CLUSTER_ROUNDS sets another number of
 * rounds, with all faults, in clusters of up to 20 rounds each, with consecutive seeds;
 * CLUSTER_SEED sets the first; CLUSTER_FAULTS selects faults (parts of their names, separated by
 * commas), CLUSTER_REPORTS the folder for histories of failures.
 */
import { expect, test } from "vitest";
import { faults, shortFaults } from "./faults.ts";
import { runRounds } from "./rounds.ts";

/** The amount of data grows with the rounds, and all of it is read at the end. */
const roundsPerCluster = 20;

const { CLUSTER_ROUNDS, CLUSTER_SEED, CLUSTER_FAULTS } = process.env;
const wanted = CLUSTER_FAULTS?.split(",");
const isShort = CLUSTER_ROUNDS === undefined && wanted === undefined;
const rounds = Number(CLUSTER_ROUNDS ?? shortFaults.length);
const firstSeed = Number(CLUSTER_SEED ?? Date.now() % 1_000_000);
const only = isShort
  ? shortFaults
  : Object.keys(faults).filter(
      (name) => wanted === undefined || wanted.some((part) => name.includes(part)),
    );

const clusters = Array.from({ length: Math.ceil(rounds / roundsPerCluster) }, (_, at) => ({
  seed: firstSeed + at,
  count: Math.min(roundsPerCluster, rounds - at * roundsPerCluster),
}));

test.each(clusters)(
  "replies to clients hold over $count faults, seed $seed",
  async ({ seed, count }) => {
    const report = await runRounds({
      rounds: count,
      seed,
      only,
      options: { hasClocks: true, hasSmallDisk: true },
      print: (line) => console.log(line),
    });
    console.log(report.summary);
    for (const reason of report.leftOut) console.log(`left out: ${reason}`);
    expect(report.problems).toEqual([]);
  },
  240_000 + roundsPerCluster * 90_000,
);
