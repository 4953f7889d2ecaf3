/** Waiting for operations of the server, with their progress. */
import { setTimeout as wait } from "node:timers/promises";
import { inDatabase } from "./client.ts";
import type { Surroundings } from "./command.ts";
import { Failure } from "./failure.ts";
import { durationText } from "./output.ts";
import { ProgressLine, passedText } from "./progress.ts";

export interface OperationState {
  readonly Status: "InProgress" | "Completed" | "Faulted" | "Canceled";
  readonly Progress: Readonly<Record<string, unknown>> | null;
  readonly Result: Readonly<Record<string, unknown>> | null;
}

const pollMs = 100;
const pollMsMax = 1000;

/**
 * Waits for the end of an operation; `database` undefined: one of the server. Ctrl-C ends the waiting, not the operation.
 * @throws Failure failed, interrupted, missing
 */
export async function waitForOperation(
  surroundings: Surroundings,
  database: string | undefined,
  id: number,
): Promise<OperationState> {
  const progress = new ProgressLine(surroundings);
  let pauseMs = pollMs;
  try {
    for (;;) {
      const state = await operationState(surroundings, database, id);
      if (state.Status === "Completed") return state;
      if (state.Status !== "InProgress") throw endedOtherwise(id, state);
      progress.show(() => progressText(state.Progress, progress.elapsedMs));
      if (surroundings.interrupted.aborted) throw detached(database, id);
      await wait(pauseMs, undefined, { signal: surroundings.interrupted }).catch(() => undefined);
      pauseMs = Math.min(pollMsMax, pauseMs * 1.5);
    }
  } finally {
    progress.end();
  }
}

export async function operationState(
  { client }: Surroundings,
  database: string | undefined,
  id: number,
): Promise<OperationState> {
  const path = "operations/state";
  const where = database === undefined ? `/${path}` : inDatabase(database, path);
  const answer = await client().send(where, { query: { id }, accepts: [404] });
  if (answer.status !== 404) return JSON.parse(answer.text) as OperationState;
  throw new Failure("missing", `There is no operation ${id}; 'jackdaw operation list' lists them`);
}

function detached(database: string | undefined, id: number): Failure {
  const where = database === undefined ? "" : ` -d ${database}`;
  return new Failure(
    "interrupted",
    `Operation ${id} goes on at the server: 'jackdaw operation wait ${id}${where}', or 'jackdaw operation kill ${id}${where}'`,
  );
}

function endedOtherwise(id: number, { Status, Result }: OperationState): Failure {
  if (Status === "Canceled") return new Failure("failed", `Operation ${id} was killed`);
  const why = String(Result?.["Message"] ?? "no reason was given").split("\n")[0];
  return new Failure("failed", `Operation ${id} failed: ${why}`);
}

/** Figures of an operation as one line, with rate and time left where the total is known. */
export function progressText(progress: OperationState["Progress"], elapsedMs: number): string {
  const processed = Number(progress?.["Processed"] ?? Number.NaN);
  const total = Number(progress?.["Total"] ?? Number.NaN);
  if (Number.isNaN(processed)) {
    const message = progress?.["Message"];
    return `${typeof message === "string" ? message : "under way"}, ${durationText(elapsedMs)}`;
  }
  return passedText(processed, total > 0 ? total : undefined, elapsedMs, (count) =>
    count.toLocaleString("en"),
  );
}
