/** Long work of a request in slices: others are served in between. */
import { sliceMs } from "../engine/limits.ts";

export class TurnSlice {
  #untilMs = performance.now() + sliceMs;

  /** Undefined while the slice lasts; else wait for the promise before going on. Cost: one look at the clock. */
  next(): Promise<void> | undefined {
    if (performance.now() < this.#untilMs) return undefined;
    return new Promise((resolve) => {
      setImmediate(() => {
        this.#untilMs = performance.now() + sliceMs;
        resolve();
      });
    });
  }
}
