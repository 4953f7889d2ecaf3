/**
 * Compare-exchange values: a key, a JSON value and an index that grows with every change, for atomic compare-and-set by
 * version.
 */
import { lowerCased } from "../../base/case-folding.ts";
import { recordKinds } from "../../base/record.ts";
import { EntryKeyspace } from "./entry-keyspace.ts";
import type { DeadRecordListener } from "./keyspace.ts";

export interface CompareExchangeValue {
  /** The key in its original case. */
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
  return lowerCased(key);
}
