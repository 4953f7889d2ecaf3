/**
 * Subscription operations of a transaction: define, change and remove tasks, and advance their positions.
 *
 * Invariants:
 * - Names are unique regardless of case, and so are ids.
 * - A position is advanced only by an acknowledgment of the current definition, and never moves back.
 */

import { EngineError } from "../base/errors.ts";
import { subscriptionCountMax, subscriptionQueryLengthMax } from "../base/limits.ts";
import { checkSubscriptionName } from "../base/names.ts";
import { parseChangeVector } from "../state/documents/change-vector.ts";
import {
  type ArchivedBehavior,
  type SubscriptionTask,
  subscriptionKey,
} from "../state/keyspaces/subscriptions.ts";
import type { Transaction } from "../state/store/transaction.ts";
import { etagOfPosition, newestEtag } from "./subscription-position.ts";

/** The settings of a request; undefined if omitted. */
export interface SubscriptionSettings {
  readonly name?: string | undefined;
  readonly query?: string | undefined;
  /** A change vector, or one of `BeginningOfTime`, `LastDocument` and `DoNotChange`; null is `BeginningOfTime`. */
  readonly changeVector?: string | null | undefined;
  readonly isDisabled?: boolean | undefined;
  readonly mentorNode?: string | undefined;
  readonly isPinnedToMentor?: boolean | undefined;
  readonly archivedBehavior?: ArchivedBehavior | undefined;
}

/** Checks the text of a query. @returns whether it is over revisions @throws EngineError if it is invalid */
type QueryCheck = (query: string) => boolean;

/** Selects a task: by id if given, else by name. */
export interface SubscriptionChoice {
  readonly id?: number | undefined;
  readonly name?: string | undefined;
}

/**
 * Defines a task, or redefines the one with `id` if that exists.
 * @param index index of this command: the id of a new task, and its default name
 * @throws EngineError raft-apply, subscription-name-invalid, too-large, and the errors of `check`
 */
export function putSubscription(
  transaction: Transaction,
  settings: SubscriptionSettings,
  check: QueryCheck,
  index: number,
  id?: number,
): SubscriptionTask {
  const known = id === undefined ? undefined : withId(transaction, id);
  const { changeVector = null, query = "" } = settings;
  const hasRevisions = check(query);
  if (changeVector === "DoNotChange" && known === undefined) throw badChangeVector(changeVector);
  const task: SubscriptionTask = {
    id: id ?? freeId(transaction, index),
    name: settings.name || String(index),
    query,
    changeVector: positionOf(transaction, hasRevisions, changeVector, known),
    isDisabled: settings.isDisabled ?? false,
    mentorNode: settings.mentorNode ?? null,
    isPinnedToMentor: settings.isPinnedToMentor ?? false,
    archivedBehavior: settings.archivedBehavior ?? "ExcludeArchived",
    index,
    acknowledgedAt: null,
    connectedAt: null,
  };
  store(transaction, task, known);
  return task;
}

/**
 * Changes the given settings. As in RavenDB 7.2.7, a change clears the times of the last acknowledgment and connection, and
 * `archivedBehavior` is ignored. @returns the task, and whether it changed
 * @throws EngineError as `putSubscription`, subscription-missing
 */
export function updateSubscription(
  transaction: Transaction,
  choice: SubscriptionChoice,
  settings: SubscriptionSettings,
  check: QueryCheck,
  index: number,
): { readonly task: SubscriptionTask; readonly isChanged: boolean } {
  const known = requireSubscription(transaction, choice);
  const { changeVector, query = known.query } = settings;
  const hasRevisions = check(query);
  const task: SubscriptionTask = {
    ...known,
    name: settings.name || known.name,
    query,
    changeVector:
      changeVector === undefined
        ? known.changeVector
        : positionOf(transaction, hasRevisions, changeVector, known),
    isDisabled: settings.isDisabled ?? known.isDisabled,
    mentorNode: settings.mentorNode ?? known.mentorNode,
    isPinnedToMentor: settings.isPinnedToMentor ?? known.isPinnedToMentor,
    index,
    acknowledgedAt: null,
    connectedAt: null,
  };
  const isChanged =
    changeVector !== undefined ||
    task.name !== known.name ||
    task.query !== known.query ||
    task.isDisabled !== known.isDisabled ||
    task.mentorNode !== known.mentorNode ||
    task.isPinnedToMentor !== known.isPinnedToMentor;
  if (!isChanged) return { task: known, isChanged };
  store(transaction, task, known);
  return { task, isChanged };
}

/** Disables or enables a task. @throws EngineError subscription-missing */
export function setSubscriptionDisabled(
  transaction: Transaction,
  choice: SubscriptionChoice,
  isDisabled: boolean,
): SubscriptionTask {
  const task = { ...requireSubscription(transaction, choice), isDisabled };
  put(transaction, task);
  return task;
}

/** @returns false if no task has this name. */
export function deleteSubscription(transaction: Transaction, name: string): boolean {
  const { subscriptions } = transaction.keyspaces;
  const key = subscriptionKey(name);
  if (transaction.entry(subscriptions, key) === undefined) return false;
  transaction.putEntry(subscriptions, key, undefined);
  return true;
}

/**
 * Advances a position to `etag`. `worker` is the task as its worker knows it.
 * @param times timestamps to update: of an acknowledgment, of a connection
 * @throws EngineError subscription-missing, subscription-changed
 */
export function moveSubscription(
  transaction: Transaction,
  worker: Pick<SubscriptionTask, "id" | "name" | "index">,
  etag: number,
  times: Partial<Pick<SubscriptionTask, "acknowledgedAt" | "connectedAt">>,
): void {
  const { state } = transaction;
  const key = subscriptionKey(worker.name);
  const known = transaction.entry(transaction.keyspaces.subscriptions, key);
  if (known === undefined || known.id !== worker.id) {
    throw new EngineError(
      "subscription-missing",
      `The subscription ${worker.name} had been deleted`,
    );
  }
  if (known.index !== worker.index) {
    throw new EngineError(
      "subscription-changed",
      `The subscription ${worker.name} was modified, connection must be restarted`,
    );
  }
  const moves = etag > etagOfPosition(state, known.changeVector);
  const changeVector = moves ? state.changeVectorAt(etag) : known.changeVector;
  put(transaction, { ...known, ...times, changeVector });
}

/** Returns the task as this transaction sees it. @throws EngineError subscription-missing */
export function requireSubscription(
  transaction: Transaction,
  { id, name = "" }: SubscriptionChoice,
): SubscriptionTask {
  const { subscriptions } = transaction.keyspaces;
  const task =
    id === undefined
      ? transaction.entry(subscriptions, subscriptionKey(name))
      : withId(transaction, id);
  if (task === undefined) throw subscriptionMissing({ id, name });
  return task;
}

export function subscriptionMissing({ id, name = "" }: SubscriptionChoice): EngineError {
  const which = id === undefined ? `name '${name}'` : `id '${id}'`;
  return new EngineError(
    "subscription-missing",
    `Subscription with ${which} was not found in server store`,
  );
}

function withId(transaction: Transaction, id: number): SubscriptionTask | undefined {
  for (const [, task] of transaction.entriesWithPrefix(transaction.keyspaces.subscriptions, "")) {
    if (task.id === id) return task;
  }
  return undefined;
}

/** `wanted`, or, if a caller chose that id for another task, one above all ids. */
function freeId(transaction: Transaction, wanted: number): number {
  const all = transaction.entriesWithPrefix(transaction.keyspaces.subscriptions, "");
  const ids = all.map(([, { id }]) => id);
  return ids.includes(wanted) ? Math.max(...ids) + 1 : wanted;
}

/** Stores `task`, replacing `known` if given. @throws EngineError */
function store(
  transaction: Transaction,
  task: SubscriptionTask,
  known: SubscriptionTask | undefined,
): void {
  const { subscriptions } = transaction.keyspaces;
  checkSubscriptionName(task.name);
  if (task.query.length > subscriptionQueryLengthMax) {
    throw new EngineError(
      "too-large",
      `The query of a subscription has at most ${subscriptionQueryLengthMax} characters.`,
    );
  }
  const key = subscriptionKey(task.name);
  const other = transaction.entry(subscriptions, key);
  if (other !== undefined && other.id !== task.id) {
    const path = `values/${transaction.state.name}/subscriptions/${task.name}`;
    throw new EngineError(
      "raft-apply",
      `A subscription could not be modified because the name '${path}' is already in use in a subscription with different Id.`,
    );
  }
  if (known === undefined) {
    const all = transaction.entriesWithPrefix(subscriptions, "");
    if (all.length >= subscriptionCountMax) {
      throw new EngineError(
        "too-large",
        `A database has at most ${subscriptionCountMax} subscriptions.`,
      );
    }
  } else if (subscriptionKey(known.name) !== key) {
    transaction.putEntry(subscriptions, subscriptionKey(known.name), undefined);
  }
  put(transaction, task);
}

function put(transaction: Transaction, task: SubscriptionTask): void {
  transaction.putEntry(transaction.keyspaces.subscriptions, subscriptionKey(task.name), task);
}

/** @throws EngineError raft-apply when it is neither a change vector nor one of the words */
function positionOf(
  { state }: Transaction,
  hasRevisions: boolean,
  changeVector: string | null,
  known: SubscriptionTask | undefined,
): string | null {
  switch (changeVector) {
    case null:
    case "BeginningOfTime":
      return null;
    case "DoNotChange":
      return known?.changeVector ?? null;
    case "LastDocument":
      return state.changeVectorAt(newestEtag(state, hasRevisions));
    default:
      try {
        parseChangeVector(changeVector);
      } catch {
        throw badChangeVector(changeVector);
      }
      return changeVector;
  }
}

function badChangeVector(changeVector: string): EngineError {
  return new EngineError(
    "raft-apply",
    `Received change vector ${changeVector} is not in a valid format, therefore request cannot be processed.`,
  );
}
