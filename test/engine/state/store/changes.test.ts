/** Listeners cannot stop writers. */
import { expect, test } from "vitest";
import type { DocumentChange } from "../../../../engine/state/store/changes.ts";
import { openTestDatabase } from "../../../support/open-test-database.ts";

test("a throwing listener is removed; other listeners and writers continue", async () => {
  const reports: unknown[] = [];
  const internalError = new Error("a listener's mistake");
  const database = await openTestDatabase({ report: (_message, cause) => reports.push(cause) });
  const heard: string[] = [];
  let calls = 0;
  database.feed.listen(() => {
    calls++;
    throw internalError;
  });
  database.feed.listen((change) => heard.push((change as DocumentChange).id));
  await Promise.all([database.put("a", {}), database.put("b", {})]);
  await database.put("c", {});
  expect(heard).toEqual(["a", "b", "c"]);
  expect(calls).toBe(1);
  expect(reports).toEqual([internalError]);
});

test("a throwing listener to commits stays, so that the waiters it wakes do not wait forever", async () => {
  const reports: unknown[] = [];
  const database = await openTestDatabase({ report: (_message, cause) => reports.push(cause) });
  let commits = 0;
  database.feed.listenToCommits(() => {
    if (++commits === 1) throw new Error("once");
  });
  await database.put("a", {});
  await database.put("b", {});
  expect(commits).toBe(2);
  expect(reports).toHaveLength(1);
});

test("a throwing listener to operations or to the closing does not affect other components", async () => {
  const reports: unknown[] = [];
  const database = await openTestDatabase({ report: (_message, cause) => reports.push(cause) });
  const fail = (): never => {
    throw new Error("a listener's mistake");
  };
  database.operations.listen(fail);
  database.feed.listenToEnd(fail);
  database.feed.listenToIndexes(fail);
  database.feed.notifyClosed("it was disabled");
  database.feed.notifyIndex("IndexAdded", "one");
  const { ended } = await database.operations.start("Nothing", "does nothing", async () => ({}));
  expect((await ended).info.state.status).toBe("completed");
  expect(reports).toHaveLength(3);
  await database.close();
});
