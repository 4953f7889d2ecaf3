/**
 * A queue of records in shared memory, with one sending and one receiving thread. Transfers bytes and nothing else: the
 * meaning of a record is defined in `records.ts`.
 *
 * The memory starts with four 32-bit words, followed by the records:
 *
 *     word  0         1      2           3               64 bytes   capacity bytes
 *           written   read   isSleeping  isSenderWaiting padding    records
 *
 *     record   0        4      5       6        8            12         16
 *              length   kind   flags   number   connection   exchange   payload, padding to 4 bytes
 *              u32      u8     u8      u16      u32          u32
 *
 * `written` and `read` are positions modulo 2^32; the capacity is a power of two. A record does not wrap: if it does not
 * fit before the end of the memory, a word of 0xffffffff fills the rest. `length` includes the header and excludes padding.
 *
 * Invariants:
 * - A record is never dropped, and records arrive in the order in which they were sent, except that others overtake bulk
 *   records. Records that do not fit, and bulk records while there is much to receive, wait in the sender's memory.
 * - Neither thread ever waits for the other. A sleeping receiver, or a sender that waits for space, is woken by a message:
 *   `send` and `receive` return whether one is due.
 */
import { assert } from "../../engine/base/assert.ts";

const written = 0;
const read = 1;
const isSleeping = 2;
const isSenderWaiting = 3;

/** Part of the ring that may be unreceived before bulk records wait: other records wait for this much. */
const bulkShare = 1 / 8;
const controlBytes = 64;
const headerBytes = 16;
const skip = 0xffffffff;

/** Allocates the memory of a ring for `capacity` bytes of records: a power of two. */
export function allocateRing(capacity: number): SharedArrayBuffer {
  assert((capacity & (capacity - 1)) === 0 && capacity >= 1024, "a power of two");
  const memory = new SharedArrayBuffer(controlBytes + capacity);
  // The receiver sleeps until the first record.
  new Int32Array(memory)[isSleeping] = 1;
  return memory;
}

class RingMemory {
  readonly control: Int32Array;
  readonly words: Uint32Array;
  readonly bytes: Buffer;
  readonly capacity: number;

  constructor(memory: SharedArrayBuffer) {
    this.control = new Int32Array(memory, 0, 4);
    this.words = new Uint32Array(memory, controlBytes);
    this.bytes = Buffer.from(memory, controlBytes);
    this.capacity = this.bytes.length;
  }
}

/** A record that others may overtake. */
interface BulkRecord {
  readonly kind: number;
  readonly flags: number;
  readonly number: number;
  readonly exchange: number;
  readonly payload: Buffer;
}

/** Hot: bench/http.bench.ts */
export class RingSender {
  /** Where the payload of the record that was begun is written, from `begin`'s result on. */
  target: Buffer;
  readonly #ring: RingMemory;
  readonly #bulkBytesMax: number;
  #written: number;
  /** The receiver's position when it was last read: it may be further by now. */
  #read: number;
  /** Records that did not fit, with their headers, in order. */
  readonly #waiting: Buffer[] = [];
  /** Bulk records that wait, in order. */
  readonly #bulk: BulkRecord[] = [];

  constructor(memory: SharedArrayBuffer) {
    this.#ring = new RingMemory(memory);
    this.target = this.#ring.bytes;
    this.#bulkBytesMax = this.#ring.capacity * bulkShare;
    this.#written = Atomics.load(this.#ring.control, written) >>> 0;
    this.#read = Atomics.load(this.#ring.control, read) >>> 0;
  }

  /** Maximum length of a payload, in bytes. */
  get payloadBytesMax(): number {
    return this.#ring.capacity / 4 - headerBytes;
  }

  /** Whether a bulk record need not wait. */
  get takesBulk(): boolean {
    return this.#waiting.length === 0 && this.#bulk.length === 0 && this.#mayCopyBulk();
  }

  /** Sends a bulk record once there is little to receive. Its payload must not change. */
  sendLater(record: BulkRecord): void {
    this.#bulk.push(record);
  }

  /**
   * Begins a record. The caller then writes its payload to `target`, and begins the next record or calls `send`.
   * @returns the offset of the payload in `target`
   */
  begin(
    kind: number,
    flags: number,
    number: number,
    connection: number,
    exchange: number,
    payloadBytes: number,
  ): number {
    assert(payloadBytes <= this.payloadBytesMax, "a record fits into a quarter of the ring");
    const length = headerBytes + payloadBytes;
    const { words, bytes } = this.#ring;
    const at = this.#waiting.length === 0 ? this.#reserve(length) : -1;
    if (at < 0) {
      const record = Buffer.allocUnsafeSlow((length + 3) & ~3);
      this.#waiting.push(record);
      writeHeader(new Uint32Array(record.buffer), 0, length, kind, flags, number);
      record.writeUInt32LE(connection, 8);
      record.writeUInt32LE(exchange, 12);
      this.target = record;
      return headerBytes;
    }
    const word = at >>> 2;
    writeHeader(words, word, length, kind, flags, number);
    words[word + 2] = connection;
    words[word + 3] = exchange;
    this.target = bytes;
    return at + headerBytes;
  }

  /** Makes all complete records visible to the receiver. @returns whether the receiver must be woken */
  send(): boolean {
    this.#copyWaiting();
    const { control } = this.#ring;
    if (this.#waiting.length > 0 || this.#bulk.length > 0) {
      // The receiver may have made space before it could see the flag: look again.
      Atomics.store(control, isSenderWaiting, 1);
      this.#copyWaiting();
    }
    if (Atomics.load(control, written) >>> 0 === this.#written) return false;
    Atomics.store(control, written, this.#written | 0);
    return Atomics.exchange(control, isSleeping, 0) === 1;
  }

  #copyWaiting(): void {
    let count = 0;
    for (const record of this.#waiting) {
      const at = this.#reserve(record.readUInt32LE(0));
      if (at < 0) break;
      record.copy(this.#ring.bytes, at);
      count++;
    }
    if (count > 0) this.#waiting.splice(0, count);
    if (this.#waiting.length === 0 && this.#bulk.length > 0) this.#copyBulk();
  }

  #copyBulk(): void {
    const { words, bytes } = this.#ring;
    let count = 0;
    for (const { kind, flags, number, exchange, payload } of this.#bulk) {
      const length = headerBytes + payload.length;
      const at = this.#mayCopyBulk() ? this.#reserve(length) : -1;
      if (at < 0) break;
      const word = at >>> 2;
      writeHeader(words, word, length, kind, flags, number);
      words[word + 2] = 0;
      words[word + 3] = exchange;
      payload.copy(bytes, at + headerBytes);
      count++;
    }
    if (count > 0) this.#bulk.splice(0, count);
  }

  #mayCopyBulk(): boolean {
    if ((this.#written - this.#read) >>> 0 <= this.#bulkBytesMax) return true;
    this.#read = Atomics.load(this.#ring.control, read) >>> 0;
    return (this.#written - this.#read) >>> 0 <= this.#bulkBytesMax;
  }

  /** Reserves space for a record. @returns its offset; -1: there is not enough */
  #reserve(length: number): number {
    const { words, capacity, control } = this.#ring;
    const size = (length + 3) & ~3;
    const at = this.#written & (capacity - 1);
    const rest = capacity - at;
    const needed = size <= rest ? size : rest + size;
    if (needed > capacity - ((this.#written - this.#read) >>> 0)) {
      this.#read = Atomics.load(control, read) >>> 0;
      if (needed > capacity - ((this.#written - this.#read) >>> 0)) return -1;
    }
    this.#written = (this.#written + needed) >>> 0;
    if (size <= rest) return at;
    words[at >>> 2] = skip;
    return 0;
  }
}

function writeHeader(
  words: Uint32Array,
  word: number,
  length: number,
  kind: number,
  flags: number,
  number: number,
): void {
  words[word] = length;
  words[word + 1] = kind | (flags << 8) | (number << 16);
}

/** Receives a record. Its payload is valid until the function returns. */
export type RecordHandler = (
  kind: number,
  flags: number,
  number: number,
  connection: number,
  exchange: number,
  bytes: Buffer,
  start: number,
  end: number,
) => void;

/** Result of `RingReceiver.receive`. */
export interface Received {
  /** More records are ready: call `receive` again, in a later tick. */
  readonly hasMore: boolean;
  /** The sender waits for space and must be woken. */
  readonly wakesSender: boolean;
}

/** Hot: bench/http.bench.ts */
export class RingReceiver {
  readonly #ring: RingMemory;
  #read: number;

  constructor(memory: SharedArrayBuffer) {
    this.#ring = new RingMemory(memory);
    this.#read = Atomics.load(this.#ring.control, read) >>> 0;
  }

  /**
   * Passes records to `handle` until none is left, or `untilMs` (of `performance.now()`) is reached after a record. If
   * none is left, the receiver sleeps: the sender wakes it with the next record.
   */
  receive(handle: RecordHandler, untilMs: number): Received {
    const { control } = this.#ring;
    let hasMore = this.#receive(handle, untilMs);
    if (!hasMore) {
      Atomics.store(control, isSleeping, 1);
      // A record that was sent before the sender could see the flag wakes nobody.
      if (Atomics.load(control, written) >>> 0 !== this.#read) {
        hasMore = Atomics.exchange(control, isSleeping, 0) === 1;
      }
    }
    const wakesSender =
      Atomics.load(control, isSenderWaiting) === 1 &&
      Atomics.exchange(control, isSenderWaiting, 0) === 1;
    return { hasMore, wakesSender };
  }

  #receive(handle: RecordHandler, untilMs: number): boolean {
    const { control, words, bytes, capacity } = this.#ring;
    let end = Atomics.load(control, written) >>> 0;
    let count = 0;
    while (this.#read !== end) {
      const at = this.#read & (capacity - 1);
      const word = at >>> 2;
      const length = words[word] as number; // at < capacity
      if (length === skip) {
        this.#release(capacity - at);
        continue;
      }
      const head = words[word + 1] as number;
      const connection = words[word + 2] as number;
      const exchange = words[word + 3] as number;
      const start = at + headerBytes;
      try {
        handle(
          head & 0xff,
          (head >>> 8) & 0xff,
          head >>> 16,
          connection,
          exchange,
          bytes,
          start,
          at + length,
        );
      } finally {
        this.#release((length + 3) & ~3);
      }
      // Reading the clock costs as much as a small record.
      if ((++count & 7) === 0 && performance.now() >= untilMs) return true;
      if (this.#read === end) end = Atomics.load(control, written) >>> 0;
    }
    return false;
  }

  #release(bytes: number): void {
    this.#read = (this.#read + bytes) >>> 0;
    Atomics.store(this.#ring.control, read, this.#read | 0);
  }
}
