/** The writes of the killed process by number, shared by that process and the checker. */
import { preparedBytesMin } from "../../engine/base/limits.ts";
import type { Batch } from "./model-database.ts";
import { SeededRandom } from "./random.ts";

/**
 * The large document that write `number` puts first, in a transaction of its own; "" for most numbers. Such documents
 * are prepared in slices, and their bytes are copied to the log late.
 */
export function largeDocumentOf(seed: number, number: number): string {
  const random = new SeededRandom(seed * 1_000_033 + number);
  if (random.below(60) > 0) return "";
  const word = `large ${number} `;
  return `{"number":${number},"text":"${word.repeat(Math.ceil((preparedBytesMin + random.below(600_000)) / word.length))}"}`;
}

/**
 * Write `number` puts either a group of documents in one transaction, or a single document, each
 * with a counter; the latter sometimes with an attachment, or with the deletion of an earlier
 * number's documents.
 */
export function operationsOf(seed: number, number: number): Batch {
  const random = new SeededRandom(seed * 1_000_003 + number);
  const id = `single/${number}`;
  const text = "x".repeat(random.below(400));
  const put = { kind: "put", id, body: `{"number":${number},"text":"${text}"}` } as const;
  const count = { kind: "increment", id, name: "count", by: number } as const;
  const choice = random.below(10);
  if (choice < 2) {
    const members = [0, 1, 2].map((member) => `group/${number}/${member}`);
    return members.flatMap(
      (member): Batch => [
        { kind: "put", id: member, body: `{"group":${number}}` },
        { kind: "increment", id: member, name: "count", by: number },
      ],
    );
  }
  if (choice < 4) {
    const content = `content ${number % 5} `.repeat(1 + random.below(300));
    return [put, count, { kind: "attach", id, name: "file", content }];
  }
  // The deleted number is far enough back that its write is likely acknowledged (the process waits for it).
  if (choice < 6) return [put, count, { kind: "delete", id: `single/${number - 100}` }];
  return [put, count];
}
