/**
 * Parses long JSON values into JavaScript values in time slices. Lists and objects of the uppermost levels are parsed
 * element by element; a long value nested deeper, which is not expected in practice, is parsed synchronously.
 */
import { pauseIfDue } from "../scheduling/time-slices.ts";
import { byteArrayClose, byteArrayOpen, byteComma, byteObjectOpen, skipSpace } from "./bytes.ts";
import { scanObject } from "./object-scan.ts";
import { eachRawMember, misplaced, parsedText, rawValueEnd, truncated } from "./raw-scan.ts";

/** A value of at least this many bytes is parsed in slices. */
export const longValueBytes = 32 * 1024;
/** Levels of nesting that are parsed element by element. */
const levelsMax = 4;
/** Values between two readings of the clock. */
const valuesPerLook = 64;

/**
 * As `parsedText`, for the value in `[from, to)`. The bytes must not change until the promise resolves.
 * @throws EngineError json-truncated, json-invalid
 */
export async function parsedInSlices(
  bytes: Buffer,
  from: number,
  to: number,
  levels = levelsMax,
): Promise<unknown> {
  const isLong = to - from >= longValueBytes && levels > 0;
  if (isLong && bytes[from] === byteArrayOpen) return listInSlices(bytes, from, to, levels - 1);
  if (isLong && bytes[from] === byteObjectOpen) return objectInSlices(bytes, from, to, levels - 1);
  return parsedText(bytes, from, to);
}

async function listInSlices(
  bytes: Buffer,
  from: number,
  to: number,
  levels: number,
): Promise<unknown[]> {
  const items: unknown[] = [];
  let at = skipSpace(bytes, from + 1, to);
  if (bytes[at] === byteArrayClose && at === to - 1) return items;
  for (;;) {
    const end = rawValueEnd(bytes, at, to);
    if (end < 0) throw truncated();
    const isLong = end - at >= longValueBytes;
    items.push(isLong ? await parsedInSlices(bytes, at, end, levels) : parsedText(bytes, at, end));
    if (isLong || items.length % valuesPerLook === 0) await pauseIfDue();
    at = skipSpace(bytes, end, to);
    if (bytes[at] === byteArrayClose && at === to - 1) return items;
    if (bytes[at] !== byteComma) throw misplaced(bytes, at);
    at = skipSpace(bytes, at + 1, to);
  }
}

async function objectInSlices(
  bytes: Buffer,
  from: number,
  to: number,
  levels: number,
): Promise<object> {
  const { endAt, ends } = await scanObject(bytes, from, to);
  if (endAt !== to) throw truncated();
  const spans: { key: string; from: number; to: number }[] = [];
  const keep = (key: string, begin: number, end: number) =>
    spans.push({ key, from: begin, to: end });
  eachRawMember(bytes, from, to, keep, ends);
  const members: [string, unknown][] = [];
  for (const span of spans) {
    members.push([span.key, await parsedInSlices(bytes, span.from, span.to, levels)]);
    if (members.length % valuesPerLook === 0) await pauseIfDue();
  }
  return Object.fromEntries(members);
}
