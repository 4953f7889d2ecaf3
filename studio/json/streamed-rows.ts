/** The objects in the list "Results" of a reply, one by one, as the text comes. */
export class StreamedRows {
  #text = "";
  #at = 0;
  /** How many brackets are open. */
  #depth = 0;
  #isInString = false;
  #isInResults = false;
  /** Where the present row begins; -1: between rows. */
  #rowAt = -1;

  /** The texts of the rows that end in what has come by now. */
  *push(piece: string): Generator<string> {
    this.#text += piece;
    for (; this.#at < this.#text.length; this.#at++) {
      const code = this.#text.charCodeAt(this.#at);
      if (this.#isInString) {
        if (code === 0x5c) {
          // What is escaped may not be there yet.
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
