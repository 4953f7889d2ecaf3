/** Abuse by queries. See `run-abuse.ts` for how a case is written. */
import type { AbuseCase } from "./abuse-case.ts";

export const queryCases: readonly AbuseCase[] = [];
