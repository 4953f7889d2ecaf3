import { setImmediate as turn } from "node:timers/promises";
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

test("a request begins at once while others took little", () => {
  const { begun, add } = turnsOf(0);
  const one = connection();
  add("a", one);
  add("b", one);
  expect(begun).toEqual(["a", "b"]);
});

test("after much work the next request of another connection goes before the rest of the first", async () => {
  const { begun, add } = turnsOf(5);
  const one = connection();
  const other = connection();
  for (const name of ["a", "b", "c"]) add(name, one);
  add("x", other);
  expect(begun).toEqual(["a"]);
  await turn();
  await turn();
  await turn();
  await turn();
  expect(begun).toEqual(["a", "b", "x", "c"]);
});

test("a request that was given up before its turn never begins", async () => {
  const { turns, begun, add } = turnsOf(5);
  const one = connection();
  add("a", one);
  add("b", one).isClosed = true;
  add("c", one);
  expect(turns.waitingCount).toBe(2);
  await turn();
  await turn();
  expect(begun).toEqual(["a", "c"]);
  expect(turns.waitingCount).toBe(0);
});

test("requests that wait on a closed connection are dropped", async () => {
  const { turns, begun, add } = turnsOf(5);
  const one = connection();
  for (const name of ["a", "b", "c"]) add(name, one);
  turns.forget(one);
  expect(turns.waitingCount).toBe(0);
  await turn();
  await turn();
  expect(begun).toEqual(["a"]);
});
