/**
 * Named JSON values of the database itself: its record (settings, configurations), and small state such as the next
 * operation id. Keys are exact.
 */
import { recordKinds } from "../../base/record.ts";
import { EntryKeyspace } from "./entry-keyspace.ts";
import type { DeadRecordListener } from "./keyspace.ts";

/** Number of documents written by cluster-wide transactions: the number in the `RAFT` entry of change vectors. */
export const clusterCountKey = "cluster-transaction-count";

export function makeValues(dead: DeadRecordListener): EntryKeyspace<unknown> {
  return new EntryKeyspace<unknown>("values", recordKinds.value, dead);
}
