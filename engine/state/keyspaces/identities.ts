/**
 * Identities: named counters that generate document ids (`users|` returns `users/1`, `users/2`, ...). Keys are
 * lower-cased names ending in `|`; the value is the last number used, which may be negative.
 */
import { lowerCased } from "../../base/case-folding.ts";
import { recordKinds } from "../../base/record.ts";
import { EntryKeyspace } from "./entry-keyspace.ts";
import type { DeadRecordListener } from "./keyspace.ts";

export function makeIdentities(dead: DeadRecordListener): EntryKeyspace<number> {
  return new EntryKeyspace<number>("identities", recordKinds.identity, dead);
}

/** `Users` and `users|` name the same identity. */
export function identityKey(name: string): string {
  const lower = lowerCased(name);
  return lower.endsWith("|") ? lower : `${lower}|`;
}
