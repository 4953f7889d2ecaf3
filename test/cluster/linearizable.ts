/**
 * Runs Porcupine, an established checker, to decide whether the registers of a history are
 * linearizable. The program around it (test/linearizability) is built with Go on first use and
 * cached until its source changes.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { projectRoot } from "../support/project-root.ts";
import type { RegisterEvent } from "./history.ts";

const source = join(projectRoot, "test/linearizability");
const secondsPerGroup = 30;

/** The program; null if Go is not available to build it. */
export function checkerPath(): string | null {
  const hash = createHash("sha256");
  for (const name of ["main.go", "go.mod", "go.sum"]) hash.update(readFileSync(join(source, name)));
  const folder = join(projectRoot, "node_modules/.cache");
  const path = join(folder, `linearizability-${hash.digest("hex").slice(0, 16)}`);
  if (existsSync(path)) return path;
  mkdirSync(folder, { recursive: true });
  const { status, stderr, error } = spawnSync("go", ["build", "-o", path, "."], {
    cwd: source,
    encoding: "utf8",
  });
  if (error !== undefined) return null;
  if (status !== 0) throw new Error(`the checker cannot be built: ${stderr}`);
  return path;
}

/** Names of groups that are not linearizable or could not be decided. */
export function checkLinearizable(program: string, events: readonly RegisterEvent[]): string[] {
  const input = events.map((event) => JSON.stringify(event)).join("\n");
  const { status, stdout, stderr } = spawnSync(program, [String(secondsPerGroup)], {
    input: `${input}\n`,
    encoding: "utf8",
    maxBuffer: 1 << 26,
  });
  if (status !== 0) throw new Error(`the checker failed: ${stderr}`);
  const verdicts = stdout.trim().split("\n");
  const groups = new Set(events.map(({ group }) => group));
  if (events.length > 0 && verdicts.length !== groups.size) throw new Error(`not all: ${stdout}`);
  return verdicts.filter((verdict) => verdict !== "" && !verdict.endsWith(" ok"));
}
