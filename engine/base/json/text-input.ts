/** Encodes text as UTF-8 for the parser, in one reused buffer. Knows nothing of JSON. */

const bytesMin = 16 * 1024;
/** A larger buffer is released after the text that needed it. */
const bytesKept = 4 * 1024 * 1024;
/** Maximum UTF-8 bytes of one UTF-16 unit. */
const bytesPerUnitMax = 3;

export class TextInput {
  /** Valid until the next `set`. */
  bytes: Buffer = Buffer.allocUnsafeSlow(bytesMin);

  /** Encodes `text`. @returns its length in bytes. */
  set(text: string): number {
    const needed = text.length * bytesPerUnitMax;
    if (needed > this.bytes.length || this.bytes.length > Math.max(needed, bytesKept)) {
      this.bytes = Buffer.allocUnsafeSlow(Math.max(needed, bytesMin));
    }
    return this.bytes.utf8Write(text, 0);
  }
}
