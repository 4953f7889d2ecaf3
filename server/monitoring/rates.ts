/** Rates of growing counters between calls, and counts of changes while a client watches. */
import type { Change, Database } from "../../engine/engine.ts";

/** Monotonic counters by name. */
type Counts<Name extends string> = Readonly<Record<Name, number>>;

/** Stores the last counts of each subject. */
export class Rates<Name extends string> {
  readonly #before = new Map<string, { readonly counts: Counts<Name>; readonly atMs: number }>();
  readonly #nowMs: () => number;

  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;
  }

  /** Returns rates per second since the last call for this subject; 0 at the first call, and where counters were reset. */
  look(subject: string, counts: Counts<Name>): Record<Name, number> {
    const atMs = this.#nowMs();
    const before = this.#before.get(subject);
    this.#before.set(subject, { counts, atMs });
    const seconds = before === undefined ? 1 : Math.max(0.001, (atMs - before.atMs) / 1000);
    const rates = Object.entries(counts).map(([name, count]) => {
      const grown = (count as number) - (before ?? { counts }).counts[name as Name];
      return [name, Math.max(0, grown) / seconds];
    });
    return Object.fromEntries(rates) as Record<Name, number>;
  }
}

export type ChangedKinds = Counts<Change["kind"]>;

interface Followed {
  readonly counts: Record<Change["kind"], number>;
  readonly stop: () => void;
}

/** Counts the changes of followed databases by kind. */
export class ChangeCounts {
  readonly #followed = new Map<Database, Followed>();

  /** Stops following databases that are not in `databases`. */
  follow(databases: readonly Database[]): void {
    const wanted = new Set(databases);
    for (const [database, { stop }] of this.#followed) {
      if (wanted.has(database)) continue;
      stop();
      this.#followed.delete(database);
    }
    for (const database of wanted) {
      if (this.#followed.has(database)) continue;
      const counts = { document: 0, counter: 0, "time-series": 0 };
      const stop = database.changes.listen(({ kind }) => {
        counts[kind]++;
      });
      this.#followed.set(database, { counts, stop });
    }
  }

  of(database: Database): ChangedKinds {
    return { ...(this.#followed.get(database)?.counts ?? noChanges) };
  }

  end(): void {
    this.follow([]);
  }
}

const noChanges: ChangedKinds = { document: 0, counter: 0, "time-series": 0 };
