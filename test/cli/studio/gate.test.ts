/**
 * Access to the page of `jackdaw studio`: codes, sessions, tickets, and requests caused by other
 * pages.
 */
import { describe, expect, test } from "vitest";
import { codeMsMax, Gate, ticketMsMax } from "../../../cli/studio/gate.ts";

const port = 5000;
const host = `127.0.0.1:${port}`;

function gateAt() {
  const clock = { ms: 1_000_000 };
  return { clock, gate: new Gate(port, () => clock.ms) };
}

/** The headers of a page with a session. */
function enter(gate: Gate) {
  const session = gate.enter(gate.newCode());
  if (session === undefined) throw new Error("the code was refused");
  const cookie = session.setCookie.split(";")[0] as string;
  return { cookie, "x-jackdaw-session": session.half };
}

describe("a request", () => {
  const own = { host, "sec-fetch-site": "same-origin" };
  test.each([
    ["a typed URL", "GET", { host, "sec-fetch-site": "none" }],
    ["a file of the page", "GET", own],
    ["a change by the page", "POST", { ...own, origin: `http://${host}` }],
    ["the other name of this machine", "GET", { ...own, host: `localhost:${port}` }],
    [
      "a socket, for which the browser sends only the origin",
      "GET",
      { host, origin: `http://${host}` },
    ],
  ])("from the page itself is accepted: %s", (_what, method, headers) => {
    expect(gateAt().gate.isForeign(method, headers)).toBe(false);
  });

  test.each([
    [
      "another name for this address (DNS rebinding)",
      "GET",
      { ...own, host: `evil.example:${port}` },
    ],
    ["this machine's name with another port", "GET", { ...own, host: "127.0.0.1:5001" }],
    ["a name with the same prefix", "GET", { ...own, host: `${host}.evil.example` }],
    ["no name", "GET", { "sec-fetch-site": "none" }],
    ["a foreign page", "POST", { ...own, origin: "https://evil.example" }],
    ["a page of another port", "POST", { host, origin: "http://127.0.0.1:5001" }],
    ["a page without an origin", "POST", { host, origin: "null" }],
    ["the own address over TLS", "POST", { host, origin: `https://${host}` }],
    ["the other own name", "POST", { host, origin: `http://localhost:${port}` }],
    ["an image in a foreign page", "GET", { host, "sec-fetch-site": "cross-site" }],
    ["a page of another port, by its site", "GET", { host, "sec-fetch-site": "same-site" }],
    ["a form without an origin", "POST", own],
    ["a program without metadata headers", "GET", { host }],
  ])("caused by another page is rejected: %s", (_what, method, headers) => {
    expect(gateAt().gate.isForeign(method, headers)).toBe(true);
  });
});

describe("a code", () => {
  test("opens a session once", () => {
    const { gate } = gateAt();
    const code = gate.newCode();
    expect(Buffer.from(code, "base64url")).toHaveLength(32);
    expect(gate.enter(code)?.setCookie).toMatch(
      /^jackdaw-5000=[\w-]{43}; HttpOnly; SameSite=Strict; Path=\/$/,
    );
    expect(gate.enter(code)).toBeUndefined();
  });

  test("is invalid after a minute, after a newer one, and if it was never issued", () => {
    const { gate, clock } = gateAt();
    expect(gate.enter("")).toBeUndefined();
    const old = gate.newCode();
    clock.ms += codeMsMax + 1;
    expect(gate.enter(old)).toBeUndefined();
    const replaced = gate.newCode();
    const newest = gate.newCode();
    expect(gate.enter(replaced)).toBeUndefined();
    expect(gate.enter(`${newest}x`)).toBeUndefined();
    clock.ms += codeMsMax;
    expect(gate.enter(newest)).toBeDefined();
  });
});

describe("the session", () => {
  test("requires both halves", () => {
    const { gate } = gateAt();
    const headers = enter(gate);
    expect(gate.isSignedIn(headers)).toBe(true);
    expect(gate.isSignedIn({ ...headers, cookie: `a=1; ${headers.cookie}; b=2` })).toBe(true);
    expect(gate.isSignedIn({ cookie: headers.cookie })).toBe(false);
    expect(gate.isSignedIn({ "x-jackdaw-session": headers["x-jackdaw-session"] })).toBe(false);
    expect(gate.isSignedIn({ ...headers, cookie: headers.cookie.replace("5000", "5001") })).toBe(
      false,
    );
    expect(gateAt().gate.isSignedIn(headers)).toBe(false);
  });
});

describe("a ticket", () => {
  const target = "/databases/shop/changes?id=1";
  const withTicket = (gate: Gate, path = target) =>
    `${path}${path.includes("?") ? "&" : "?"}jackdaw-ticket=${gate.ticketFor(path)}`;

  test("is valid for one request to its address, with the cookie", () => {
    const { gate } = gateAt();
    const { cookie } = enter(gate);
    const address = withTicket(gate);
    expect(gate.takeTicket(address, { cookie })).toBe(target);
    expect(gate.takeTicket(address, { cookie })).toBeUndefined();
    expect(gate.takeTicket(withTicket(gate, "/plain"), { cookie })).toBe("/plain");
    expect(gate.takeTicket(withTicket(gate), {})).toBeUndefined();
    expect(gate.takeTicket(target, { cookie })).toBeUndefined();
    const ticket = gate.ticketFor(target);
    expect(
      gate.takeTicket(`/databases/other?jackdaw-ticket=${ticket}`, { cookie }),
    ).toBeUndefined();
  });

  test("expires after ten seconds", () => {
    const { gate, clock } = gateAt();
    const { cookie } = enter(gate);
    const [first, second] = [withTicket(gate), withTicket(gate)];
    clock.ms += ticketMsMax;
    expect(gate.takeTicket(first, { cookie })).toBe(target);
    clock.ms += 1;
    expect(gate.takeTicket(second, { cookie })).toBeUndefined();
  });

  test("is dropped once a thousand newer ones exist", () => {
    const { gate } = gateAt();
    const { cookie } = enter(gate);
    const first = withTicket(gate);
    const others = Array.from({ length: 1000 }, () => withTicket(gate));
    expect(gate.takeTicket(first, { cookie })).toBeUndefined();
    expect(gate.takeTicket(others[0] as string, { cookie })).toBe(target);
  });
});
