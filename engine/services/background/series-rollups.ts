/**
 * Applies the policies of time series (state/keyspaces/time-series/series-policies.ts): rolls entries up into coarser series, and deletes
 * entries whose retention time has passed. Active while a collection has policies.
 *
 * A run visits the series of the collections with policies. It computes the groups that have ended since the previous
 * run, and groups that received entries since then: its progress is a time and an etag. Progress is durable, but may be
 * older than the work done: a group that is computed again has the same value. All changes are made in short
 * transactions.
 *
 * Invariants:
 * - A group is rolled up when it has ended, before any of its entries is deleted.
 * - A rolled-up group whose entries may have been deleted is not computed again: entries appended to it later are
 *   ignored.
 */
import { foldedName, lowerCased } from "../../base/case-folding.ts";
import type { Clock } from "../../base/environment.ts";
import { EngineError } from "../../base/errors.ts";
import { sliceMs } from "../../base/limits.ts";
import { nextSlice } from "../../base/scheduling/time-slices.ts";
import { periodOf } from "../../queries/time-series/series-parts.ts";
import { addPeriod, startOfGroup } from "../../queries/time-series/time-period.ts";
import {
  type CollectionPolicies,
  collectionsWithPolicies,
  isRollup,
  policiesOf,
  policyFrequencyMs,
  rollupName,
  rollupParts,
  rollupSeparator,
  type SeriesPolicy,
  type SeriesTime,
} from "../../state/keyspaces/time-series/series-policies.ts";
import type { Segment, SeriesEntry } from "../../state/keyspaces/time-series/series-segment.ts";
import {
  ownerOfSegment,
  type SegmentSource,
  segmentPrefix,
  segmentsBetween,
  timeMax,
  timeMin,
  viewedSegments,
} from "../../state/keyspaces/time-series/time-series.ts";
import type { Store } from "../../state/store/store.ts";
import { deleteFromSeries, importSeries } from "../../writes/time-series.ts";
import { ConfiguredTask } from "./configured-task.ts";
import { RollupGroup } from "./rollup-group.ts";

/** Values of a raw entry that can be rolled up: an entry has at most 32 numbers. */
const rolledWidthMax = 5;
/** Groups written, or segments deleted, in one transaction. */
const groupsPerWrite = 256;
const segmentsPerDelete = 128;
const progressPrefix = "series-policies/";

/** Up to where a collection is done. */
interface Progress {
  /** The policies that it was done with. */
  readonly rules: string;
  readonly etag: number;
  readonly time: number;
}

interface TimeRange {
  readonly from: number;
  readonly to: number;
}

/** The work of one run for one collection. */
interface CollectionRun {
  readonly policies: CollectionPolicies;
  /** Null: nothing is done yet. */
  readonly done: Progress | null;
  readonly now: number;
  /** By raw series: the range of the segments that changed since. */
  readonly changed: ReadonlyMap<string, TimeRange>;
}

export class SeriesRollups {
  readonly #database: Store;
  readonly #clock: Clock;
  readonly #task: ConfiguredTask;
  readonly #failed: (error: unknown) => void;
  /** By lower-cased collection. */
  readonly #progress = new Map<string, Progress>();
  /** The changes of segments seen by the last run; -1: there was none. */
  #seen = -1;
  #sliceEnd = 0;
  #isClosed = false;
  /** Resolves with the last requested run; never rejects. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(database: Store, clock: Clock, failed: (error: unknown) => void) {
    this.#database = database;
    this.#clock = clock;
    this.#failed = failed;
    this.#task = new ConfiguredTask(
      clock,
      () => this.run(),
      () => (this.isConfigured ? policyFrequencyMs(database.settings) / 1000 : null),
      failed,
    );
  }

  /** The database's record may have changed: reschedules the next run, if there are policies. */
  configure(): void {
    this.#task.configure();
  }

  get isConfigured(): boolean {
    return collectionsWithPolicies(this.#database.settings).length > 0;
  }

  /**
   * Performs the work that is due, after a run in progress. @returns the number of entries rolled up, and of deletions.
   * Cost: O(series) plus the work that is due
   */
  run(): Promise<number> {
    const run = this.#last.then(() => this.#run());
    this.#last = run.catch(() => undefined);
    return run;
  }

  async #run(): Promise<number> {
    if (this.#database.isFollowing) return 0;
    const { state, settings } = this.#database;
    const { segmentChanges } = state.keyspaces;
    const collections = collectionsWithPolicies(settings);
    const now = Math.floor(this.#clock.nowMicros() / 1000);
    const seen = segmentChanges.follow();
    const etag = state.committedEtag;
    const known = this.#seen < 0 ? null : segmentChanges.since(this.#seen);
    const keys = known === null ? null : new Set(known);
    this.#sliceEnd = this.#clock.monotonicMs() + sliceMs;
    let done = 0;
    let isAllComplete = true;
    for (const collection of collections) {
      const policies = policiesOf(settings, collection);
      if (policies === null || this.#isClosed) continue;
      const rules = JSON.stringify(policies);
      const kept = this.#progressOf(collection);
      const before = kept?.rules === rules ? kept : null;
      const changed = await this.#changedSince(before?.etag ?? 0, before === null ? null : keys);
      const run = { policies, done: before, now, changed };
      const { count, isComplete } = await this.#runCollection(collection, run);
      done += count;
      if (this.#isClosed) return done;
      isAllComplete &&= isComplete;
      if (!isComplete) continue;
      const progress = { rules, etag, time: now };
      await this.#keepProgress(collection, progress, before === null || count > 0);
    }
    // Otherwise the etags identify the work since older progress.
    this.#seen = isAllComplete ? seen : -1;
    return done;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#task.close();
  }

  #progressOf(collection: string): Progress | null {
    const lower = foldedName(collection);
    const { values } = this.#database.state.keyspaces;
    const stored = values.get(progressPrefix + lower) as Progress | undefined;
    return this.#progress.get(lower) ?? stored ?? null;
  }

  /** The write is awaited only if entries were changed: resuming from older progress repeats no change. */
  async #keepProgress(collection: string, progress: Progress, isDurable: boolean): Promise<void> {
    const lower = foldedName(collection);
    this.#progress.set(lower, progress);
    if (!isDurable) return;
    await this.#database.write((transaction) =>
      transaction.putEntry(transaction.keyspaces.values, progressPrefix + lower, progress),
    );
  }

  /**
   * Returns the ranges of raw series that changed. `keys`: keys of the changed segments; null: compares the etags of
   * all segments.
   */
  async #changedSince(
    etag: number,
    keys: ReadonlySet<string> | null,
  ): Promise<Map<string, TimeRange>> {
    const { timeSeriesSegments } = this.#database.state.keyspaces;
    const changed = new Map<string, TimeRange>();
    const add = (key: string, { first, last }: Segment) => {
      const { documentId, name } = ownerOfSegment(key);
      if (isRollup(name)) return;
      const prefix = segmentPrefix(documentId, name);
      const known = changed.get(prefix);
      changed.set(prefix, {
        from: Math.min(first, known?.from ?? first),
        to: Math.max(last, known?.to ?? last),
      });
    };
    if (keys !== null) {
      for (const key of keys) {
        const segment = timeSeriesSegments.get(key);
        if (segment !== undefined) add(key, segment);
      }
      return changed;
    }
    const cursor = timeSeriesSegments.view().cursor({ lower: "" });
    while (cursor.next() && !this.#isClosed) {
      if (cursor.value.etag > etag) add(cursor.key, cursor.value.value);
      await this.#pause();
    }
    return changed;
  }

  /** Returns false if a series failed; the collection is then visited again completely. */
  async #runCollection(
    collection: string,
    run: CollectionRun,
  ): Promise<{ readonly count: number; readonly isComplete: boolean }> {
    const { state } = this.#database;
    const { documents } = state;
    const { collections, timeSeries } = state.keyspaces;
    const lower = foldedName(collection);
    const cursor = timeSeries.view().cursor({ lower: "" });
    let owner = "";
    let isOwn = false;
    /** The raw names of the document's series that were visited. */
    const visited = new Set<string>();
    let count = 0;
    let isComplete = true;
    while (cursor.next() && !this.#isClosed) {
      const end = cursor.key.indexOf("\u0000");
      const documentId = cursor.key.slice(0, end);
      if (documentId !== owner) {
        owner = documentId;
        visited.clear();
        const number = documents.lookup(documentId);
        isOwn =
          number >= 0 &&
          documents.etagOf(number) !== 0 &&
          foldedName(collections.nameOf(documents.collectionOf(number))) === lower;
      }
      await this.#pause();
      if (!isOwn) continue;
      const { name } = cursor.value.value;
      const rawName = name.split(rollupSeparator, 1)[0] as string; // there is a first part
      if (visited.has(lowerCased(rawName))) continue;
      visited.add(lowerCased(rawName));
      try {
        count += await this.#runSeries(documentId, rawName, run);
      } catch (error) {
        // A failing series does not block the others; its document may have been deleted in the meantime.
        if (!(error instanceof EngineError)) throw error;
        if (error.code === "document-missing") continue;
        isComplete = false;
        this.#failed(error);
      }
    }
    return { count, isComplete };
  }

  async #runSeries(documentId: string, rawName: string, run: CollectionRun): Promise<number> {
    const { policies, rawRetention } = run.policies;
    let source = { name: rawName, retention: rawRetention };
    let changed = run.changed.get(segmentPrefix(documentId, rawName)) ?? null;
    let done = 0;
    for (const policy of policies) {
      const name = rollupName(rawName, policy);
      const rolled = await this.#rollUp(documentId, source, { ...policy, name }, changed, run);
      if (rolled === null) return done;
      done += rolled + (await this.#retire(documentId, source, run.now));
      // After a crash, the next coarser rollup may be missing although this rollup exists.
      const period = periodOf(policy.aggregation);
      changed = changed && { from: startOfGroup(changed.from, period), to: changed.to };
      source = { name, retention: policy.retention };
    }
    return done + (await this.#retire(documentId, source, run.now));
  }

  /**
   * Rolls up the groups of a policy that have ended since the last run, and groups with changes.
   * @returns the number of entries written; null if its entries have too many values
   */
  async #rollUp(
    documentId: string,
    source: { readonly name: string; readonly retention: SeriesTime },
    target: SeriesPolicy,
    changed: TimeRange | null,
    { done, now }: CollectionRun,
  ): Promise<number | null> {
    const period = periodOf(target.aggregation);
    const end = startOfGroup(now, period) - 1;
    const ended = { from: done === null ? timeMin : startOfGroup(done.time, period), to: end };
    const ranges = [ended];
    if (changed !== null && done !== null) {
      const from = startOfGroup(changed.from, period);
      const to = Math.min(end, addPeriod(startOfGroup(changed.to, period), period) - 1);
      if (from < ended.from) ranges.unshift({ from, to: Math.min(to, ended.from - 1) });
    }
    const lostBefore = source.retention === null ? timeMin : timeBefore(now, source.retention);
    let count = 0;
    for (const range of ranges) {
      const written = await this.#rollUpRange(documentId, source.name, target, range, lostBefore);
      if (written === null) return null;
      count += written;
    }
    return count;
  }

  async #rollUpRange(
    documentId: string,
    sourceName: string,
    { name, aggregation }: SeriesPolicy,
    { from, to }: TimeRange,
    lostBefore: number,
  ): Promise<number | null> {
    if (from > to) return 0;
    const period = periodOf(aggregation);
    const { timeSeriesSegments } = this.#database.state.keyspaces;
    const segments = viewedSegments(timeSeriesSegments);
    const known = new ExistingRollups(segmentPrefix(documentId, name), segments, from);
    const isFromRollup = isRollup(sourceName);
    const entries: SeriesEntry[] = [];
    let group: RollupGroup | null = null;
    let count = 0;
    const finish = async (isLast: boolean) => {
      if (group !== null) {
        const values = group.values();
        const before = known.at(group.start);
        const isLost = group.start < lostBefore && before !== null;
        if (!isLost && !isSame(before, values)) {
          entries.push({ time: group.start, values, tag: null });
        }
      }
      if (entries.length < (isLast ? 1 : groupsPerWrite)) return;
      const some = entries.splice(0);
      count += some.length;
      await this.#database.write((transaction) => {
        importSeries(transaction, documentId, name, some);
      });
    };
    for (const [, segment] of segmentsBetween(
      segments,
      segmentPrefix(documentId, sourceName),
      from,
      to,
    )) {
      if (this.#isClosed) return count;
      const width = isFromRollup ? segment.width / rollupParts.length : segment.width;
      if (width > rolledWidthMax) {
        this.#failed(
          new EngineError(
            "not-supported",
            `Time series '${sourceName}' of document '${documentId}' is not rolled up, nor are its entries deleted: they have ${width} values, and ${rolledWidthMax} is the most.`,
          ),
        );
        return null;
      }
      const unpacked = segment.unpack();
      for (let i = unpacked.countBefore(from); i < unpacked.count; i++) {
        const time = unpacked.times[i] as number; // i < count
        if (time > to) break;
        if (group === null || time >= group.end) {
          await finish(false);
          const start: number = startOfGroup(time, period);
          group = new RollupGroup(start, addPeriod(start, period));
        }
        const [begin, end] = [
          unpacked.valueStarts[i] as number,
          unpacked.valueStarts[i + 1] as number,
        ];
        if (isFromRollup) group.addRollup(unpacked.values, begin, end);
        else group.add(unpacked.values, begin, end);
      }
      await this.#pause();
    }
    await finish(true);
    return count;
  }

  /** Deletes the entries of a series whose retention time has passed. @returns the number of deletions */
  async #retire(
    documentId: string,
    { name, retention }: { readonly name: string; readonly retention: SeriesTime },
    now: number,
  ): Promise<number> {
    if (retention === null) return 0;
    const to = timeBefore(now, retention) - 1;
    const prefix = segmentPrefix(documentId, name);
    for (let done = 0; ; done++) {
      if (this.#isClosed) return done;
      const segments = viewedSegments(this.#database.state.keyspaces.timeSeriesSegments);
      let count = 0;
      let last = timeMin - 1;
      for (const [, segment] of segmentsBetween(segments, prefix, timeMin, to)) {
        if (segment.first > to) break;
        last = Math.min(to, segment.last);
        if (++count === segmentsPerDelete) break;
      }
      if (count === 0) return done;
      await this.#database.write(
        (transaction) => deleteFromSeries(transaction, documentId, name, timeMin, last),
        { isDeletion: true },
      );
      await this.#pause();
    }
  }

  async #pause(): Promise<void> {
    if (this.#clock.monotonicMs() < this.#sliceEnd) return;
    await nextSlice();
    this.#sliceEnd = this.#clock.monotonicMs() + sliceMs;
  }
}

/** The existing entries of a rollup, read in time order. */
class ExistingRollups {
  readonly #segments: Iterator<[string, Segment]>;
  #entries: readonly SeriesEntry[] = [];
  #at = 0;

  /** `from`: the time of the first read, or earlier. */
  constructor(prefix: string, segments: SegmentSource, from: number) {
    this.#segments = segmentsBetween(segments, prefix, from, timeMax);
  }

  /** Returns the values at a time, or null. */
  at(time: number): readonly number[] | null {
    for (;;) {
      for (; this.#at < this.#entries.length; this.#at++) {
        const entry = this.#entries[this.#at] as SeriesEntry; // at < length
        if (entry.time === time) return entry.values;
        if (entry.time > time) return null;
      }
      const next = this.#segments.next();
      if (next.done === true) return null;
      const [, segment] = next.value;
      this.#entries = segment.last < time ? [] : segment.toEntries();
      this.#at = 0;
    }
  }
}

function isSame(left: readonly number[] | null, right: readonly number[]): boolean {
  return left !== null && left.length === right.length && left.every((one, i) => one === right[i]);
}

/** Returns the time so long before `now`, not before the first possible one. */
function timeBefore(now: number, length: NonNullable<SeriesTime>): number {
  try {
    return addPeriod(now, periodOf(length), -1);
  } catch (error) {
    if (error instanceof EngineError && error.code === "out-of-range") return timeMin;
    throw error;
  }
}
