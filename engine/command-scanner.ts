/**
 * Reads the array of commands of a bulk insert as its bytes come, in pieces of any size.
 *
 *   body := [ command (, command)* ]      command := object, and raw bytes behind it when they were asked for
 *
 * Knows nothing of what commands mean: whoever uses it takes the raw bytes of an attachment before the next command.
 *
 * Invariants:
 * - The bytes of a command that was given out do not change.
 * - Each byte is looked at a fixed number of times, however the pieces are cut.
 * - A command is at most `commandBytesMax` long; no more than that is held.
 */

import { EngineError } from "./errors.ts";
import {
  byteArrayClose,
  byteArrayOpen,
  byteComma,
  byteObjectOpen,
  skipSpace,
} from "./json/bytes.ts";
import { ObjectScan } from "./json/object-scan.ts";
import { misplaced, unexpected } from "./json/raw-scan.ts";
import { grownBuffer } from "./large-buffer.ts";
import { documentBytesMax } from "./limits.ts";
import { BatchCommand } from "./writes/batch-parser.ts";

const commandBytesMax = documentBytesMax + 64 * 1024;
const noBytes = Buffer.alloc(0);

export class CommandScanner {
  /** What came and is not used up: `#bytes[#at, #end)`. */
  #bytes: Buffer = noBytes;
  #at = 0;
  #end = 0;
  #expects: "array" | "command-or-close" | "comma-or-close" | "nothing" = "array";
  /** Looks for the end of a command that is not all there. */
  #scan: ObjectScan | null = null;

  /** Bytes of what came and is not used up. */
  get heldBytes(): number {
    return this.#end - this.#at;
  }

  /** More of the body. The chunk is kept: it must not change. */
  push(chunk: Buffer): void {
    const held = this.#end - this.#at;
    if (held === 0) {
      this.#bytes = chunk;
      this.#at = 0;
      this.#end = chunk.length;
      return;
    }
    if (held > commandBytesMax) {
      throw new EngineError("too-large", `A command has at most ${commandBytesMax} bytes.`);
    }
    // Given-out commands are in the old buffer: only behind its end is free.
    if (this.#end + chunk.length > this.#bytes.length) {
      const larger = grownBuffer(held + chunk.length, commandBytesMax);
      this.#bytes.copy(larger, 0, this.#at, this.#end);
      this.#bytes = larger;
      this.#at = 0;
      this.#end = held;
    }
    chunk.copy(this.#bytes, this.#end);
    this.#end += chunk.length;
  }

  /**
   * The next command; "more" when it is not all there yet, "end" behind the closing bracket.
   * @throws EngineError json-invalid, invalid-operation
   */
  next(): BatchCommand | "more" | "end" {
    for (;;) {
      if (this.#scan !== null) return this.#restOfCommand(this.#scan);
      if (this.#expects === "nothing") return "end";
      this.#at = skipSpace(this.#bytes, this.#at, this.#end);
      if (this.#at === this.#end) return "more";
      const byte = this.#bytes[this.#at] as number;
      switch (this.#expects) {
        case "array":
          if (byte !== byteArrayOpen) throw unexpected("StartArray", this.#bytes, this.#at);
          this.#expects = "command-or-close";
          this.#at++;
          break;
        case "comma-or-close":
          if (byte === byteComma) this.#at++;
          else if (byte !== byteArrayClose && byte !== byteObjectOpen) {
            throw misplaced(this.#bytes, this.#at);
          }
          // The official client leaves the comma out before some commands; RavenDB 7.2.7 takes one before `]` too.
          this.#expects = "command-or-close";
          break;
        case "command-or-close":
          if (byte === byteArrayClose) {
            this.#expects = "nothing";
            this.#at++;
            break;
          }
          return this.#command(byte);
      }
    }
  }

  /** Up to `count` bytes that stand behind the last command as they are; none when more must come first. */
  raw(count: number): Buffer {
    const to = Math.min(this.#at + count, this.#end);
    const taken = this.#bytes.subarray(this.#at, to);
    this.#at = to;
    return taken;
  }

  /** Most commands are all there: they are looked at once. */
  #command(byte: number): BatchCommand | "more" {
    if (byte !== byteObjectOpen) throw unexpected("StartObject", this.#bytes, this.#at);
    try {
      return this.#take(new BatchCommand(this.#bytes, this.#at, this.#end));
    } catch (error) {
      if (!(error instanceof EngineError) || error.code !== "json-truncated") throw error;
    }
    this.#scan = new ObjectScan();
    return this.#restOfCommand(this.#scan);
  }

  #restOfCommand(scan: ObjectScan): BatchCommand | "more" {
    const endAt = scan.scan(this.#bytes, this.#at, this.#end);
    if (endAt < 0) return "more";
    this.#scan = null;
    return this.#take(new BatchCommand(this.#bytes, this.#at, endAt, scan.endsFrom(this.#at)));
  }

  #take(command: BatchCommand): BatchCommand {
    this.#expects = "comma-or-close";
    this.#at = command.endAt;
    return command;
  }
}
