/**
 * Text on its way into the parser, as UTF-8 in one buffer that is used over and over. Knows nothing of JSON.
 */

const bytesMin = 16 * 1024;
/** A buffer above this is given back after the text that needed it. */
const bytesKept = 4 * 1024 * 1024;
/** Bytes that one UTF-16 unit takes at most. */
const bytesPerUnitMax = 3;

export class TextInput {
  /** Good until the next `set`. */
  bytes: Buffer = Buffer.allocUnsafeSlow(bytesMin);

  /** Takes `text`. @returns its length in bytes. */
  set(text: string): number {
    const needed = text.length * bytesPerUnitMax;
    if (needed > this.bytes.length || this.bytes.length > Math.max(needed, bytesKept)) {
      this.bytes = Buffer.allocUnsafeSlow(Math.max(needed, bytesMin));
    }
    return this.bytes.utf8Write(text, 0);
  }
}
