/**
 * Schedules the delivery of changes and frames: immediately while little is pending, else in time slices of a few
 * milliseconds per event-loop tick, shared by all lists. A change that a thousand connections watch is a thousand
 * messages.
 *
 * Invariants:
 * - The items of one list are processed in the order in which they were added.
 */

/** Time slice per event-loop tick, in milliseconds. */
const sliceMs = 4;

let isOpen = false;
let startMs = 0;

/** Returns whether the slice of this tick is used up. The first call in a tick starts it. */
function isOver(): boolean {
  const nowMs = performance.now();
  if (!isOpen) {
    isOpen = true;
    startMs = nowMs;
    setImmediate(() => {
      isOpen = false;
    });
    return false;
  }
  return nowMs - startMs >= sliceMs;
}

export class ChangeScheduler<Item> {
  readonly #act: (item: Item) => void;
  readonly #waitingMax: number;
  #waiting: Item[] = [];
  #next = 0;
  #isScheduled = false;

  /**
   * @param waitingMax maximum number of queued items: beyond it the oldest is processed immediately. `act` must not
   * throw.
   */
  constructor(act: (item: Item) => void, waitingMax: number) {
    this.#act = act;
    this.#waitingMax = waitingMax;
  }

  /** Processes `item` now, or in a later tick. */
  add(item: Item): void {
    if (this.#next === this.#waiting.length && !isOver()) {
      this.#act(item);
      return;
    }
    this.#waiting.push(item);
    if (this.#waiting.length - this.#next > this.#waitingMax) this.#doNext();
    this.#schedule();
  }

  /** Drops the queued items. */
  clear(): void {
    this.#waiting = [];
    this.#next = 0;
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      while (this.#next < this.#waiting.length && !isOver()) this.#doNext();
      if (this.#next < this.#waiting.length) this.#schedule();
      else this.clear();
    });
  }

  #doNext(): void {
    const item = this.#waiting[this.#next++] as Item; // the caller ensures that there is one
    // When items arrive faster than they are processed, the list never empties: processed ones must be dropped.
    if (this.#next > this.#waitingMax) {
      this.#waiting = this.#waiting.slice(this.#next);
      this.#next = 0;
    }
    this.#act(item);
  }
}
