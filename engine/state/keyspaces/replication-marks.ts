/**
 * The position in the replicated stream up to which the log is a copy. There is one entry, in the same frame as its
 * group; a database that is not replicated has no entry.
 */
import { assert } from "../../base/assert.ts";
import { recordHeaderBytes, recordKinds, sealRecord } from "../../base/record.ts";
import { markBytes } from "../../storage/log/log-carrier.ts";
import { EntryKeyspace, type ValueCodec } from "./entry-keyspace.ts";
import type { DeadRecordListener } from "./keyspace.ts";

export const replicationMarkKey = "mark";

/** A place in the replicated stream. */
export interface ReplicationMark {
  /** Streams that replace one another are numbered from 1. */
  readonly generation: number;
  /** The last message of the stream that this log has. */
  readonly sequence: number;
  readonly epoch: number;
  /** SHA-256 of that frame, in hexadecimal. */
  readonly hash: string;
}

/** Bytes of the value in the record of a mark: the longest, as all have the same length. */
const valueBytes = markBytes - recordHeaderBytes - replicationMarkKey.length;

/** All values are as long as the longest, in snapshots too: an entry has the length of its record. */
const codec: ValueCodec<ReplicationMark> = {
  encode(mark) {
    const value = JSON.stringify(mark).padEnd(valueBytes);
    assert(value.length === valueBytes, "there is room for the numbers of a mark");
    return value;
  },
  decode: (bytes, from, to) => JSON.parse(bytes.toString("utf8", from, to)) as ReplicationMark,
};

/** Returns the record of a mark: `markBytes` long. */
export function markRecord(mark: ReplicationMark): Buffer {
  const value = codec.encode(mark);
  const record = Buffer.alloc(markBytes);
  EntryKeyspace.encode(
    record,
    0,
    markBytes,
    recordKinds.replicationMark,
    replicationMarkKey,
    value,
    0,
  );
  sealRecord(record, 0);
  return record;
}

export function makeReplicationMarks(dead: DeadRecordListener): EntryKeyspace<ReplicationMark> {
  const { replicationMark } = recordKinds;
  return new EntryKeyspace<ReplicationMark>("replication", replicationMark, dead, codec);
}
