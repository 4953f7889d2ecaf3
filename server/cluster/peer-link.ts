/** Requests from this node to another one of the cluster. Implemented by `Peers`. */
import type { IncomingHttpHeaders } from "node:http";
import type { Duplex, Readable } from "node:stream";

export interface PeerRequest {
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  /** Names in lower case. */
  readonly headers?: Readonly<Record<string, string>>;
  /** One that is streamed is read when the other asks for it; otherwise nothing of it is. */
  readonly body?: Buffer | Readable;
  /** Ends the request. */
  readonly signal?: AbortSignal;
  /** Milliseconds until the head of the reply must have come; left out: 30,000; infinite: any. */
  readonly headMs?: number;
}

export interface PeerReply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Read it to its end, or destroy it. */
  readonly body: Readable;
}

/** A connection that speaks another protocol from now on. */
export interface PeerSocket {
  readonly headers: IncomingHttpHeaders;
  /** Names and values in turn, as sent. */
  readonly rawHeaders: readonly string[];
  readonly socket: Duplex;
}

export interface PeerLink {
  /**
   * Sends a request as this node: with its certificate, to the node of that tag, whose certificate must have the
   * fingerprint that the cluster has registered.
   * @throws (rejects) EngineError node-unreachable; `wasSent` of its details tells whether the other may have taken it
   */
  send(tag: string, request: PeerRequest): Promise<PeerReply>;
  /** Asks for a web socket; a reply: it was refused. @throws (rejects) as `send` */
  upgrade(tag: string, request: PeerRequest): Promise<PeerReply | PeerSocket>;
}
