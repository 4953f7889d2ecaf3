/**
 * One end of a link between two threads: a ring in each direction, and a message port that wakes the other thread.
 *
 * Invariants:
 * - Records that are written in one tick of the event loop are sent together, with at most one message.
 * - Receiving takes at most a time slice per tick.
 */
import type { MessagePort, Worker } from "node:worker_threads";
import { sliceMs } from "../../engine/base/limits.ts";
import type { RecordOutput } from "./records.ts";
import {
  allocateRing,
  type Received,
  type RecordHandler,
  RingReceiver,
  RingSender,
} from "./ring.ts";

/** Bytes of records in each direction. A record takes at most a quarter. */
const ringBytes = 4 * 1024 * 1024;

/** After an exception of a handler: the records that follow are received in the next tick. */
const interrupted: Received = { hasMore: true, wakesSender: true };

/** The memory of a link. */
export interface LinkMemory {
  readonly events: SharedArrayBuffer;
  readonly commands: SharedArrayBuffer;
}

export function allocateLink(): LinkMemory {
  return { events: allocateRing(ringBytes), commands: allocateRing(ringBytes) };
}

export class ThreadLink implements RecordOutput {
  readonly sender: RingSender;
  readonly #receiver: RingReceiver;
  readonly #port: MessagePort | Worker;
  #handle: RecordHandler = () => undefined;
  #isReceiving = false;
  #isSendDue = false;
  #isReceiveDue = false;
  #isClosed = false;

  /** `isEngine`: the end of the engine thread, which receives events and sends commands. */
  constructor(port: MessagePort | Worker, memory: LinkMemory, isEngine: boolean) {
    this.#port = port;
    this.sender = new RingSender(isEngine ? memory.commands : memory.events);
    this.#receiver = new RingReceiver(isEngine ? memory.events : memory.commands);
  }

  /** Passes received records to `handle` from now on. */
  receive(handle: RecordHandler): void {
    this.#handle = handle;
    this.#receiveSoon();
  }

  /** To be called for each message that wakes this thread. */
  wake(): void {
    if (this.#isReceiving || this.#isClosed) return;
    this.#isReceiving = true;
    let received: Received = interrupted;
    try {
      received = this.#receiver.receive(this.#handle, performance.now() + sliceMs);
    } finally {
      this.#isReceiving = false;
      if (received.hasMore) this.#receiveSoon();
      const wakesReceiver = this.sender.send();
      if (received.wakesSender || wakesReceiver) this.#post();
    }
  }

  sendSoon(): void {
    if (this.#isReceiving || this.#isSendDue || this.#isClosed) return;
    this.#isSendDue = true;
    setImmediate(() => {
      this.#isSendDue = false;
      if (!this.#isClosed && this.sender.send()) this.#post();
    });
  }

  /** The other thread has ended, or is about to: nothing more is sent or received. */
  close(): void {
    this.#isClosed = true;
  }

  #receiveSoon(): void {
    if (this.#isReceiveDue) return;
    this.#isReceiveDue = true;
    setImmediate(() => {
      this.#isReceiveDue = false;
      this.wake();
    });
  }

  /** The content of the message does not matter. */
  #post(): void {
    this.#port.postMessage(null);
  }
}
