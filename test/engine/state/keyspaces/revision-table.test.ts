import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { DocumentTable } from "../../../../engine/state/keyspaces/document-table.ts";
import { RevisionTable } from "../../../../engine/state/keyspaces/revision-table.ts";

/** The model's entry for a revision. */
interface Row {
  readonly document: number;
  readonly etag: number;
  readonly position: number;
}

type Change = { readonly add: Row } | { readonly remove: Row };

/** A slow, simple model: lists of committed and of staged revisions. */
class Model {
  committed: Row[] = [];
  readonly waiting: Change[] = [];
  readonly dead: number[] = [];

  get newest(): Row[] {
    let rows = [...this.committed];
    for (const change of this.waiting) {
      if ("add" in change) rows.push(change.add);
      else rows = rows.filter((row) => row !== change.remove);
    }
    return rows;
  }

  commit(): void {
    const change = this.waiting.shift();
    if (change === undefined) return;
    if ("add" in change) this.committed.push(change.add);
    else {
      this.committed = this.committed.filter((row) => row !== change.remove);
      this.dead.push(change.remove.position);
    }
  }
}

const documentCount = 4;

function tableFor(dead: (position: number) => void): RevisionTable {
  const documents = new DocumentTable({ hashSeed: 7, monotonicMs: () => 0 });
  for (let n = 0; n < documentCount; n++) documents.intern(`d/${n}`);
  return new RevisionTable(documents, dead);
}

const factsOf = ({ document, etag }: Row) => ({
  document,
  etag,
  collectionId: document % 2,
  flags: 0x4010,
  lastModified: etag * 10,
  vectorHash: etag % 3,
});

/** Rows visible to readers, newest first. */
function readersView(table: RevisionTable, document: number): number[] {
  const etags: number[] = [];
  for (let row = table.newestOf(document); row >= 0; row = table.olderThan(row)) {
    etags.push(table.etagOf(row));
  }
  return etags;
}

/** Rows visible to writers, oldest first. */
function writersView(table: RevisionTable, document: number): number[] {
  const etags: number[] = [];
  for (let row = table.oldestToWrite(document); row >= 0; row = table.newerToWrite(row)) {
    etags.push(table.etagOf(row));
  }
  return etags;
}

function expectAlike(table: RevisionTable, model: Model): void {
  table.checkInvariants();
  expect(table.count).toBe(model.committed.length);
  const { newest } = model;
  for (let document = 0; document < documentCount; document++) {
    const of = (rows: readonly Row[]) =>
      rows
        .filter((row) => row.document === document)
        .map(({ etag }) => etag)
        .sort((one, other) => one - other);
    expect(readersView(table, document)).toEqual(of(model.committed).reverse());
    expect(writersView(table, document)).toEqual(of(newest));
    expect(table.newestCountOf(document)).toBe(of(newest).length);
  }
  for (let hash = 0; hash < 3; hash++) {
    const found = table.withVectorHash(hash).map((row) => table.etagOf(row));
    const known = model.committed.filter(({ etag }) => etag % 3 === hash).map(({ etag }) => etag);
    expect(found.sort((one, other) => one - other)).toEqual(
      known.sort((one, other) => one - other),
    );
  }
}

const step = fc.record({
  kind: fc.constantFrom("add", "add", "remove", "commit", "commit", "discard", "snapshot"),
  choice: fc.nat(1000),
});

describe("the table of revisions", () => {
  test("equals its model after any additions, removals, commits, discards and snapshots", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 120 }), (steps) => {
        const model = new Model();
        const dead: number[] = [];
        let table = tableFor((position) => dead.push(position));
        let etag = 0;
        for (const { kind, choice } of steps) {
          const { newest } = model;
          if (kind === "add") {
            etag += 1 + (choice % 2);
            const row: Row = { document: choice % documentCount, etag, position: etag * 8 };
            table.stageAdd(factsOf(row), row.position, 64);
            model.waiting.push({ add: row });
          } else if (kind === "remove" && newest.length > 0) {
            const row = newest[choice % newest.length] as Row;
            table.stageRemove(row.document, row.etag);
            model.waiting.push({ remove: row });
          } else if (kind === "commit" && model.waiting.length > 0) {
            table.commitStaged(1);
            model.commit();
          } else if (kind === "discard" && model.waiting.length > 0) {
            table.discardStaged(1);
            model.waiting.pop();
          } else if (kind === "snapshot" && model.waiting.length === 0) {
            const [section] = table.sections();
            table = tableFor((position) => dead.push(position));
            table.restore(new Map([["revisions", Buffer.concat([...(section?.parts ?? [])])]]));
          }
          expectAlike(table, model);
        }
        expect(dead).toEqual(model.dead);
      }),
      { numRuns: 150 },
    );
  });

  test("keeps few columns for many revisions that are added and removed", () => {
    const table = tableFor(() => undefined);
    for (let etag = 1; etag <= 5000; etag++) {
      table.stageAdd(factsOf({ document: 0, etag, position: 0 }), 0, 8);
      if (etag > 3) table.stageRemove(0, etag - 3);
      table.commitStaged(etag > 3 ? 2 : 1);
    }
    expect(readersView(table, 0)).toEqual([5000, 4999, 4998]);
    table.checkInvariants();
  });
});
