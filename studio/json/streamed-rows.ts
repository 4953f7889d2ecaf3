/** Splits a streamed reply into the objects of its list "Results", as text. */
export class StreamedRows {
  #text = "";
  #at = 0;
  /** Bracket depth. */
  #depth = 0;
  #isInString = false;
  #isInResults = false;
  /** Offset of the current row; -1 between rows. */
  #rowAt = -1;

  /** Yields the rows that are complete after this chunk. */
  *push(chunk: string): Generator<string> {
    this.#text += chunk;
    for (; this.#at < this.#text.length; this.#at++) {
      const code = this.#text.charCodeAt(this.#at);
      if (this.#isInString) {
        if (code === 0x5c) {
          // The escaped character may be in the next chunk.
          if (this.#at + 1 >= this.#text.length) break;
          this.#at++;
        } else if (code === 0x22) this.#isInString = false;
      } else if (code === 0x22) {
        this.#isInString = true;
      } else if (code === 0x7b || code === 0x5b) {
        if (this.#depth === 1 && code === 0x5b)
          this.#isInResults = /"Results"\s*:\s*$/.test(
            this.#text.slice(Math.max(0, this.#at - 40), this.#at),
          );
        if (this.#depth === 2 && this.#isInResults && code === 0x7b) this.#rowAt = this.#at;
        this.#depth++;
      } else if (code === 0x7d || code === 0x5d) {
        this.#depth--;
        if (this.#depth === 1) this.#isInResults = false;
        if (this.#depth !== 2 || this.#rowAt < 0) continue;
        yield this.#text.slice(this.#rowAt, this.#at + 1);
        this.#rowAt = -1;
      }
    }
    this.#dropUsed();
  }

  #dropUsed(): void {
    const from = this.#rowAt >= 0 ? this.#rowAt : Math.max(0, this.#at - 40);
    this.#text = this.#text.slice(from);
    this.#at -= from;
    if (this.#rowAt >= 0) this.#rowAt = 0;
  }
}
