/** Compare-exchange values: read by key or prefix, replaced and deleted by version. */

import { earlierOutcome, keepOutcome } from "../batches/repeated-requests.ts";
import { checkedJsonWithMetadata } from "../state/documents/checked-json.ts";
import {
  type CompareExchangeValue,
  compareExchangeKey,
} from "../state/keyspaces/compare-exchange.ts";
import {
  type CompareExchangeResult,
  deleteCompareExchange,
  putCompareExchange,
} from "../writes/compare-exchange.ts";
import type { OpenDatabase } from "./database/open-database.ts";

export type { CompareExchangeResult, CompareExchangeValue };

export class CompareExchange {
  readonly #database: OpenDatabase;

  constructor(database: OpenDatabase) {
    this.#database = database;
  }

  get(key: string): CompareExchangeValue | undefined {
    return this.#database.state.keyspaces.compareExchange.get(compareExchangeKey(key));
  }

  /** Returns the values whose keys begin with `prefix`, in order: `pageSize` of them, after the first `start`. */
  list(prefix: string, start: number, pageSize: number): CompareExchangeValue[] {
    const { compareExchange } = this.#database.state.keyspaces;
    const values: CompareExchangeValue[] = [];
    if (pageSize <= 0 || start < 0) return values;
    let position = 0;
    for (const [, value] of compareExchange.withPrefix(compareExchangeKey(prefix))) {
      if (position++ < start) continue;
      values.push(value);
      if (values.length === pageSize) break;
    }
    return values;
  }

  /**
   * Stores a value if the current value has the `expected` index; 0: if no value exists.
   * @param value JSON of an object
   * @param requestId id of a request that may be repeated: the outcome of the first execution is then returned again
   * @throws EngineError json-… (also for a negative index), compare-exchange-key-too-big
   */
  async put(
    key: string,
    expected: number,
    value: Buffer | string,
    requestId?: string,
  ): Promise<CompareExchangeResult> {
    const bytes = typeof value === "string" ? Buffer.from(value) : value;
    const text = checkedJsonWithMetadata(bytes).toString();
    return await this.#database.write((transaction) => {
      const index = earlierOutcome(transaction, "put", requestId) as number | undefined;
      if (index !== undefined) return { isSuccessful: true, index, text };
      const result = putCompareExchange(transaction, key, expected, text);
      if (result.isSuccessful) keepOutcome(transaction, "put", requestId, result.index);
      return result;
    });
  }

  /** Deletes a value if it has the `expected` index. The result has the deleted value. @throws as `put` */
  delete(key: string, expected: number, requestId?: string): Promise<CompareExchangeResult> {
    return this.#database.write((transaction) => {
      const earlier = earlierOutcome(transaction, "delete", requestId);
      if (earlier !== undefined) return earlier as CompareExchangeResult;
      const result = deleteCompareExchange(transaction, key, expected);
      if (result.isSuccessful) keepOutcome(transaction, "delete", requestId, result);
      return result;
    });
  }
}
