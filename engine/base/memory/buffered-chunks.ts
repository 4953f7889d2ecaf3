/**
 * The chunks of a body whose reader consumes only whole commands or items and buffers incomplete ones. The buffer is
 * charged to the memory budget of the process, and a sender that stalls in the middle of a large item is refused when
 * others wait for that memory.
 *
 * Invariants:
 * - A reader with a small buffer never waits.
 */
import { EngineError } from "../errors.ts";
import { pressedStallMs, roomWaitMs } from "../limits.ts";
import { processMemory } from "./memory-budget.ts";

/** Bytes that any reader may buffer without a charge. */
const freeBytes = 256 * 1024;

export class BufferedChunks {
  readonly #source: AsyncIterator<Buffer>;
  #bytes = 0;

  constructor(source: AsyncIterator<Buffer>) {
    this.#source = source;
  }

  /**
   * Returns the next chunk. `heldBytes`: size of the reader's buffer, which may double with it.
   * @throws EngineError overloaded, and the errors of the source
   */
  async next(heldBytes: number): Promise<IteratorResult<Buffer, unknown>> {
    const wanted = heldBytes <= freeBytes ? 0 : 2 * heldBytes;
    if (wanted < this.#bytes) this.release();
    if (wanted > this.#bytes) await this.#grow(wanted - this.#bytes);
    const next = this.#source.next();
    return this.#bytes === 0 ? next : await this.#unlessPressed(next);
  }

  /** Returns its memory to the budget. */
  release(): void {
    processMemory.release("bodies", this.#bytes);
    this.#bytes = 0;
  }

  async #grow(bytes: number): Promise<void> {
    const isTaken =
      processMemory.tryReserve("bodies", bytes, this.#bytes) ||
      (await processMemory.reserve("bodies", bytes, AbortSignal.timeout(roomWaitMs)));
    if (!isTaken) {
      throw new EngineError(
        "overloaded",
        "There is no memory for so large a command beside the other bodies that are under way " +
          "(setting Http.MaxHeldBodiesInMb). Try again.",
      );
    }
    this.#bytes += bytes;
  }

  #unlessPressed<T>(next: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const timer = setInterval(() => {
        if (processMemory.waitersOf("bodies") === 0) return;
        clearInterval(timer);
        reject(
          new EngineError(
            "overloaded",
            `Nothing came for ${pressedStallMs / 1000} seconds in the middle of a large command, while others wait for the ` +
              "memory that it takes (setting Http.MaxHeldBodiesInMb).",
          ),
        );
      }, pressedStallMs).unref();
      next.then(
        (value) => {
          clearInterval(timer);
          resolve(value);
        },
        (error: unknown) => {
          clearInterval(timer);
          reject(error);
        },
      );
    });
  }
}
