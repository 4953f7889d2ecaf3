/**
 * How much of a log may be dead: says when compaction is to begin, what is worth copying, how fast it goes, and how
 * much writers are slowed down when it cannot keep up. Numbers in, numbers out.
 *
 * What a log takes beside its live bytes is to stay below `spareShareMax` of them. Room that no record has yet, index
 * snapshots and outputs beside their sources take their part of that; the rest may be dead, but at most
 * `deadShareMax`, and at least `deadShareMin`, or little else would be done than to copy.
 *
 *   dead bytes  0            target            target + slack          target + 9 slacks
 *               |  at leisure  |  faster and faster  |  writers are slowed,   |  as much as they ever are
 *                                                    |  the more is dead      |
 *
 * Invariants:
 * - Up to the target, a segment is copied when half of it is dead, after it waited for more to die.
 * - Beyond it, what is copied is at least `pressedShare` dead. As the one that is most dead goes first, and more than
 *   `deadShareMin` is dead, at most five bytes are copied for each one that is given back; commonly it is one.
 */

/** Bytes of a log, on the device or in memory. */
export interface LogSpace {
  readonly liveBytes: number;
  /** In segments that can be compacted, without deletions that must stay. */
  readonly deadBytes: number;
  /** In those of them in which everything was replaced: they need no copying. */
  readonly emptyBytes: number;
  /** Everything: segments, also those that are kept for readers, and index snapshots. */
  readonly totalBytes: number;
}

/** What compaction does now. */
export interface CompactionPace {
  /** Milliseconds until it is to begin; null: not now. */
  readonly delayMs: number | null;
  /** How much of a segment must be dead to be copied (0 to 1); above 1, only what needs no copying is taken. */
  readonly worthShare: number;
  /** The same for a compaction that began at once: what can wait is left to one that comes in its time. */
  readonly urgentShare: number;
  /** Live bytes that are copied at once: they take their room twice meanwhile. */
  readonly runBytesMax: number;
  /** How many times its usual speed it takes. */
  readonly speedUp: number;
  /** The part of the process's time that it takes at least, see `Throttle.timeShare`. */
  readonly timeShare: number;
  /** How much writers are slowed down while it runs: 0, not at all, to `brakeMax`. */
  readonly brake: number;
}

const spareShareMax = 0.7;
const deadShareMin = 0.2;
const deadShareMax = 0.4;
const slackShare = 0.1;
/** A segment is copied at leisure when this much of it is dead. */
const leisureShare = 0.5;
const pressedShare = 0.125;
/** Segments without anything that is needed are given back when they are this much of what is alive. */
const emptyShare = 0.125;
const runShare = 1 / 16;
/** How long a segment that is half dead waits for more to die. */
const leisureDelayMs = 1000;
const nothing = Number.POSITIVE_INFINITY;
const speedUpMax = 8;
/** Of the process's time, for each slack that is dead beyond the target: what is fast is of no use while others have it. */
const timeSharePerSlack = 0.25;
const timeShareMax = 0.5;
/** Writers are the slower the more is dead, until compaction keeps up with them. */
const brakeMax = 8;

/**
 * `leastBytes`: a log with less alive counts as one that has this much. `isHeld`: somebody is about to replace most of
 * what is in the log, and nothing is copied until `deadShareMax` is dead.
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
