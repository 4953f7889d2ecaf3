/** Passes the results of an index's maps to the next stage, and counts and records how the maps fared. */
import { assert } from "../base/assert.ts";
import { EngineError } from "../base/errors.ts";
import type { Work } from "../base/scheduling/work-budget.ts";
import type { IndexErrors } from "./index-errors.ts";
import type { IndexHost } from "./index-host.ts";
import { type MapResult, RecordNotLoaded } from "./index-program.ts";
import type { MapReferences } from "./map-references.ts";

/** The inputs of maps are numbers: of documents, or of segments. */
export interface MapTarget {
  /**
   * Replaces the results of an input. @returns the work that is left, if there are many; null: it is done
   * @throws EngineError when they cannot be stored, as the work that is left
   */
  set(input: number, result: MapResult): Work<void> | null;
  remove(input: number): void;
}

/** One input of the maps. */
interface MappedInput {
  readonly number: number;
  /** As errors name it. */
  readonly name: () => string;
  /** As errors of one of its parts name it. */
  readonly partName: (part: string) => string;
  /**
   * Whether it is mapped again because a document or value that its map read has changed, not because of its own
   * change.
   */
  readonly isReference: boolean;
}

export class MapOutcomes {
  /** The largest number of entries or values from one input, or one part of an input. */
  outputsMax = 0;
  readonly #target: MapTarget;
  readonly #errors: IndexErrors;
  readonly #host: IndexHost;
  readonly #references: MapReferences;
  /** The results that are being stored. */
  #rest: { readonly input: MappedInput; readonly work: Work<void> } | null = null;

  constructor(target: MapTarget, errors: IndexErrors, host: IndexHost, references: MapReferences) {
    this.#target = target;
    this.#errors = errors;
    this.#host = host;
    this.#references = references;
  }

  /** Whether `finish` must be called until it returns true, before anything else. */
  get isUnfinished(): boolean {
    return this.#rest !== null;
  }

  /**
   * Maps an input and passes on the results; without any when the map failed. When the time is up, results may be left.
   * @returns a promise when a record must first be read from the disk: nothing was done, and the call is repeated.
   */
  take(input: MappedInput, map: () => MapResult, isTimeUp: () => boolean): Promise<void> | null {
    assert(this.#rest === null, "an input is mapped once the results of the last one are stored");
    const { number, isReference } = input;
    try {
      const result = map();
      const attempts = result.items?.attempts ?? 1;
      if (isReference) this.#errors.mapReferenceAttempts += attempts;
      else this.#errors.mapAttempts += attempts;
      // The references of a failed map are kept too: it may succeed when they change.
      this.#references.set(number, result);
      if (result.failure !== null) throw result.failure;
      for (const { item, error } of result.items?.failures ?? []) {
        this.#addError(input.partName(item), error, isReference);
      }
      const count = result.entries.length + result.values.length;
      this.outputsMax = Math.max(this.outputsMax, result.items?.outputsMax ?? count);
      const work = this.#target.set(number, result);
      if (work !== null) this.#rest = { input, work };
    } catch (error) {
      if (error instanceof RecordNotLoaded) return error.wait();
      this.#refuse(input, error);
    }
    this.finish(isTimeUp);
    return null;
  }

  /** Passes on the results that are left, until the time is up. @returns whether none are left */
  finish(isTimeUp: () => boolean): boolean {
    if (this.#rest === null) return true;
    const { input, work } = this.#rest;
    try {
      while (work.next().done !== true) if (isTimeUp()) return false;
    } catch (error) {
      this.#refuse(input, error);
    }
    this.#rest = null;
    return true;
  }

  #refuse({ number, name, isReference }: MappedInput, error: unknown): void {
    if (!(error instanceof EngineError)) throw error;
    this.#target.remove(number);
    this.#addError(name(), error, isReference);
  }

  #addError(name: string, error: EngineError, isReference: boolean): void {
    if (isReference) this.#errors.mapReferenceErrors++;
    else this.#errors.mapErrors++;
    this.#errors.add({
      atMicros: this.#host.nowMicros(),
      document: name,
      action: "Map",
      message: `Failed to execute mapping function on ${name}. Exception: ${error.message}`,
    });
  }
}
