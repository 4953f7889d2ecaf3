import { expect, test } from "vitest";
import { isAbout, type Notice } from "../../../studio/base/notices.ts";

const put: Notice = {
  Type: "DocumentChange",
  Value: { Type: "Put", Id: "orders/1-A", CollectionName: "Orders", ChangeVector: "A:1" },
};
const indexed: Notice = { Type: "IndexChange", Value: { Type: "BatchCompleted", Name: "A/B" } };
const counted: Notice = {
  Type: "CounterChange",
  Value: { Type: "Put", Name: "likes", DocumentId: "orders/1-A" },
};

test("a watcher receives only the changes it watches, in any letter case", () => {
  expect(isAbout("watch-docs", null, put)).toBe(true);
  expect(isAbout("watch-collection", "orders", put)).toBe(true);
  expect(isAbout("watch-collection", "Companies", put)).toBe(false);
  expect(isAbout("watch-doc", "Orders/1-a", put)).toBe(true);
  expect(isAbout("watch-doc", "orders/1", put)).toBe(false);
  expect(isAbout("watch-prefix", "ORDERS/", put)).toBe(true);
  expect(isAbout("watch-indexes", null, put)).toBe(false);
  expect(isAbout("watch-index", "a/b", indexed)).toBe(true);
  expect(isAbout("watch-index", "a/c", indexed)).toBe(false);
  expect(isAbout("watch-document-counters", "orders/1-A", counted)).toBe(true);
  expect(isAbout("watch-doc", "orders/1-A", counted)).toBe(false);
});

test("operations are distinguished by their numbers", () => {
  const done: Notice = {
    Type: "OperationStatusChange",
    Value: { OperationId: 42, State: { Status: "Completed", Progress: null, Result: null } },
  };
  expect(isAbout("watch-operation", "42", done)).toBe(true);
  expect(isAbout("watch-operation", "4", done)).toBe(false);
  expect(isAbout("watch-operations", null, done)).toBe(true);
});

test("all watchers are notified of missed changes", () => {
  expect(isAbout("watch-doc", "orders/1-A", { Type: "Missed" })).toBe(true);
});
