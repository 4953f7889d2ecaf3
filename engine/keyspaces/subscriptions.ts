/**
 * Subscription tasks by lower-cased name: what is to be sent, and up to where it was acknowledged. Who sends it is the
 * business of subscriptions/.
 */
import { recordKinds } from "../log/record.ts";
import { EntryKeyspace } from "./entry-keyspace.ts";
import type { DeadRecordListener } from "./keyspace.ts";

export const archivedBehaviors = ["ExcludeArchived", "IncludeArchived", "ArchivedOnly"] as const;
/** What a subscription does with archived documents; kept for clients, there is no archive. */
export type ArchivedBehavior = (typeof archivedBehaviors)[number];

/** One task. Times are microseconds since 1970; null: never since its definition was changed last. */
export interface SubscriptionTask {
  /** Unique in the database; stays when the name changes. */
  readonly id: number;
  /** As it was given. */
  readonly name: string;
  readonly query: string;
  /** All that is older or equal was acknowledged, or is not wanted; null: begin with the first document. */
  readonly changeVector: string | null;
  readonly isDisabled: boolean;
  readonly mentorNode: string | null;
  readonly isPinnedToMentor: boolean;
  readonly archivedBehavior: ArchivedBehavior;
  /** Of the command that defined it last: a worker of another definition may not acknowledge. */
  readonly index: number;
  readonly acknowledgedAt: number | null;
  readonly connectedAt: number | null;
}

export function makeSubscriptions(dead: DeadRecordListener): EntryKeyspace<SubscriptionTask> {
  return new EntryKeyspace<SubscriptionTask>("subscriptions", recordKinds.subscription, dead);
}

export function subscriptionKey(name: string): string {
  return name.toLowerCase();
}
