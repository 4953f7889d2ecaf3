/**
 * Costs of the document table: bytes and nanoseconds per document, and the longest pause.
 *
 * Ids are `users/<n>`; look-ups use a fixed scattered order, with new id strings `Users/<n>`.
 */
import { allCollections, DocumentTable } from "../engine/state/keyspaces/document-table.ts";

type BenchSize = "smoke" | "full";

/** Runs the bench. @returns the printed lines */
export function run(size: BenchSize): string[] {
  const lines: string[] = [];
  for (const count of size === "smoke" ? [2_000] : [1_000_000, 5_000_000]) {
    for (const line of measure(count)) {
      lines.push(line);
      console.log(line);
    }
  }
  return lines;
}

const collectionCount = 8;
const batchCount = 1000;

function measure(count: number): string[] {
  const lines: string[] = [];
  const note = (what: string, value: string) => lines.push(`${count} documents, ${what}: ${value}`);
  const table = new DocumentTable();
  let idBytes = 0;
  let pauseMs = 0;
  const insertNs = time(count, () => {
    for (let from = 0; from < count; from += batchCount) {
      const start = performance.now();
      for (let at = from; at < from + batchCount; at++) {
        const id = `users/${at}`;
        idBytes += id.length;
        table.stage(table.intern(id), at + 1, at * 256, 256, at % collectionCount, 0);
      }
      table.commitStaged(batchCount);
      pauseMs = Math.max(pauseMs, performance.now() - start);
    }
  });
  note("insert", `${insertNs.toFixed(0)} ns`);
  note(`longest ${batchCount} inserts`, `${pauseMs.toFixed(2)} ms`);
  note("find", `${findNs(table, count).toFixed(0)} ns`);

  const updateNs = time(count, () => update(table, count, count));
  note("update, scattered", `${updateNs.toFixed(0)} ns`);
  note("view and next write", viewMicros(table, count));
  const sliceMs = settle(table);
  note(
    "order by id",
    `${sliceMs.all.toFixed(0)} ms, longest slice of 1 ms ${sliceMs.longest.toFixed(2)} ms`,
  );
  note("scan by etag", `${scanNs(table, allCollections, count).toFixed(1)} ns`);
  const perDocument = (table.memoryBytes() - idBytes) / count;
  note("memory besides the ids", `${perDocument.toFixed(1)} bytes`);

  const view = table.view();
  const dumpMs = time(1e6, () => table.sections(view));
  const sections = table.sections(view);
  const parts = sections.reduce((sum, section) => sum + section.parts.length, 0);
  note("sections", `${dumpMs.toFixed(1)} ms, ${parts} parts`);
  const restoreMs = time(1e6, () => new DocumentTable().restore(sections));
  note("restore", `${restoreMs.toFixed(0)} ms`);
  view.release();
  return lines;
}

/** Returns the time of `work` on `count` items, in nanoseconds per item. */
function time(count: number, work: () => void): number {
  const start = performance.now();
  work();
  return ((performance.now() - start) * 1e6) / count;
}

/** Returns element `index` of a scattered permutation of [0, count). */
function scatter(index: number, count: number): number {
  return (index * 7_368_787) % count;
}

function findNs(table: DocumentTable, count: number): number {
  const calls = Math.min(count, 1_000_000);
  let found = 0;
  const ns = time(calls, () => {
    for (let index = 0; index < calls; index++) {
      if (table.find(`Users/${scatter(index, count)}`) >= 0) found++;
    }
  });
  if (found !== calls) throw new Error("every id is found");
  return ns;
}

function update(table: DocumentTable, count: number, calls: number): void {
  let etag = table.lastEtag;
  for (let index = 0; index < calls; index += batchCount) {
    for (let at = index; at < index + batchCount; at++) {
      const docNum = scatter(at, count);
      table.stage(docNum, ++etag, at * 256, 256, docNum % collectionCount, 0);
    }
    table.commitStaged(batchCount);
  }
}

/** Returns the median time of creating a view, and of the first write after it, in microseconds. */
function viewMicros(table: DocumentTable, count: number): string {
  const views: number[] = [];
  const writes: number[] = [];
  for (let index = 0; index < 200; index++) {
    const start = performance.now();
    const view = table.view();
    const made = performance.now();
    table.stage(scatter(index, count), table.lastEtag + 1, 0, 256, 0, 0);
    table.commitStaged(1);
    writes.push(performance.now() - made);
    views.push(made - start);
    view.release();
  }
  const middle = (times: number[]) => (times.sort((left, right) => left - right)[100] ?? 0) * 1000;
  return `${middle(views).toFixed(1)} us and ${middle(writes).toFixed(1)} us`;
}

function settle(table: DocumentTable): { all: number; longest: number } {
  let longest = 0;
  const start = performance.now();
  for (let isDone = false; !isDone; ) {
    const sliceStart = performance.now();
    isDone = table.settleOrder(1);
    longest = Math.max(longest, performance.now() - sliceStart);
  }
  return { all: performance.now() - start, longest };
}

function scanNs(table: DocumentTable, collection: number, count: number): number {
  const batch = new Uint32Array(1024);
  let seen = 0;
  const ns = time(count, () => {
    const cursor = table.byEtag(collection, 0);
    for (;;) {
      const filled = cursor.fill(batch, batch.length);
      seen += filled;
      if (filled < batch.length) return;
    }
  });
  if (seen !== count) throw new Error("every document is seen");
  return ns;
}
