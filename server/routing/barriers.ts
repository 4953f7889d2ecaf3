/**
 * Linearizable reads: a database is read only once it is certain that this node led it after the request arrived. One read
 * of the stream serves all requests that wait when it begins.
 */
import type { Database } from "../../engine/engine.ts";

/** The barrier in progress of a database, and the next one, which has not begun. */
interface Barriers {
  current: Promise<void>;
  next: Promise<void> | undefined;
}

const underWay = new WeakMap<Database, Barriers>();

/**
 * Resolves when every write acknowledged before the call is visible here. Returns undefined if this is the only copy.
 * @throws EngineError not-leader, outcome-unknown
 */
export function confirmLeading(database: Database): Promise<void> | undefined {
  const { replication } = database;
  if (replication === null) return undefined;
  const known = underWay.get(database);
  // The barrier in progress began before this call, so it does not cover it.
  if (known !== undefined) {
    const begin = () => start(database, replication.confirm());
    known.next ??= known.current.then(begin, begin);
    return known.next;
  }
  return start(database, replication.confirm());
}

function start(database: Database, current: Promise<void>): Promise<void> {
  const barriers: Barriers = { current, next: undefined };
  underWay.set(database, barriers);
  const ended = () => {
    if (barriers.next === undefined) underWay.delete(database);
  };
  current.then(ended, ended);
  return current;
}
