/**
 * Who may use the page that `jackdaw studio` serves: the one who has the address that it printed, from then on only from
 * pages of its own origin. Knows nothing of sockets.
 *
 * - Requests that another page, or another name for this machine, can cause are foreign.
 * - A code opens the session once, while it is young.
 * - The session has two halves. Browsers send the cookie to every port of this machine, so it proves nothing alone; the
 *   other half is in a header that only the page's own scripts know.
 * - Where a script cannot set headers (sockets, downloads), a ticket stands for that header, for one address and one use.
 */
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";

export const codeMsMax = 60_000;
export const ticketMsMax = 10_000;
/** Tickets that are out at once; the oldest go first. */
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
   * Did somebody else's page cause it? Browsers tell where a request comes from: `Sec-Fetch-Site` with all but sockets,
   * `Origin` with those, and with all that is not GET or HEAD.
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

  /** A code for the session; the one before is worth nothing any more. */
  newCode(): string {
    const text = secret();
    this.#code = { text, untilMs: this.#nowMs() + codeMsMax };
    return text;
  }

  /** @returns the session's halves, the cookie as `Set-Cookie` has it; undefined: not this code, or not any more */
  enter(code: string): { readonly setCookie: string; readonly half: string } | undefined {
    const expected = this.#code;
    if (expected === undefined || !isSame(code, expected.text)) return undefined;
    this.#code = undefined;
    if (this.#nowMs() > expected.untilMs) return undefined;
    const setCookie = `${this.#cookieName}=${this.#cookie}; HttpOnly; SameSite=Strict; Path=/`;
    return { setCookie, half: this.#half };
  }

  /** Has the request both halves? */
  isSignedIn(headers: IncomingHttpHeaders): boolean {
    const half = headers[sessionHeader];
    return typeof half === "string" && isSame(half, this.#half) && this.#hasCookie(headers);
  }

  /** A ticket for a request to `target`, the path with its query. */
  ticketFor(target: string): string {
    for (const [text, { untilMs }] of this.#tickets) {
      if (untilMs >= this.#nowMs() && this.#tickets.size < ticketsMax) break;
      this.#tickets.delete(text);
    }
    const text = secret();
    this.#tickets.set(text, { target, untilMs: this.#nowMs() + ticketMsMax });
    return text;
  }

  /** The address without the ticket at its end; undefined when there is none, or none that is good for it. */
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

/** 256 bit. */
function secret(): string {
  return randomBytes(32).toString("base64url");
}

/** Takes as long for a text that is nearly right as for any other. */
function isSame(given: string, expected: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(given), digest(expected));
}
