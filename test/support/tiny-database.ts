/**
 * A log with a minimal owner on a simulated disk, and the history of everything submitted to it, against which the
 * state recovered after a crash is checked.
 */
import { expect } from "vitest";
import type { FileSystem } from "../../engine/base/environment.ts";
import type { EngineError } from "../../engine/base/errors.ts";
import type { CompactionOptions } from "../../engine/storage/log/compaction.ts";
import { type FileLog, openLog, type ReplayReport } from "../../engine/storage/log/file-log.ts";
import { ImagePool } from "../../engine/storage/segments/image-pool.ts";
import { SegmentCache } from "../../engine/storage/segments/segment-cache.ts";
import { SeededRandom } from "./random.ts";
import { SimulatedClock } from "./simulated-clock.ts";
import { readRecord, type TinyChange, TinyOwner } from "./tiny-owner.ts";

export const tinyFolder = "/data/tiny";

/** The submitted transactions, in order, and how many of them were acknowledged. */
export class TinyHistory {
  /** The states after 0, 1, 2, ... transactions. */
  readonly states: string[] = ["{}"];
  acknowledged = 0;
  #newest: Record<string, string> = {};

  submit(changes: readonly TinyChange[]): void {
    const next = { ...this.#newest };
    for (const [key, value] of changes) {
      if (value === undefined) delete next[key];
      else next[key] = value;
    }
    this.#newest = next;
    this.states.push(textOf(next));
  }

  /** An independent copy. */
  copy(): TinyHistory {
    const copy = new TinyHistory();
    copy.states.push(...this.states.slice(1));
    copy.acknowledged = this.acknowledged;
    copy.forget(copy.states.length - 1);
    return copy;
  }

  /** Transactions after the first `count` are known to be lost. */
  forget(count: number): void {
    this.states.length = count + 1;
    this.#newest = JSON.parse(this.states.at(-1) as string) as Record<string, string>;
  }

  /**
   * Returns the number of transactions that led to this state, at least those acknowledged. Fails
   * if no number matches.
   */
  find(state: string): number {
    const found = this.states.lastIndexOf(state);
    if (found >= this.acknowledged) return found;
    expect.fail(
      `recovered ${shortened(state)}, which is no state after ${this.acknowledged} to ` +
        `${this.states.length - 1} of: ${this.states.map(shortened).join("\n")}`,
    );
  }
}

function shortened(state: string): string {
  return state.replaceAll(/"([^"]{12})[^"]*"/g, '"$1..."');
}

function textOf(state: Record<string, string>): string {
  return JSON.stringify(Object.fromEntries(Object.entries(state).sort()));
}

interface TinyOptions {
  readonly segmentBytesMin?: number;
  readonly segmentBytesMax?: number;
  readonly cacheBytes?: number;
  readonly diskReserveBytes?: number;
  readonly mustExist?: boolean;
  /** Options of automatic compaction. */
  readonly compaction?: CompactionOptions;
}

export class TinyDatabase {
  readonly log: FileLog;
  readonly owner: TinyOwner;
  readonly clock: SimulatedClock;
  readonly report: ReplayReport;
  readonly history: TinyHistory;

  private constructor(
    log: FileLog,
    owner: TinyOwner,
    clock: SimulatedClock,
    report: ReplayReport,
    history: TinyHistory,
  ) {
    this.log = log;
    this.owner = owner;
    this.clock = clock;
    this.report = report;
    this.history = history;
  }

  static async open(
    files: FileSystem & { readonly callCount: number },
    history = new TinyHistory(),
    options: TinyOptions = {},
  ): Promise<TinyDatabase> {
    const clock = new SimulatedClock();
    const owner = new TinyOwner();
    const random = new SeededRandom(4711 + files.callCount);
    let before = 0;
    const log = await openLog({
      segmentBytesMin: 1024,
      segmentBytesMax: 2048,
      oversizedBytesMin: 1,
      diskReserveBytes: 0,
      ...options,
      files,
      folder: tinyFolder,
      clock,
      random: (count) => random.bytes(count),
      owner,
      cache: new SegmentCache(options.cacheBytes ?? 4096, new ImagePool(true)),
      listener: {
        durable(count) {
          owner.durable(count);
          history.acknowledged = before + count;
        },
        lost(count, error) {
          owner.lost(count);
          // Records rejected by a full disk are not in the log; records of a stopped log may be.
          if ((error as EngineError).code === "disk-full") history.forget(before + count);
        },
        stopped: () => undefined,
      },
    });
    try {
      owner.log = log;
      const sections = log.snapshot?.sections;
      if (sections !== undefined) owner.restore(sections);
      const report = await log.replay();
      before = history.find(textOf(owner.state()));
      history.forget(before);
      history.acknowledged = before;
      return new TinyDatabase(log, owner, clock, report, history);
    } catch (error) {
      await log.close().catch(() => undefined);
      throw error;
    }
  }

  /** Writes one transaction. Not durable when it returns. */
  write(changes: readonly TinyChange[], evenIfFull = false): void {
    this.owner.write(changes, evenIfFull);
    this.history.submit(changes);
  }

  put(key: string, value: string): void {
    this.write([[key, value]]);
  }

  remove(key: string): void {
    this.write([[key, undefined]]);
  }

  async flush(): Promise<void> {
    await this.log.flush();
  }

  async snapshot(): Promise<void> {
    await this.log.writeSnapshot(this.owner.sections());
  }

  async close(): Promise<void> {
    await this.log.close();
  }

  async closeWithSnapshot(): Promise<void> {
    await this.flush();
    await this.log.close(() => this.owner.sections());
  }

  get state(): string {
    return textOf(this.owner.state());
  }

  /** Checks that every entry is at its position, and that the byte counters are right. */
  async check(): Promise<void> {
    for (const [key, entry] of this.owner.entries) {
      const bytes = await this.log.read(entry.position, entry.length);
      const record = readRecord(bytes, 0);
      expect(record).toEqual({ key, value: entry.value, isDeletion: false, etag: entry.etag });
    }
    const metrics = this.log.metrics();
    expect(metrics.recordBytes - metrics.deadBytes).toBe(this.owner.liveBytes());
  }
}
