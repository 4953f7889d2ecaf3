/** What the protocols of an HTTP thread use of it. */
import type { HttpEvents, RequestHead } from "../link/link.ts";
import type { FrontExchange } from "./front-exchange.ts";

export interface FrontLimits {
  /** Bytes of all header fields of a request. */
  readonly headerBytesMax: number;
  readonly headerCountMax: number;
  /** Characters of path and query. */
  readonly targetLengthMax: number;
  /** Open streams per HTTP/2 connection. */
  readonly streamCountMax: number;
  /** Open connections of one HTTP thread. */
  readonly connectionCountMax: number;
  /** Milliseconds for a TLS handshake, for the headers of a request, between requests, and without progress of a reply. */
  readonly handshakeMs: number;
  readonly headersMs: number;
  readonly keepAliveMs: number;
  readonly stallMs: number;
  /** Bytes of replies that the operating system has not accepted, of one HTTP thread. */
  readonly heldReplyBytesMax: number;
  readonly compressReplies: boolean;
  /** 48 bytes of keys for TLS session tickets: a client resumes its session on any HTTP thread. */
  readonly ticketKeys: Uint8Array;
}

export interface FrontHost {
  readonly limits: FrontLimits;
  readonly events: HttpEvents;
  /** Does the server accept no more requests? */
  readonly isStopping: boolean;
  /** Returns the number of a new exchange. */
  nextExchange(): number;
  /** Reports a request to the engine thread. `body`: whole, if the head says so. */
  accept(exchange: FrontExchange, head: RequestHead, body: Buffer | undefined): void;
}
