import { setImmediate as tick } from "node:timers/promises";
import { expect, test } from "vitest";
import { Connection } from "../../../server/http/connection.ts";
import type { Exchange } from "../../../server/http/exchange.ts";
import { RequestTurns } from "../../../server/routing/request-turns.ts";
import { unsecured } from "../../../server/security/access.ts";

interface FakeExchange {
  readonly name: string;
  readonly connection: Connection;
  readonly startedMs: number;
  isClosed: boolean;
}

function connection(): Connection {
  return new Connection(unsecured, undefined, false, "");
}

/** A scheduler whose requests take `busyMs`, and the names of the started ones. */
function turnsOf(busyMs: number): { turns: RequestTurns; started: string[]; add: typeof add } {
  const started: string[] = [];
  const turns = new RequestTurns((exchange) => {
    started.push((exchange as unknown as FakeExchange).name);
    const until = performance.now() + busyMs;
    while (performance.now() < until);
  });
  function add(name: string, on: Connection): FakeExchange {
    const exchange = { name, connection: on, startedMs: performance.now(), isClosed: false };
    turns.add(exchange as unknown as Exchange);
    return exchange;
  }
  return { turns, started, add };
}

test("starts a request immediately if others took little time", () => {
  const { started, add } = turnsOf(0);
  const one = connection();
  add("a", one);
  add("b", one);
  expect(started).toEqual(["a", "b"]);
});

test("after much work, starts the next request of another connection before the rest of the first", async () => {
  const { started, add } = turnsOf(5);
  const one = connection();
  const other = connection();
  for (const name of ["a", "b", "c"]) add(name, one);
  add("x", other);
  expect(started).toEqual(["a"]);
  await tick();
  await tick();
  await tick();
  await tick();
  expect(started).toEqual(["a", "b", "x", "c"]);
});

test("never starts a request that was aborted while it waited", async () => {
  const { turns, started, add } = turnsOf(5);
  const one = connection();
  add("a", one);
  add("b", one).isClosed = true;
  add("c", one);
  expect(turns.waitingCount).toBe(2);
  await tick();
  await tick();
  expect(started).toEqual(["a", "c"]);
  expect(turns.waitingCount).toBe(0);
});

test("drops requests that wait on a closed connection", async () => {
  const { turns, started, add } = turnsOf(5);
  const one = connection();
  for (const name of ["a", "b", "c"]) add(name, one);
  turns.forget(one);
  expect(turns.waitingCount).toBe(0);
  await tick();
  await tick();
  expect(started).toEqual(["a"]);
});
