/** Entries in an index snapshot that is written while they change. */
import { expect, test } from "vitest";
import { recordKinds } from "../../../../engine/base/record.ts";
import { EntryKeyspace } from "../../../../engine/state/keyspaces/entry-keyspace.ts";

function newKeyspace(): EntryKeyspace<string> {
  return new EntryKeyspace<string>("values", recordKinds.value, () => undefined);
}

function contentOf(keyspace: EntryKeyspace<string>) {
  const entries = [...keyspace.newestWithPrefix("")];
  return entries.map(([key, { value, etag, position }]) => ({ key, value, etag, position }));
}

test("a snapshot has the entries of its view, although they change before it is written", () => {
  const keyspace = newKeyspace();
  const put = (key: string, value: string | undefined, etag: number) => {
    const entry = { value: value ?? "", etag, position: etag * 8, length: 32 };
    keyspace.stage(key, value === undefined ? undefined : entry);
    keyspace.commitStaged(1);
  };
  for (let n = 0; n < 2_000; n++) put(`key${n % 700}`, `${n}`.repeat(1 + (n % 9)), n + 1);
  const before = contentOf(keyspace);
  const [section] = keyspace.sections();
  const parts: Uint8Array[] = [];
  let etag = 10_000;
  for (const part of section?.parts ?? []) {
    parts.push(part);
    put(`key${(etag * 31) % 700}`, "later", ++etag);
    put(`key${(etag * 17) % 700}`, undefined, ++etag);
    put(`new${etag}`, "later", ++etag);
  }
  expect(parts.length).toBeGreaterThan(3);
  const restored = newKeyspace();
  restored.restore(new Map([["entries.values", Buffer.concat(parts)]]));
  expect(contentOf(restored)).toEqual(before);
  restored.checkInvariants();
});

test("the size of a snapshot is known before it is built", () => {
  const keyspace = newKeyspace();
  const bytes = () =>
    keyspace
      .sections()
      .flatMap(({ parts }) => [...parts])
      .reduce((sum, part) => sum + part.length, 0);
  const put = (key: string, value: string | undefined, etag: number) => {
    const length = EntryKeyspace.encodedLength(key, JSON.stringify(value ?? ""));
    const entry = { value: value ?? "", etag, position: etag * 8, length };
    keyspace.stage(key, value === undefined ? undefined : entry);
    keyspace.commitStaged(1);
  };
  expect(keyspace.snapshotBytes).toBe(0);
  for (let n = 0; n < 500; n++) put(`key${(n * 7) % 90}`, `${n}`.repeat(1 + (n % 9)), n + 1);
  expect(keyspace.snapshotBytes).toBe(bytes());
  for (let n = 0; n < 80; n++) put(`key${n}`, undefined, 1000 + n);
  keyspace.drop("key85");
  expect(keyspace.count).toBe(9);
  expect(keyspace.snapshotBytes).toBe(bytes());
  const restored = newKeyspace();
  const [section] = keyspace.sections();
  restored.restore(new Map([["entries.values", Buffer.concat([...(section?.parts ?? [])])]]));
  expect(restored.snapshotBytes).toBe(bytes());
});
