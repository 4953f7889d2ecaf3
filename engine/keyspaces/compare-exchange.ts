/**
 * Compare-exchange values: a key, a JSON value and an index that grows with every change, for atomic
 * "replace it only if it is still that version".
 */
import { EngineError } from "../errors.ts";
import { nameBytesMax } from "../limits.ts";
import { recordKinds } from "../log/record.ts";
import { EntryKeyspace } from "./entry-keyspace.ts";
import type { DeadRecordListener } from "./keyspace.ts";

export interface CompareExchangeValue {
  /** The key as it was spelt. */
  readonly key: string;
  readonly index: number;
  /** JSON text of `{"Object":…,"@metadata"?:…}`. */
  readonly text: string;
}

export function makeCompareExchange(dead: DeadRecordListener): EntryKeyspace<CompareExchangeValue> {
  return new EntryKeyspace<CompareExchangeValue>(
    "compare-exchange",
    recordKinds.compareExchange,
    dead,
  );
}

export function compareExchangeKey(key: string): string {
  return key.toLowerCase();
}

/** @throws EngineError compare-exchange-key-too-big over `nameBytesMax` bytes. */
export function checkCompareExchangeKey(key: string): void {
  const bytes = Buffer.byteLength(key);
  if (bytes > nameBytesMax) {
    throw new EngineError(
      "compare-exchange-key-too-big",
      `Compare exchange key cannot exceed ${nameBytesMax} bytes, but the key was ${bytes} bytes. The invalid key is '${key}'.`,
    );
  }
}
