/** Progress on standard error: one updated line on a terminal, otherwise a line every 5 seconds. */
import type { CommandContext } from "./command.ts";
import { durationText, sizeText } from "./output.ts";

const terminalMs = 100;
const lineMs = 5000;

export class ProgressLine {
  readonly #errors: CommandContext["streams"]["errors"];
  readonly #isQuiet: boolean;
  readonly #nowMs: () => number;
  readonly #beganMs: number;
  #shownMs: number;
  #isShown = false;

  /** `nowMs` is a monotonic clock. */
  constructor(
    { streams, options }: Pick<CommandContext, "streams" | "options">,
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

  /** Shows `text()` unless the last update was too recent. */
  show(text: () => string): void {
    if (this.#isQuiet) return;
    const isTerminal = this.#errors.isTTY === true;
    const nowMs = this.#nowMs();
    if (nowMs - this.#shownMs < (isTerminal ? terminalMs : lineMs)) return;
    this.#errors.write(isTerminal ? `\r\u001b[K${text()}` : `${text()}\n`);
    this.#shownMs = nowMs;
    this.#isShown = isTerminal;
  }

  /** Shows bytes of `total`, if known, with rate and remaining time. */
  showBytes(bytes: number, total?: number): void {
    this.show(() => rateText(bytes, total, this.elapsedMs, sizeText));
  }

  /** Clears the line. */
  end(): void {
    if (this.#isShown) this.#errors.write("\r\u001b[K");
    this.#isShown = false;
  }
}

/** Returns `40 %  2.0 MB of 5.0 MB, 1.0 MB/s, 3 s left`; without a total, the amount, the rate and the elapsed time. */
export function rateText(
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
