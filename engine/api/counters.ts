/** Counters of documents: 64-bit integers by name. */
import { runInSlices } from "../base/scheduling/time-slices.ts";
import type { Work } from "../base/scheduling/work-budget.ts";
import { counterKey } from "../state/keyspaces/counters.ts";
import {
  applyCounters,
  type CounterSlot,
  changesCounters,
  compareNames,
  type DocumentCounterOperations,
  parseCounterRequest,
} from "../writes/counter-operations.ts";
import { deleteCounter, incrementCounter } from "../writes/counters.ts";
import type { OpenDatabase } from "./database/open-database.ts";

export type { CounterSlot };

export class Counters {
  readonly #database: OpenDatabase;

  constructor(database: OpenDatabase) {
    this.#database = database;
  }

  /** Returns a counter, with its name as spelled in the request; null if it does not exist. */
  get(documentId: string, name: string): CounterSlot | null {
    const counter = this.#database.state.keyspaces.counters.get(counterKey(documentId, name));
    return counter === undefined ? null : { documentId, name, value: counter.value };
  }

  /** Returns all counters of a document, in byte order of their names. */
  all(documentId: string): CounterSlot[] {
    const { counters } = this.#database.state.keyspaces;
    return [...counters.withPrefix(counterKey(documentId, ""))]
      .map(([, { name, value }]) => ({ documentId, name, value }))
      .sort(compareNames);
  }

  /**
   * Returns the operations in the body of a request, `{"Documents":[{"DocumentId","Operations":[…]}]}`.
   * @param text checked, minified JSON of an object
   * @throws EngineError invalid-format, invalid-argument for a change without a document id
   */
  parse(text: Buffer): Promise<DocumentCounterOperations[]> {
    return runInSlices(parseCounterRequest(text));
  }

  /** Returns whether the operations can change any counter. */
  areChanges(requests: readonly DocumentCounterOperations[]): boolean {
    return requests.some(changesCounters);
  }

  /**
   * Executes the operations in order, all or none; if none is a change, they read the committed state.
   * @returns one for each increment and read, in order; null if the counter does not exist
   * @throws EngineError document-missing, counter-overflow, invalid-argument
   */
  apply(requests: readonly DocumentCounterOperations[]): Promise<(CounterSlot | null)[]> {
    if (!this.areChanges(requests)) return runInSlices(this.#read(requests));
    return this.#database.writeInSlices(function* apply(transaction) {
      const all: (CounterSlot | null)[] = [];
      for (const request of requests) {
        const applied = yield* applyCounters(transaction, request);
        for (const slot of applied.slots) all.push(slot);
      }
      return all;
    });
  }

  /** @returns the new value. @throws EngineError document-missing, counter-overflow, invalid-argument */
  increment(documentId: string, name: string, by: bigint): Promise<bigint> {
    return this.#database.write((transaction) =>
      incrementCounter(transaction, documentId, name, by),
    );
  }

  /** @returns false when it did not exist. @throws EngineError document-missing */
  delete(documentId: string, name: string): Promise<boolean> {
    return this.#database.write((transaction) => deleteCounter(transaction, documentId, name), {
      isDeletion: true,
    });
  }

  *#read(requests: readonly DocumentCounterOperations[]): Work<(CounterSlot | null)[]> {
    const slots: (CounterSlot | null)[] = [];
    for (const { documentId, operations } of requests) {
      for (const { type, name } of operations) {
        yield;
        if (type === "GetAll") for (const slot of this.all(documentId)) slots.push(slot);
        else if (type === "Get") slots.push(name === null ? null : this.get(documentId, name));
      }
    }
    return slots;
  }
}
