/** Bytes delivered to the own log that are not durable there. */
export class UnappliedBytes {
  readonly #bytesMax: number;
  readonly #sequences: number[] = [];
  readonly #sizes: number[] = [];
  #bytes = 0;
  /** The sequence up to which the own log is durable. */
  durable: number;

  constructor(durable: number, bytesMax: number) {
    this.durable = durable;
    this.#bytesMax = bytesMax;
  }

  add(sequence: number, bytes: number): void {
    this.#sequences.push(sequence);
    this.#sizes.push(bytes);
    this.#bytes += bytes;
  }

  /** All up to `sequence` is durable. */
  release(sequence: number): void {
    this.durable = Math.max(this.durable, sequence);
    let count = 0;
    while (count < this.#sequences.length && (this.#sequences[count] as number) <= sequence) {
      this.#bytes -= this.#sizes[count] as number; // as long as the other
      count++;
    }
    this.#sequences.splice(0, count);
    this.#sizes.splice(0, count);
  }

  get isEmpty(): boolean {
    return this.#sequences.length === 0;
  }

  get isFull(): boolean {
    return this.#bytes >= this.#bytesMax;
  }

  /** Whether the number of bytes is low enough to resume. */
  get isLow(): boolean {
    return this.#bytes <= this.#bytesMax / 2;
  }
}
