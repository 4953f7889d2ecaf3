/**
 * Linearizable reads: a database is read when it is certain that this node led after the request had come. One look at the
 * stream serves all requests that wait when it begins.
 */
import type { Database } from "../../engine/engine.ts";

/** Databases whose barrier is under way, and the next one, which has not begun. */
interface Barriers {
  current: Promise<void>;
  next: Promise<void> | undefined;
}

const underWay = new WeakMap<Database, Barriers>();

/**
 * Resolves when whatever was acknowledged before the call is visible here. At once where this is the only copy.
 * @throws EngineError not-leader, outcome-unknown
 */
export function confirmLeading(database: Database): Promise<void> | undefined {
  const { replication } = database;
  if (replication === null) return undefined;
  const known = underWay.get(database);
  // The one under way began before this call, and so tells nothing of it.
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
