/**
 * The smallest owner of a log: a map from key to record. Puts and deletions; one record each, or several in a group.
 *
 *   | record header, keyLength, word = bytes of the value | key | value | pad |
 *
 * Deletions have flag 1. Changes that are appended but not yet durable are staged, as in a real owner.
 */
import { assert } from "../../engine/base/assert.ts";
import {
  recordEtagAt,
  recordFlagsAt,
  recordHeaderBytes,
  recordKeyLengthAt,
  recordKindAt,
  recordKinds,
  recordLengthAt,
  recordWordAt,
  sealRecord,
} from "../../engine/base/record.ts";
import type { FileLog } from "../../engine/storage/log/file-log.ts";
import type { Position, RecordOwner, SnapshotSection } from "../../engine/storage/log/log.ts";

interface TinyEntry {
  value: string;
  etag: number;
  position: Position;
  length: number;
}

interface StagedChange {
  readonly key: string;
  /** Undefined for a deletion. */
  readonly value: string | undefined;
  readonly etag: number;
  readonly position: Position;
  readonly length: number;
}

/** One change of a transaction; undefined deletes the key. */
export type TinyChange = readonly [key: string, value: string | undefined];

export function putRecord(
  key: string,
  value: string | undefined,
  etag: number,
): { bytes: Buffer; length: number } {
  const text = value ?? "";
  const length = (recordHeaderBytes + key.length + text.length + 7) & ~7;
  const bytes = Buffer.alloc(length);
  bytes.writeUInt32LE(length, recordLengthAt);
  bytes[recordKindAt] = recordKinds.value;
  bytes[recordFlagsAt] = value === undefined ? 1 : 0;
  bytes.writeUInt16LE(key.length, recordKeyLengthAt);
  bytes.writeUInt32LE(text.length, recordWordAt);
  bytes.writeBigUInt64LE(BigInt(etag), recordEtagAt);
  bytes.write(key + text, recordHeaderBytes, "latin1");
  sealRecord(bytes, 0);
  return { bytes, length };
}

/** Decodes a record. */
export function readRecord(bytes: Buffer, start: number) {
  const keyEnd = start + recordHeaderBytes + bytes.readUInt16LE(start + recordKeyLengthAt);
  const valueEnd = keyEnd + bytes.readUInt32LE(start + recordWordAt);
  return {
    key: bytes.toString("latin1", start + recordHeaderBytes, keyEnd),
    value: bytes.toString("latin1", keyEnd, valueEnd),
    isDeletion: bytes[start + recordFlagsAt] === 1,
    etag: Number(bytes.readBigUInt64LE(start + recordEtagAt)),
  };
}

export class TinyOwner implements RecordOwner {
  log: FileLog | undefined;
  readonly entries = new Map<string, TinyEntry>();
  etag = 0;
  replayed = 0;
  /** Staged transactions, oldest first. */
  #staged: (readonly StagedChange[])[] = [];
  #committed = 0;

  put(key: string, value: string): Position {
    return this.write([[key, value]]);
  }

  remove(key: string): Position {
    return this.write([[key, undefined]]);
  }

  /** Writes one transaction. @returns the position of its first record */
  write(changes: readonly TinyChange[], evenIfFull = false): Position {
    assert(this.log !== undefined, "an owner has a log");
    const first = this.etag + 1;
    const records = changes.map(([key, value], index) => putRecord(key, value, first + index));
    const payload = Buffer.concat(records.map((record) => record.bytes));
    const position = this.log.append(payload, payload.length, evenIfFull);
    this.etag += changes.length;
    let at = position;
    this.#staged.push(
      changes.map(([key, value], index) => {
        const { length } = records[index] as { length: number };
        const change = { key, value, etag: first + index, position: at, length };
        at += length;
        return change;
      }),
    );
    return position;
  }

  durable(count: number): void {
    while (this.#committed < count) {
      this.#committed++;
      for (const change of this.#staged.shift() ?? []) this.#apply(change);
    }
  }

  lost(count: number): void {
    assert(this.#committed === count, "durable records are reported before lost ones");
    this.#staged = [];
  }

  #apply({ key, value, etag, position, length }: StagedChange): void {
    const previous = this.entries.get(key);
    if (previous !== undefined) this.log?.markReplaced(previous.position, previous.length);
    if (value === undefined) {
      this.entries.delete(key);
      this.log?.markDead(position, length);
    } else {
      this.entries.set(key, { value, etag, position, length });
    }
    this.etag = Math.max(this.etag, etag);
  }

  replay(bytes: Buffer, start: number, length: number, position: Position): void {
    const { key, value, isDeletion, etag } = readRecord(bytes, start);
    this.replayed++;
    this.#apply({ key, value: isDeletion ? undefined : value, etag, position, length });
  }

  isLive(bytes: Buffer, start: number, _length: number, position: Position): boolean {
    const { key, isDeletion } = readRecord(bytes, start);
    if (isDeletion) return this.log?.canDropDeletion(position) === false;
    return this.entries.get(key)?.position === position;
  }

  relocate(bytes: Buffer, start: number, _length: number, target: Position): boolean {
    const { key, isDeletion, etag } = readRecord(bytes, start);
    const entry = this.entries.get(key);
    if (isDeletion || entry === undefined || entry.etag !== etag) return false;
    entry.position = target;
    return true;
  }

  sections(): SnapshotSection[] {
    const text = JSON.stringify({ etag: this.etag, entries: [...this.entries] });
    return [{ name: "tiny", parts: [Buffer.from(text)] }];
  }

  restore(sections: ReadonlyMap<string, Buffer>): void {
    const { etag, entries } = JSON.parse(String(sections.get("tiny"))) as {
      etag: number;
      entries: [string, TinyEntry][];
    };
    this.etag = etag;
    for (const [key, entry] of entries) this.entries.set(key, entry);
  }

  state(): Record<string, string> {
    return Object.fromEntries([...this.entries].sort().map(([key, { value }]) => [key, value]));
  }

  liveBytes(): number {
    let bytes = 0;
    for (const entry of this.entries.values()) bytes += entry.length;
    return bytes;
  }
}
