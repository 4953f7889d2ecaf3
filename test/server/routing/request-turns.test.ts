import { setImmediate as turn } from "node:timers/promises";
import { expect, test, vi } from "vitest";
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

function connection(isOrdered = false): Connection {
  const made = new Connection(unsecured, undefined, false, "");
  made.isOrdered = isOrdered;
  return made;
}

/** Turns whose requests take `busyMs`, and the names of those that have begun. */
function turnsOf(busyMs: number): { turns: RequestTurns; begun: string[]; add: typeof add } {
  const begun: string[] = [];
  const turns = new RequestTurns((exchange) => {
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

test("on an ordered connection the next begins when the reply before it was taken", () => {
  const { turns, begun, add } = turnsOf(0);
  const one = connection(true);
  add("a", one);
  add("b", one);
  add("c", one);
  expect(begun).toEqual(["a"]);
  turns.taken(one);
  expect(begun).toEqual(["a", "b"]);
  turns.taken(one);
  expect(begun).toEqual(["a", "b", "c"]);
  turns.taken(one);
  add("d", one);
  expect(begun).toEqual(["a", "b", "c", "d"]);
});

test("what waits on a connection that ended is forgotten, and reading pauses while much waits", async () => {
  const { turns, begun, add } = turnsOf(0);
  const one = connection(true);
  const reading: string[] = [];
  one.pause = () => reading.push("pause");
  one.resume = () => reading.push("resume");
  for (let n = 0; n < 40; n++) add(`${n}`, one);
  expect(reading).toEqual(["pause"]);
  for (let n = 0; n < 30; n++) turns.taken(one);
  // A slow machine uses up the time of a turn on the way.
  await vi.waitFor(() => expect(reading).toEqual(["pause", "resume"]));
  expect(begun.length).toBe(31);
  turns.forget(one);
  expect(turns.waitingCount).toBe(0);
  turns.taken(one);
  expect(begun.length).toBe(31);
});

test("of several connections with much to say one is read in a turn", async () => {
  const { turns } = turnsOf(0);
  const read: string[] = [];
  for (const name of ["a", "b", "c"]) turns.read(() => read.push(name));
  expect(read).toEqual([]);
  await turn();
  expect(read).toEqual(["a"]);
  await turn();
  await turn();
  expect(read).toEqual(["a", "b", "c"]);
});
