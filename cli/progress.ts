/** How far something is, on standard error: on a terminal one line that is written over, elsewhere a line every 5 seconds. */
import type { Surroundings } from "./command.ts";
import { durationText, sizeText } from "./output.ts";

const terminalMs = 100;
const lineMs = 5000;

export class ProgressLine {
  readonly #errors: Surroundings["streams"]["errors"];
  readonly #isQuiet: boolean;
  readonly #nowMs: () => number;
  readonly #beganMs: number;
  #shownMs: number;
  #isShown = false;

  /** `nowMs`: a monotonic clock. */
  constructor(
    { streams, options }: Pick<Surroundings, "streams" | "options">,
    nowMs: () => number = () => performance.now(),
  ) {
    this.#errors = streams.errors;
    this.#isQuiet = options.is("quiet");
    this.#nowMs = nowMs;
    this.#beganMs = nowMs();
    this.#shownMs = this.#errors.isTTY === true ? Number.NEGATIVE_INFINITY : this.#beganMs;
  }

  get elapsedMs(): number {
    return this.#nowMs() - this.#beganMs;
  }

  /** Shows `text()` if it is time to. */
  show(text: () => string): void {
    if (this.#isQuiet) return;
    const isTerminal = this.#errors.isTTY === true;
    const nowMs = this.#nowMs();
    if (nowMs - this.#shownMs < (isTerminal ? terminalMs : lineMs)) return;
    this.#errors.write(isTerminal ? `\r\u001b[K${text()}` : `${text()}\n`);
    this.#shownMs = nowMs;
    this.#isShown = isTerminal;
  }

  /** Bytes of `total`, if that is known, with rate and time left. */
  showBytes(bytes: number, total?: number): void {
    this.show(() => passedText(bytes, total, this.elapsedMs, sizeText));
  }

  /** Removes the line. */
  end(): void {
    if (this.#isShown) this.#errors.write("\r\u001b[K");
    this.#isShown = false;
  }
}

/** `40 %  2.0 MB of 5.0 MB, 1.0 MB/s, 3 s left`; without a total what has passed, the rate and the time. */
export function passedText(
  passed: number,
  total: number | undefined,
  elapsedMs: number,
  shown: (count: number) => string,
): string {
  const perMs = passed / Math.max(1, elapsedMs);
  const rate = `${shown(Math.round(perMs * 1000))}/s`;
  if (total === undefined || !(total > 0)) {
    return `${shown(passed)}, ${rate}, ${durationText(elapsedMs)}`;
  }
  const percent = Math.min(100, Math.floor((passed / total) * 100));
  const left = perMs > 0 ? durationText(Math.max(0, total - passed) / perMs) : "?";
  return `${percent} %  ${shown(passed)} of ${shown(total)}, ${rate}, ${left} left`;
}
