/**
 * A set of document numbers with its size: a bit for each number up to the greatest.
 *
 * Invariants:
 * - `count` is the number of bits that are set.
 */

export class DocumentBits {
  #words = new Uint32Array(16);
  #count = 0;

  get count(): number {
    return this.#count;
  }

  has(docNum: number): boolean {
    return ((this.#words[docNum >>> 5] ?? 0) & (1 << (docNum & 31))) !== 0;
  }

  add(docNum: number): void {
    const at = docNum >>> 5;
    if (at >= this.#words.length) {
      const words = new Uint32Array(Math.max(at + 1, this.#words.length * 2));
      words.set(this.#words);
      this.#words = words;
    }
    const before = this.#words[at] as number; // at < length
    this.#words[at] = before | (1 << (docNum & 31));
    if (this.#words[at] !== before) this.#count++;
  }

  /** Returns a copy: a bit for each number. */
  words(): Uint32Array {
    return this.#words.slice();
  }

  /** Yields the numbers in a bitmap from `words`, ascending. */
  static *numbersOf(words: Uint32Array): Generator<number> {
    for (let at = 0; at < words.length; at++) {
      for (let word = words[at] as number; word !== 0; word &= word - 1) {
        yield at * 32 + 31 - Math.clz32(word & -word);
      }
    }
  }

  delete(docNum: number): void {
    const at = docNum >>> 5;
    if (at >= this.#words.length) return;
    const before = this.#words[at] as number; // at < length
    this.#words[at] = before & ~(1 << (docNum & 31));
    if (this.#words[at] !== before) this.#count--;
  }
}
