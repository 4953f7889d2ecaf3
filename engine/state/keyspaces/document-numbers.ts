/**
 * Recycling of document numbers: which documents are gone, when their numbers are unreferenced, and which numbers can
 * be assigned to other ids.
 *
 *   waiting  -> examined: dropped if the number is needed (its user calls `note` when that ends), requeued if
 *               a view or the order by id still has it, else retiring
 *   retiring -> free, once every hold taken before it began to retire is released. A lookup of its id until then
 *               gets the number, which then waits again.
 *
 * Knows nothing of ids and rows: `NumberOwner` does.
 *
 * Invariants:
 * - A free number is in no index, view, list or query; its id is forgotten.
 */
import { assert } from "../../base/assert.ts";
import { NumberSet } from "../../base/tree/number-set.ts";
import { TaggedQueue } from "../../base/tree/tagged-queue.ts";

/** State of a number: "needed" by a user that will call `note` when it no longer is; "seen", by a view for instance. */
export type NumberState = "needed" | "seen" | "unused";

interface NumberOwner {
  stateOf(docNum: number): NumberState;
  /** Whether ids may be forgotten now. */
  readonly mayForget: boolean;
  /** Forgets the id and everything else about an unused number. */
  forget(docNum: number): void;
}

/** A reader that may hold numbers over several ticks of the event loop. It must be released. */
export interface NumberHold {
  release(): void;
}

/** A hold in the list of holds, oldest first. */
interface ListedHold {
  readonly epoch: number;
  before: ListedHold | null;
  after: ListedHold | null;
}

export class DocumentNumbers {
  readonly free: NumberSet;
  readonly #owner: NumberOwner;
  readonly #waiting = new TaggedQueue();
  readonly #retiring = new TaggedQueue();
  readonly #isRetiring: NumberSet;
  /** The retiring numbers that were looked up. */
  readonly #isWanted: NumberSet;
  #epoch = 0;
  #oldest: ListedHold | null = null;
  #newest: ListedHold | null = null;

  constructor(owner: NumberOwner, numbersPerChunk: number) {
    this.#owner = owner;
    this.free = new NumberSet(numbersPerChunk);
    this.#isRetiring = new NumberSet(numbersPerChunk);
    this.#isWanted = new NumberSet(numbersPerChunk);
  }

  /** Numbers that may become free. */
  get pendingCount(): number {
    return this.#waiting.length + this.#retiring.length;
  }

  /** The number may be unused from now on. Cost: O(1). */
  note(docNum: number): void {
    this.#waiting.push(docNum, 0);
  }

  /** A lookup by id returned the number. Hot. */
  wanted(docNum: number): void {
    if (this.#isRetiring.count > 0 && this.#isRetiring.has(docNum)) this.#isWanted.add(docNum);
  }

  /** Numbers that become unused before the release are not reassigned until then. Cost: O(1). */
  hold(): NumberHold {
    this.#epoch++;
    const hold: ListedHold = { epoch: this.#epoch, before: this.#newest, after: null };
    if (this.#newest === null) this.#oldest = hold;
    else this.#newest.after = hold;
    this.#newest = hold;
    let isReleased = false;
    return {
      release: () => {
        if (isReleased) return;
        isReleased = true;
        this.#unlist(hold);
      },
    };
  }

  #unlist({ before, after }: ListedHold): void {
    if (before === null) this.#oldest = after;
    else before.after = after;
    if (after === null) this.#newest = before;
    else after.before = before;
  }

  /** Examines some of the waiting numbers, and frees some retired ones. Cost: O(steps). */
  reclaim(steps: number): void {
    for (let left = Math.min(steps, this.#waiting.length); left > 0; left--) {
      const docNum = this.#waiting.shift();
      if (this.free.has(docNum) || this.#isRetiring.has(docNum)) continue;
      const state = this.#owner.stateOf(docNum);
      if (state === "seen") this.#waiting.push(docNum, 0);
      else if (state === "unused") {
        this.#isRetiring.add(docNum);
        this.#retiring.push(docNum, this.#epoch);
      }
    }
    for (let left = steps; left > 0 && this.#isDue(); left--) {
      const docNum = this.#retiring.shift();
      const isKnown = this.#isRetiring.delete(docNum);
      assert(isKnown, "a number retires once");
      const isWanted = this.#isWanted.delete(docNum);
      if (isWanted || this.#owner.stateOf(docNum) !== "unused") this.#waiting.push(docNum, 0);
      else this.#owner.forget(docNum);
    }
  }

  /** Returns whether the number that has been retiring for longest may be freed. */
  #isDue(): boolean {
    if (this.#retiring.length === 0 || !this.#owner.mayForget) return false;
    return this.#oldest === null || this.#oldest.epoch > this.#retiring.firstTag();
  }

  memoryBytes(): number {
    const sets = [this.free, this.#isRetiring, this.#isWanted];
    const bytes = this.#waiting.memoryBytes() + this.#retiring.memoryBytes();
    return sets.reduce((sum, set) => sum + set.memoryBytes(), bytes);
  }

  checkInvariants(): void {
    this.free.checkInvariants();
    this.#isRetiring.checkInvariants();
    this.#isWanted.checkInvariants();
    assert(this.#isRetiring.count === this.#retiring.length, "retiring numbers are in the queue");
    assert(this.#isWanted.count <= this.#isRetiring.count, "only what retires is wanted back");
  }
}
