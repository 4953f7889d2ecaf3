import { expect, test } from "vitest";
import { EngineError } from "../../../engine/base/errors.ts";
import { jsonTooLarge, overloaded, RequestError } from "../../../server/http/request-error.ts";
import { Log } from "../../../server/logging/log.ts";
import type { LogEvent } from "../../../server/logging/log-line.ts";
import { LimitCounts, limitOf } from "../../../server/monitoring/limit-counts.ts";

test("distinguishes limits from other errors", () => {
  const disabled = "Raven.Client.Exceptions.Database.DatabaseDisabledException";
  expect(
    [
      new EngineError("work-limit", "x"),
      new EngineError("disk-full", "x"),
      overloaded(3),
      jsonTooLarge(5),
      new EngineError("query-syntax", "x"),
      new RequestError(503, disabled, "x"),
      new Error("x"),
    ].map(limitOf),
  ).toEqual(["query-work", "disk", "load", "size", undefined, undefined, undefined]);
});

test("counts each hit, and logs a few of each limit with the remedy", () => {
  const events: LogEvent[] = [];
  const sink = {
    droppedCount: 0,
    write: (event: LogEvent) => void events.push(event),
    close: () => Promise.resolve(),
  };
  const limits = new LimitCounts(new Log("Info", [sink]));
  for (let i = 0; i < 100; i++) limits.failed(overloaded(7), "/a", "mine");
  limits.failed(jsonTooLarge(5), "/b", null);
  limits.failed(new Error("x"), "/b", null);
  expect(limits.counts).toMatchObject({ load: 100, size: 1, "query-work": 0 });
  expect(events.map(({ fields }) => fields?.["limit"])).toEqual(["load", "load", "load", "size"]);
  expect(events[0]?.message).toContain("Http.MaxRequestsInFlight");
  expect(events[0]?.fields).toMatchObject({ event: "limit-hit", route: "/a", database: "mine" });
});
