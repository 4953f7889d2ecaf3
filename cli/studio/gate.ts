/**
 * Access control of the page that `jackdaw studio` serves: only the holder of the printed address can open a session,
 * which only pages of its own origin can use. Independent of sockets.
 *
 * - Requests that another page or another host name can cause are foreign.
 * - A code opens the session once, before it expires.
 * - The session has two secrets. Browsers send the cookie to every port of this machine, so it is insufficient alone;
 *   the other secret is sent in a header that only the page's own scripts know.
 * - Where a script cannot set headers (web sockets, downloads), a single-use ticket for one address replaces the
 *   header.
 */
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";

export const codeMsMax = 60_000;
export const ticketMsMax = 10_000;
/** Maximum number of valid tickets; the oldest are dropped first. */
const ticketsMax = 1000;

export const sessionHeader = "x-jackdaw-session";
const ticketParameter = /[?&]jackdaw-ticket=([\w-]*)$/;

interface Ticket {
  readonly target: string;
  readonly untilMs: number;
}

export class Gate {
  readonly #hosts: ReadonlySet<string>;
  readonly #cookieName: string;
  readonly #nowMs: () => number;
  readonly #cookie = secret();
  readonly #half = secret();
  #code: { readonly text: string; readonly untilMs: number } | undefined;
  readonly #tickets = new Map<string, Ticket>();

  constructor(port: number, nowMs: () => number) {
    this.#hosts = new Set([`127.0.0.1:${port}`, `localhost:${port}`]);
    this.#cookieName = `jackdaw-${port}`;
    this.#nowMs = nowMs;
  }

  /**
   * Returns true if a page of another origin may have caused the request. Browsers send `Sec-Fetch-Site` with all
   * requests but web sockets, and `Origin` with web sockets and with all methods but GET and HEAD.
   */
  isForeign(method: string, headers: IncomingHttpHeaders): boolean {
    const { host = "", origin } = headers;
    if (!this.#hosts.has(host)) return true;
    if (origin !== undefined && origin !== `http://${host}`) return true;
    const site = headers["sec-fetch-site"];
    if (site !== undefined && site !== "same-origin" && site !== "none") return true;
    const isReading = method === "GET" || method === "HEAD";
    return origin === undefined && (!isReading || site === undefined);
  }

  /** Creates a code for the session and invalidates the previous code. */
  newCode(): string {
    const text = secret();
    this.#code = { text, untilMs: this.#nowMs() + codeMsMax };
    return text;
  }

  /**
   * Opens the session. @returns its two secrets, the cookie in the format of `Set-Cookie`; undefined for a wrong or
   * expired code
   */
  enter(code: string): { readonly setCookie: string; readonly half: string } | undefined {
    const expected = this.#code;
    if (expected === undefined || !isSame(code, expected.text)) return undefined;
    this.#code = undefined;
    if (this.#nowMs() > expected.untilMs) return undefined;
    const setCookie = `${this.#cookieName}=${this.#cookie}; HttpOnly; SameSite=Strict; Path=/`;
    return { setCookie, half: this.#half };
  }

  /** Returns true if a request has both secrets. */
  isSignedIn(headers: IncomingHttpHeaders): boolean {
    const half = headers[sessionHeader];
    return typeof half === "string" && isSame(half, this.#half) && this.#hasCookie(headers);
  }

  /** Creates a ticket for a request to `target`, the path with its query. */
  ticketFor(target: string): string {
    for (const [text, { untilMs }] of this.#tickets) {
      if (untilMs >= this.#nowMs() && this.#tickets.size < ticketsMax) break;
      this.#tickets.delete(text);
    }
    const text = secret();
    this.#tickets.set(text, { target, untilMs: this.#nowMs() + ticketMsMax });
    return text;
  }

  /** Redeems the ticket at the end of the address. @returns the address without it; undefined without a valid ticket */
  takeTicket(target: string, headers: IncomingHttpHeaders): string | undefined {
    const text = ticketParameter.exec(target)?.[1];
    if (text === undefined || !this.#hasCookie(headers)) return undefined;
    const ticket = this.#tickets.get(text);
    this.#tickets.delete(text);
    const bare = target.replace(ticketParameter, "");
    const isGood = ticket?.target === bare && this.#nowMs() <= ticket.untilMs;
    return isGood ? bare : undefined;
  }

  #hasCookie({ cookie = "" }: IncomingHttpHeaders): boolean {
    const prefix = `${this.#cookieName}=`;
    const given = cookie.split("; ").find((part) => part.startsWith(prefix));
    return given !== undefined && isSame(given.slice(prefix.length), this.#cookie);
  }
}

/** Returns a random secret of 256 bits. */
function secret(): string {
  return randomBytes(32).toString("base64url");
}

/** Compares in constant time. */
function isSame(given: string, expected: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(given), digest(expected));
}
