/**
 * The policy of compaction: when it starts, which segments are worth copying, how fast it runs, and how much writers
 * are throttled when it cannot keep up. A pure function of numbers.
 *
 * The space amplification of a log is to stay below `spareShareMax` of its live bytes. Unused space, index snapshots
 * and outputs that coexist with their sources count toward that; the rest may be dead, but at most `deadShareMax`, and
 * at least `deadShareMin`, as otherwise little would be done but copying.
 *
 *   dead bytes  0            target            target + slack          target + 9 slacks
 *               |  unhurried   |  accelerating       |  writers throttled,    |  maximum throttling
 *                                                    |  increasingly          |
 *
 * Invariants:
 * - Up to the target, a segment is copied when half of it is dead, after a delay in which more may die.
 * - Beyond it, segments that are copied are at least `pressedShare` dead. As the most dead segment is copied first, and
 *   more than `deadShareMin` of the log is dead, at most five bytes are copied per byte reclaimed; usually it is one.
 */

/** Space of a log in bytes, on the device or in memory. */
interface LogSpace {
  readonly liveBytes: number;
  /** Dead bytes in segments that can be compacted, without deletions that must be kept. */
  readonly deadBytes: number;
  /** Bytes in segments without live records, which need no copying. */
  readonly emptyBytes: number;
  /** All bytes: segments, including segments retained for readers, and index snapshots. */
  readonly totalBytes: number;
}

/** The present settings of compaction. */
export interface CompactionPace {
  /** Milliseconds until it starts; null: not now. */
  readonly delayMs: number | null;
  /**
   * Dead share (0 to 1) from which on a segment is copied; above 1, only segments that need no copying are compacted.
   */
  readonly worthShare: number;
  /** The same for a compaction that started immediately: less urgent segments are left to a delayed compaction. */
  readonly urgentShare: number;
  /** Live bytes that are copied in one run: until it ends they use twice their space. */
  readonly runBytesMax: number;
  /** Factor on its usual speed. */
  readonly speedUp: number;
  /** Minimum share of the process's time, see `Throttle.timeShare`. */
  readonly timeShare: number;
  /** How much writers are throttled while it runs: from 0, not at all, to `brakeMax`. */
  readonly brake: number;
}

const spareShareMax = 0.7;
const deadShareMin = 0.2;
const deadShareMax = 0.4;
const slackShare = 0.1;
/** Dead share from which on a segment is copied when there is no pressure. */
const leisureShare = 0.5;
const pressedShare = 0.125;
/** Segments without needed records are reclaimed once they are this share of the live bytes. */
const emptyShare = 0.125;
const runShare = 1 / 16;
/** Delay before a half-dead segment is copied, in which more may die. */
const leisureDelayMs = 1000;
const nothing = Number.POSITIVE_INFINITY;
const speedUpMax = 8;
/** Share of the process's time per slack of dead bytes beyond the target: a high speed needs processor time as well. */
const timeSharePerSlack = 0.25;
const timeShareMax = 0.5;
/** Writers are throttled the more, the more is dead, until compaction keeps up with them. */
const brakeMax = 8;

/**
 * `leastBytes`: lower bound for the live bytes in this calculation. `isHeld`: most of the log is about to be replaced,
 * and nothing is copied until `deadShareMax` is dead.
 */
export function paceOf(space: LogSpace, leastBytes: number, isHeld: boolean): CompactionPace {
  const live = Math.max(space.liveBytes, leastBytes);
  const otherBytes = Math.max(0, space.totalBytes - space.liveBytes - space.deadBytes);
  const most = deadShareMax * live;
  const target = isHeld
    ? most
    : Math.min(most, Math.max(deadShareMin * live, spareShareMax * live - otherBytes));
  // In slacks.
  const excess = Math.max(0, (space.deadBytes - target) / (slackShare * live));
  const isPressed = excess > 0;
  const hasEmpty = space.emptyBytes >= emptyShare * live;
  const rest = isHeld ? null : leisureDelayMs;
  return {
    delayMs: isPressed || hasEmpty ? 0 : rest,
    worthShare: isPressed ? pressedShare : isHeld ? nothing : leisureShare,
    urgentShare: isPressed ? pressedShare : nothing,
    runBytesMax: Math.max(leastBytes / 4, runShare * live),
    speedUp: 1 + Math.min(1, excess) * (speedUpMax - 1),
    timeShare: Math.min(timeShareMax, excess * timeSharePerSlack),
    brake: Math.min(brakeMax, Math.max(0, excess - 1)),
  };
}
