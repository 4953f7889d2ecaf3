/**
 * The `Range` header (RFC 9110, 14.2), a single range only: for several ranges, or a malformed one, the whole is sent.
 */

/** Bytes [start, end) of a representation. */
interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/** The range that a header requests of `size` bytes; undefined: all of them. `unsatisfiable` when it covers none. */
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
