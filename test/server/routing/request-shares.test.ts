import { expect, test } from "vitest";
import { Connection } from "../../../server/http/connection.ts";
import { RequestShares } from "../../../server/routing/request-shares.ts";
import { unsecured } from "../../../server/security/access.ts";

const from = (address: string, thumbprint = "") =>
  new Connection({ ...unsecured, thumbprint }, undefined, false, address);

test("a client gets three quarters of the limit over all its connections, other clients the rest", () => {
  const shares = new RequestShares(8);
  const [one, again, other] = [from("1.1.1.1"), from("1.1.1.1"), from("2.2.2.2")];
  const taken = [one, again, one, again, one, again].map((connection) =>
    shares.acquire(connection),
  );
  expect(taken).toEqual(Array(6).fill(false));
  expect(shares.acquire(again)).toBe(true);
  shares.release(again);
  expect([shares.acquire(other), shares.acquire(other)]).toEqual([false, false]);
  // All in all the limit.
  expect(shares.acquire(other)).toBe(true);
  shares.release(other);
  shares.release(one);
  expect(shares.acquire(other)).toBe(false);
});

test("a certificate is one client from any address, and differs from its address", () => {
  const shares = new RequestShares(4);
  for (const address of ["1.1.1.1", "2.2.2.2", "3.3.3.3"]) {
    expect(shares.acquire(from(address, "AB"))).toBe(false);
  }
  expect(shares.acquire(from("1.1.1.1"))).toBe(false);
  expect(shares.acquire(from("4.4.4.4", "AB"))).toBe(true);
});

test("released slots are counted again, for old and new connections", () => {
  const shares = new RequestShares(4);
  const stayed = from("1.1.1.1");
  for (let round = 0; round < 3; round++) {
    const fresh = from("1.1.1.1");
    expect([stayed, fresh, stayed].map((connection) => shares.acquire(connection))).toEqual([
      false,
      false,
      false,
    ]);
    expect(shares.acquire(fresh)).toBe(true);
    for (const connection of [stayed, fresh, stayed, fresh]) shares.release(connection);
  }
});
