/**
 * When changes are told and frames are sent: at once while that is little, else in slices, a few milliseconds in each turn of
 * the event loop, whoever follows how much. One change that a thousand connections follow is a thousand messages.
 *
 * Invariants:
 * - What is given to one list is done in the order in which it was given.
 */

/** Milliseconds of a turn. */
const turnMs = 4;

let isOpen = false;
let startMs = 0;

/** Has this turn had its share? The first who asks begins it. */
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

export class ChangeTurns<Item> {
  readonly #act: (item: Item) => void;
  readonly #waitingMax: number;
  #waiting: Item[] = [];
  #next = 0;
  #isScheduled = false;

  /** @param waitingMax more are not gathered: then the oldest is done at once. `act` does not throw. */
  constructor(act: (item: Item) => void, waitingMax: number) {
    this.#act = act;
    this.#waitingMax = waitingMax;
  }

  /** Does it now, or in a later turn. */
  add(item: Item): void {
    if (this.#next === this.#waiting.length && !isOver()) {
      this.#act(item);
      return;
    }
    this.#waiting.push(item);
    if (this.#waiting.length - this.#next > this.#waitingMax) this.#doNext();
    this.#schedule();
  }

  /** What waits is forgotten. */
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
    const item = this.#waiting[this.#next++] as Item; // whoever calls knows that there is one
    // While more comes than is done, the list never ends: it must not keep what is done.
    if (this.#next > this.#waitingMax) {
      this.#waiting = this.#waiting.slice(this.#next);
      this.#next = 0;
    }
    this.#act(item);
  }
}
