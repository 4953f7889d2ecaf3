/**
 * The `Range` header (RFC 9110, 14.2), one range only: of several, or of what is not understood, the whole is sent.
 */

/** Bytes [start, end) of a content. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/**
 * The range of a content of `size` bytes that a header asks for; undefined: all of it.
 * `unsatisfiable` when it has none of the content's bytes.
 */
export function byteRangeOf(
  header: string | undefined,
  size: number,
): ByteRange | "unsatisfiable" | undefined {
  const match = /^\s*bytes\s*=\s*(\d*)\s*-\s*(\d*)\s*$/i.exec(header ?? "");
  if (match === null) return undefined;
  const [, first = "", last = ""] = match;
  if (first === "") {
    if (last === "") return undefined;
    const start = Math.max(size - Number(last), 0);
    return start < size ? { start, end: size } : "unsatisfiable";
  }
  const start = Number(first);
  if (last !== "" && Number(last) < start) return undefined;
  if (start >= size) return "unsatisfiable";
  return { start, end: last === "" ? size : Math.min(Number(last) + 1, size) };
}
