/** Requests from this node to other nodes of the cluster. Implemented by `Peers`. */
import type { IncomingHttpHeaders } from "node:http";
import type { Duplex, Readable } from "node:stream";

export interface PeerRequest {
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  /** By name in lower case. */
  readonly headers?: Readonly<Record<string, string>>;
  /** A stream is read only after the other node has requested it with "100 Continue". */
  readonly body?: Buffer | Readable;
  /** Aborts the request. */
  readonly signal?: AbortSignal;
  /** Timeout for the head of the reply, in milliseconds. Default: 30,000; infinite for none. */
  readonly headMs?: number;
}

export interface PeerReply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Must be read to its end or destroyed. */
  readonly body: Readable;
}

/** An upgraded connection. */
export interface PeerSocket {
  readonly headers: IncomingHttpHeaders;
  /** Names and values, alternating, as received. */
  readonly rawHeaders: readonly string[];
  readonly socket: Duplex;
}

export interface PeerLink {
  /**
   * Sends a request as this node, with its certificate. The other node's certificate must have the fingerprint that is
   * registered for the tag.
   * @throws (rejects) EngineError node-unreachable; `wasSent` in its details is true if the other node may have received it
   */
  send(tag: string, request: PeerRequest): Promise<PeerReply>;
  /** Requests a web socket. Resolves to a reply if it was refused. @throws (rejects) as `send` */
  upgrade(tag: string, request: PeerRequest): Promise<PeerReply | PeerSocket>;
}
