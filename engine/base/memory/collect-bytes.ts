/** Collecting a small stream of bytes in memory. */

/**
 * Returns all bytes of `source`. Once more than `bytesMax` have arrived, it throws the result of `tooLarge` and closes
 * the source.
 */
export async function collectBytes(
  source: AsyncIterable<Buffer>,
  bytesMax = Number.POSITIVE_INFINITY,
  tooLarge = () => new Error(`The stream has more than ${bytesMax} bytes.`),
): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of source) {
    length += chunk.length;
    if (length > bytesMax) throw tooLarge();
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, length);
}
