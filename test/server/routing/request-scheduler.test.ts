import { setImmediate as tick } from "node:timers/promises";
import { expect, test } from "vitest";
import { Connection } from "../../../server/http/connection.ts";
import type { Exchange } from "../../../server/http/exchange.ts";
import { RequestScheduler } from "../../../server/routing/request-scheduler.ts";
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

/** Turns whose requests take `busyMs`, and the names of those that have begun. */
function turnsOf(busyMs: number): { turns: RequestScheduler; begun: string[]; add: typeof add } {
  const begun: string[] = [];
  const turns = new RequestScheduler((exchange) => {
    begun.push((exchange as unknown as FakeExchange).name);
    const until = performance.now() + busyMs;
    while (performance.now() < until);
  });
  function add(name: string, on: Connection): FakeExchange {
    const exchange = { name, connection: on, startedMs: performance.now(), isClosed: false };
    turns.add(exchange as unknown as Exchange);
    return exchange;
  }
  return { turns, begun, add };
}

test("starts a request immediately if others took little time", () => {
  const { begun, add } = turnsOf(0);
  const one = connection();
  add("a", one);
  add("b", one);
  expect(begun).toEqual(["a", "b"]);
});

test("after much work, starts the next request of another connection before the rest of the first", async () => {
  const { begun, add } = turnsOf(5);
  const one = connection();
  const other = connection();
  for (const name of ["a", "b", "c"]) add(name, one);
  add("x", other);
  expect(begun).toEqual(["a"]);
  await tick();
  await tick();
  await tick();
  await tick();
  expect(begun).toEqual(["a", "b", "x", "c"]);
});

test("never starts a request that was aborted while it waited", async () => {
  const { turns, begun, add } = turnsOf(5);
  const one = connection();
  add("a", one);
  add("b", one).isClosed = true;
  add("c", one);
  expect(turns.waitingCount).toBe(2);
  await tick();
  await tick();
  expect(begun).toEqual(["a", "c"]);
  expect(turns.waitingCount).toBe(0);
});

test("drops requests that wait on a closed connection", async () => {
  const { turns, begun, add } = turnsOf(5);
  const one = connection();
  for (const name of ["a", "b", "c"]) add(name, one);
  turns.forget(one);
  expect(turns.waitingCount).toBe(0);
  await tick();
  await tick();
  expect(begun).toEqual(["a"]);
});
