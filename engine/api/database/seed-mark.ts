/**
 * The mark of a database that was not replicated and is to become the first copy of a replicated database. Its stream
 * is of the next generation and continues this mark. A copy with an empty log, or with the log of an earlier stream,
 * lacks the mark: the protocol makes it copy the files of this one, instead of starting with the first message.
 *
 * Invariants:
 * - No frame of a stream has the epoch 0, so a mark with it is one of these.
 */
import { assert } from "../../base/assert.ts";
import {
  type ReplicationMark,
  replicationMarkKey,
} from "../../state/keyspaces/replication-marks.ts";
import type { OpenDatabase } from "./open-database.ts";

const hashBytes = 32;

/** Writes the mark, unless a mark exists that no stream has continued yet. Durable when it resolves. */
export async function markAsSeed(
  database: OpenDatabase,
  random: (count: number) => Buffer,
): Promise<ReplicationMark> {
  assert(database.replication === null, "a database that is replicated has marks of its stream");
  const found = database.state.keyspaces.replication.get(replicationMarkKey);
  if (found !== undefined && found.epoch === 0) return found;
  const mark: ReplicationMark = {
    generation: (found?.generation ?? 0) + 1,
    sequence: 1,
    epoch: 0,
    hash: random(hashBytes).toString("hex"),
  };
  await database.write((transaction) =>
    transaction.putEntry(transaction.keyspaces.replication, replicationMarkKey, mark),
  );
  return mark;
}
