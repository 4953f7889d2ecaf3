/**
 * Limits the time spent on processing input: per connection, and per event-loop tick over all connections. A few
 * kilobytes of header blocks or frames can cost milliseconds, and libuv reads up to 2 MB of each connection in a tick.
 *
 * Knows nothing of protocols. A connection pauses its socket while it waits for its next time slice.
 *
 * Invariants:
 * - Connections that used little time recently do not wait for those that used much, unless the tick is used up.
 * - Connections without a registered certificate get half of a tick at most while others wait.
 * - Every waiting connection is resumed eventually: each queue is first in, first out, and each tick serves at least one
 *   connection of the last queue.
 */

/** Milliseconds of a tick for the input of all connections, and of one time slice of a connection. */
const tickMs = 4;
const sliceMs = 0.5;
/** The share of a tick for connections that used little time, which are served first. */
const lightTickMs = 2 * tickMs;
/** The share of a tick for connections without a registered certificate while it is contended. */
const unknownTickMs = tickMs / 2;
/** Milliseconds of processing per window up to which a connection is served without waiting for others. */
const lightMs = 1;
const windowMs = 100;

/** A connection whose input is processed in time slices. */
export interface InputSource {
  /** Does the client have a registered certificate, or need none? */
  readonly isKnown: boolean;
  /** Processes retained input; called after `begin` or `end` has queued the connection, if it is not closed by then. */
  resumeInput(): void;
}

export class InputScheduler {
  readonly #nowMs: () => number;
  /** Milliseconds used since the last reset. It is reset in the tick after it exceeds `tickMs`. */
  #usedMs = 0;
  #isScheduled = false;
  readonly #light: InputShare[] = [];
  readonly #known: InputShare[] = [];
  readonly #unknown: InputShare[] = [];

  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;
  }

  shareOf(source: InputSource): InputShare {
    return new InputShare(this, source);
  }

  /** For `InputShare`. */
  now(): number {
    return this.#nowMs();
  }

  /** For `InputShare`: may it process input in this tick? Hot. */
  mayBegin(isLight: boolean): boolean {
    if (isLight) return this.#usedMs < lightTickMs;
    return this.#usedMs < tickMs && this.#known.length === 0 && this.#unknown.length === 0;
  }

  /** For `InputShare`: counts a time slice. Hot. */
  charge(ms: number): void {
    this.#usedMs += ms;
    if (this.#usedMs >= tickMs) this.#schedule();
  }

  /** For `InputShare`. */
  queue(share: InputShare, isLight: boolean): void {
    const queue = isLight ? this.#light : share.source.isKnown ? this.#known : this.#unknown;
    queue.push(share);
    this.#schedule();
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => this.#tick());
  }

  #tick(): void {
    this.#isScheduled = false;
    this.#usedMs = 0;
    const isContended = this.#light.length > 0 || this.#known.length > 0;
    this.#serve(this.#light, lightTickMs);
    this.#serve(this.#known, tickMs);
    this.#unknown.shift()?.resume();
    this.#serve(this.#unknown, isContended ? unknownTickMs : tickMs);
    if (this.#light.length + this.#known.length + this.#unknown.length > 0) this.#schedule();
  }

  /** Resumes each connection that waits, once, until `usedMs` milliseconds of the tick are used. */
  #serve(queue: InputShare[], usedMs: number): void {
    for (let left = queue.length; left > 0 && this.#usedMs < usedMs; left--)
      queue.shift()?.resume();
  }
}

/** The input of one connection. */
export class InputShare {
  readonly source: InputSource;
  readonly #scheduler: InputScheduler;
  #startMs = 0;
  #windowStartMs = 0;
  #usedMs = 0;
  #isWaiting = false;
  #isClosed = false;

  constructor(scheduler: InputScheduler, source: InputSource) {
    this.#scheduler = scheduler;
    this.source = source;
  }

  /** Is it queued? Its input is then to be retained, and its socket paused. */
  get isWaiting(): boolean {
    return this.#isWaiting;
  }

  /** Begins a time slice. @returns false if it was queued, or is queued already. Hot. */
  begin(nowMs: number): boolean {
    if (this.#isWaiting) return false;
    this.#startMs = nowMs;
    const isLight = this.#isLight(nowMs);
    if (this.#scheduler.mayBegin(isLight)) return true;
    this.#wait(isLight);
    return false;
  }

  /** Is the time slice used up? */
  isOver(): boolean {
    return this.#scheduler.now() - this.#startMs >= sliceMs;
  }

  /** Ends the time slice. `isMore`: input is left, for which the connection is queued. Hot. */
  end(isMore: boolean): void {
    const nowMs = this.#scheduler.now();
    const spentMs = nowMs - this.#startMs;
    this.#usedMs += spentMs;
    this.#scheduler.charge(spentMs);
    if (isMore && !this.#isClosed) this.#wait(this.#isLight(nowMs));
  }

  /** The connection has ended. */
  close(): void {
    this.#isClosed = true;
  }

  /** For the scheduler: begins the slice for which the connection waited. */
  resume(): void {
    this.#isWaiting = false;
    if (this.#isClosed) return;
    this.#startMs = this.#scheduler.now();
    this.source.resumeInput();
  }

  #isLight(nowMs: number): boolean {
    if (nowMs - this.#windowStartMs >= windowMs) {
      this.#windowStartMs = nowMs;
      this.#usedMs = 0;
    }
    return this.#usedMs < lightMs;
  }

  #wait(isLight: boolean): void {
    this.#isWaiting = true;
    this.#scheduler.queue(this, isLight);
  }
}
