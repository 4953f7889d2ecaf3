/** Abuse by scripts and by the work of indexes. See `run-abuse.ts` for how a case is written. */
import type { AbuseCase } from "./abuse-case.ts";

export const scriptCases: readonly AbuseCase[] = [];
