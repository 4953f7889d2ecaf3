/** The JSON texts of new values, one after the other in one buffer. Independent of the values that they replace. */
import { numberBytesMax, writeDouble, writeWhole } from "../base/json/number-bytes.ts";
import { doubleText, numberText, stringText } from "../scripting/values/value-text.ts";

const bytesMin = 64 * 1024;
/** Maximum UTF-8 bytes of one UTF-16 unit. */
const bytesPerUnitMax = 3;

export class ValueTexts {
  bytes: Buffer = Buffer.allocUnsafeSlow(bytesMin);
  length = 0;

  /**
   * Adds a value. @param isDouble a number is spelled as a double: a whole one with `.0`. @returns whether the text is
   * ASCII
   */
  add(value: null | boolean | number | string, isDouble: boolean): boolean {
    if (typeof value === "number") this.addNumber(value, isDouble);
    else if (typeof value !== "string") this.#addAscii(String(value));
    else {
      const text = stringText(value);
      this.#need(text.length * bytesPerUnitMax);
      const length = this.bytes.write(text, this.length);
      this.length += length;
      return length === text.length;
    }
    return true;
  }

  /** Hot: bench/patch.bench.ts. */
  addNumber(value: number, isDouble: boolean): void {
    this.#need(numberBytesMax);
    if (isDouble) {
      const end = writeDouble(this.bytes, this.length, value);
      if (end < 0) this.#addAscii(doubleText(value));
      else this.length = end;
    } else if (Number.isSafeInteger(value)) {
      this.length = writeWhole(this.bytes, this.length, value);
    } else this.#addAscii(numberText(value));
  }

  #addAscii(text: string): void {
    this.#need(text.length);
    this.length += this.bytes.latin1Write(text, this.length);
  }

  #need(count: number): void {
    if (this.length + count <= this.bytes.length) return;
    const larger = Buffer.allocUnsafeSlow(2 * (this.length + count));
    this.bytes.copy(larger, 0, 0, this.length);
    this.bytes = larger;
  }
}
