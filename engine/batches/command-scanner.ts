/**
 * Reads the command array of a bulk insert incrementally, in chunks of any size.
 *
 *   body := [ command (, command)* ]      command := object, followed by raw bytes if the caller requests them
 *
 * Independent of the meaning of commands: the caller must read the raw bytes of an attachment before the next command.
 *
 * Invariants:
 * - The bytes of a returned command do not change.
 * - Each byte is scanned a bounded number of times, however the chunks are split.
 * - A command is at most as long as its limit; no more than that is buffered.
 */

import { EngineError } from "../base/errors.ts";
import {
  byteArrayClose,
  byteArrayOpen,
  byteComma,
  byteObjectOpen,
  skipSpace,
} from "../base/json/bytes.ts";
import { ObjectScan } from "../base/json/object-scan.ts";
import { misplaced, truncated, unexpected } from "../base/json/raw-scan.ts";
import { documentBytesMax } from "../base/limits.ts";
import { countDropped } from "../base/memory/gc-hints.ts";
import { grownBuffer } from "../base/memory/large-buffer.ts";
import { BatchCommand } from "./batch-parser.ts";

/** Bytes of a command around its document. */
const commandBytesExtra = 64 * 1024;
const noBytes = Buffer.alloc(0);

export class CommandScanner {
  /** Received but unused bytes: `#bytes[#at, #end)`. */
  #bytes: Buffer = noBytes;
  #at = 0;
  #end = 0;
  #expects: "array" | "command-or-close" | "comma-or-close" | "nothing" = "array";
  /** Searches for the end of an incomplete command. */
  #scan: ObjectScan | null = null;
  readonly #commandBytesMax: number;

  /** @param bytesMax the most bytes of a document, if less than `documentBytesMax` */
  constructor(bytesMax = documentBytesMax) {
    this.#commandBytesMax = Math.min(bytesMax, documentBytesMax) + commandBytesExtra;
  }

  /** Drops the received bytes. (An error that was thrown here retains the scanner: its stack refers to it.) */
  letGo(): void {
    countDropped(this.#bytes.length);
    this.#drop();
  }

  #drop(): void {
    this.#bytes = noBytes;
    this.#at = 0;
    this.#end = 0;
    this.#scan = null;
  }

  /** Number of received but unused bytes. */
  get heldBytes(): number {
    return this.#end - this.#at;
  }

  /** Adds a chunk of the body. It is kept by reference: it must not change. */
  push(chunk: Buffer): void {
    const held = this.#end - this.#at;
    if (held === 0) {
      this.#bytes = chunk;
      this.#at = 0;
      this.#end = chunk.length;
      return;
    }
    if (held > this.#commandBytesMax) {
      throw new EngineError(
        "too-large",
        `A command has at most ${this.#commandBytesMax} bytes (setting Http.MaxRequestBodySizeInMb).`,
      );
    }
    // Returned commands are in the old buffer: only the space after its end is free.
    if (this.#end + chunk.length > this.#bytes.length) {
      const larger = grownBuffer(held + chunk.length, this.#commandBytesMax);
      this.#bytes.copy(larger, 0, this.#at, this.#end);
      countDropped(held);
      this.#bytes = larger;
      this.#at = 0;
      this.#end = held;
    }
    chunk.copy(this.#bytes, this.#end);
    this.#end += chunk.length;
  }

  /**
   * Returns the next command; "more" while it is incomplete, "end" after the closing bracket.
   * @throws EngineError json-invalid, invalid-operation
   */
  next(): BatchCommand | "more" | "end" {
    for (;;) {
      if (this.#scan !== null) return this.#restOfCommand(this.#scan);
      if (this.#expects === "nothing") return "end";
      this.#at = skipSpace(this.#bytes, this.#at, this.#end);
      if (this.#at === this.#end) {
        this.#drop();
        return "more";
      }
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
          // The official client omits the comma before some commands; RavenDB 7.2.7 also accepts one before `]`.
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

  /** Up to `count` of the raw bytes that follow the last command; empty when more must be pushed first. */
  raw(count: number): Buffer {
    const to = Math.min(this.#at + count, this.#end);
    const taken = this.#bytes.subarray(this.#at, to);
    this.#at = to;
    return taken;
  }

  /** Most commands are complete: these are scanned only once. */
  #command(byte: number): BatchCommand | "more" {
    if (byte !== byteObjectOpen) throw unexpected("StartObject", this.#bytes, this.#at);
    const command = BatchCommand.at(this.#bytes, this.#at, this.#end);
    if (command !== null) return this.#take(command);
    this.#scan = new ObjectScan();
    return this.#restOfCommand(this.#scan);
  }

  #restOfCommand(scan: ObjectScan): BatchCommand | "more" {
    const endAt = scan.scan(this.#bytes, this.#at, this.#end);
    if (endAt < 0) return "more";
    this.#scan = null;
    const command = BatchCommand.at(this.#bytes, this.#at, endAt, scan.endsFrom(this.#at));
    if (command === null) throw truncated();
    return this.#take(command);
  }

  #take(command: BatchCommand): BatchCommand {
    this.#expects = "comma-or-close";
    this.#at = command.endAt;
    return command;
  }
}
