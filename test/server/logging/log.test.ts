/** The log: levels, engine messages, references of errors. */
import { expect, test } from "vitest";
import { Log, levelNamed, silentLog } from "../../../server/logging/log.ts";
import type { LogEvent } from "../../../server/logging/log-line.ts";

function gathering(minLevel: "Info" | "Off" = "Info") {
  const events: LogEvent[] = [];
  const sink = {
    droppedCount: 3,
    write: (event: LogEvent) => events.push(event),
    close: () => Promise.resolve(),
  };
  return { log: new Log(minLevel, [sink], () => 5), events };
}

test("the level filters messages, and can be changed", () => {
  const { log, events } = gathering();
  log.write("Debug", "a");
  log.info("b");
  log.minLevel = "Debug";
  log.write("Debug", "c");
  log.minLevel = "Off";
  log.write("Fatal", "d");
  expect(events.map(({ message }) => message)).toEqual(["b", "c"]);
  expect([log.configuredLevel, log.minLevel, log.droppedCount]).toEqual(["Info", "Off", 3]);
});

test("messages of the engine have a level and a remedy", () => {
  const { log, events } = gathering();
  log.report("The disk is full", undefined, "disk-full");
  log.report("It has room", undefined, "disk-has-room");
  log.report("It failed", new Error("x"));
  log.report("Odd");
  expect(events.map(({ level }) => level)).toEqual(["Error", "Info", "Error", "Warn"]);
  expect(events[0]).toMatchObject({ fields: { event: "disk-full" } });
  expect(events[0]?.message).toMatch(/^The disk is full\. Free space /);
});

test("an error of a request has the request's reference", () => {
  const { log, events } = gathering();
  log.logError("abc", new Error("x"));
  expect(events[0]).toMatchObject({ level: "Error", message: "Error abc" });
});

test("names of levels are exact; a silent log is never on", () => {
  expect([levelNamed("Debug"), levelNamed("debug"), levelNamed(1)]).toEqual([
    "Debug",
    undefined,
    undefined,
  ]);
  expect(silentLog().isOn("Fatal")).toBe(false);
});
