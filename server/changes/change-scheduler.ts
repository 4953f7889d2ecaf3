/**
 * Schedules the delivery of changes and frames: at once while there is little to do, else in time slices of a few
 * milliseconds per turn of the event loop, shared by all lists. One change that a thousand connections watch is a
 * thousand messages.
 *
 * Invariants:
 * - The items of one list are processed in the order in which they were added.
 */

/** Milliseconds of a turn's slice. */
const turnMs = 4;

let isOpen = false;
let startMs = 0;

/** Is this turn's slice used up? The first call in a turn starts it. */
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
  return nowMs - startMs >= turnMs;
}

export class ChangeScheduler<Item> {
  readonly #act: (item: Item) => void;
  readonly #waitingMax: number;
  #waiting: Item[] = [];
  #next = 0;
  #isScheduled = false;

  /**
   * @param waitingMax the most items that are queued: beyond that the oldest is processed at once. `act` does not
   * throw.
   */
  constructor(act: (item: Item) => void, waitingMax: number) {
    this.#act = act;
    this.#waitingMax = waitingMax;
  }

  /** Processes `item` now, or in a later turn. */
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
