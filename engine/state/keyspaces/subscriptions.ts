/**
 * Subscription tasks by lower-cased name: the query and settings of each, and its acknowledged position. Sending is in
 * subscriptions/.
 */
import { lowerCased } from "../../base/case-folding.ts";
import { recordKinds } from "../../base/record.ts";
import { EntryKeyspace } from "./entry-keyspace.ts";
import type { DeadRecordListener } from "./keyspace.ts";

export const archivedBehaviors = ["ExcludeArchived", "IncludeArchived", "ArchivedOnly"] as const;
/** Handling of archived documents; kept for clients, as there is no archive. */
export type ArchivedBehavior = (typeof archivedBehaviors)[number];

/** One task. Times are microseconds since 1970; null: not since its definition last changed. */
export interface SubscriptionTask {
  /** Unique in the database; stays when the name changes. */
  readonly id: number;
  /** In its original case. */
  readonly name: string;
  readonly query: string;
  /** Everything up to and including it was acknowledged, or is not wanted; null: start with the first document. */
  readonly changeVector: string | null;
  readonly isDisabled: boolean;
  readonly mentorNode: string | null;
  readonly isPinnedToMentor: boolean;
  readonly archivedBehavior: ArchivedBehavior;
  /** Index of the command that last defined it: a worker connected under another definition may not acknowledge. */
  readonly index: number;
  readonly acknowledgedAt: number | null;
  readonly connectedAt: number | null;
}

export function makeSubscriptions(dead: DeadRecordListener): EntryKeyspace<SubscriptionTask> {
  return new EntryKeyspace<SubscriptionTask>("subscriptions", recordKinds.subscription, dead);
}

export function subscriptionKey(name: string): string {
  return lowerCased(name);
}
