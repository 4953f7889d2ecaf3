/**
 * The errors of one index: the most recent ones with their documents, and whether so many attempts failed that the
 * index is marked as errored.
 *
 * Invariants:
 * - At most `indexErrorsMax` errors are kept, the newest ones.
 */
import { indexErrorsMax } from "../base/limits.ts";

export interface IndexError {
  /** Microseconds since 1970. */
  readonly atMicros: number;
  /** The document's id, or the reduce key. */
  readonly document: string;
  readonly action: "Map" | "Reduce";
  readonly message: string;
}

/** Maximum share of failed attempts. */
const failureRateMax = 0.15;
/** With fewer attempts, of maps and reduces together, an index is only errored when all failed (RavenDB 7.2.7). */
const attemptsMin = 6;
const messageLengthMax = 4096;

/** The part kept in snapshots. */
type SavedErrors = Pick<
  IndexErrors,
  | "mapAttempts"
  | "mapErrors"
  | "mapReferenceAttempts"
  | "mapReferenceErrors"
  | "reduceAttempts"
  | "reduceErrors"
  | "list"
>;

export class IndexErrors {
  mapAttempts = 0;
  mapErrors = 0;
  mapReferenceAttempts = 0;
  mapReferenceErrors = 0;
  reduceAttempts = 0;
  reduceErrors = 0;
  #list: IndexError[] = [];

  get list(): readonly IndexError[] {
    return this.#list;
  }

  add(error: IndexError): void {
    this.#list.push({ ...error, message: error.message.slice(0, messageLengthMax) });
    if (this.#list.length > indexErrorsMax) this.#list.shift();
  }

  /** For a snapshot, as JSON. */
  saved(): SavedErrors {
    const { mapAttempts, mapErrors, mapReferenceAttempts, mapReferenceErrors } = this;
    const { reduceAttempts, reduceErrors } = this;
    const reduced = { reduceAttempts, reduceErrors, list: this.#list };
    return { mapAttempts, mapErrors, mapReferenceAttempts, mapReferenceErrors, ...reduced };
  }

  restore({ list, ...counts }: SavedErrors): void {
    Object.assign(this, counts);
    this.#list = [...list];
  }

  /** Clears the errors; the counters remain. */
  clear(): void {
    this.#list = [];
  }

  /** Why the index called `name` is marked as errored, or null. */
  invalidity(name: string, isReduce: boolean): string | null {
    const attempts = this.mapAttempts + this.reduceAttempts;
    const errors = this.mapErrors + this.reduceErrors;
    if (errors === 0) return null;
    const rate = errors / attempts;
    if (errors < attempts && (attempts < attemptsMin || rate <= failureRateMax)) return null;
    const tried = isReduce
      ? `${this.mapAttempts} map attempts and ${this.reduceAttempts} reduce attempts, ${this.mapErrors} and ${this.reduceErrors} has failed respectively`
      : `${this.mapAttempts} map attempts, ${this.mapErrors} has failed`;
    const percent = Number((rate * 100).toFixed(2));
    return `Index ${name} is invalid, out of ${tried}. Error rate of ${percent}% exceeds allowed 15% error rate`;
  }
}
