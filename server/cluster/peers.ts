/**
 * Requests to the other nodes over persistent HTTP/1.1 connections. In secured clusters both sides use TLS, and a node is
 * identified by its certificate.
 *
 * Invariants:
 * - No byte of a request is sent before the other node has presented the certificate registered for its tag. Certificate
 *   authorities play no role. A node that is registered with a certificate is never contacted without TLS.
 * - A streamed body is read only after "100 Continue", so a request refused before that can be sent to another node.
 * - A request is never retried here.
 */
import * as http from "node:http";
import * as https from "node:https";
import * as net from "node:net";
import { type Duplex, pipeline, Readable } from "node:stream";
import * as tls from "node:tls";
import { bareHost } from "../../certs/hosts.ts";
import { EngineError } from "../../engine/base/errors.ts";
import type { ServerCertificate } from "../security/server-certificate.ts";
import { tlsPolicy } from "../security/tls-policy.ts";
import type { ClusterMember, ClusterView } from "./cluster-view.ts";
import type { PeerLink, PeerReply, PeerRequest, PeerSocket } from "./peer-link.ts";

const headMs = 30_000;
/** Timeout for connecting and for the TLS handshake, in milliseconds. */
const connectMs = 5_000;
/** Maximum number of idle connections to one node. */
const idleConnectionsMax = 32;
/** Maximum idle time of a connection, in milliseconds; shorter than the idle timeout of any server. */
const idleMs = 20_000;
const headerBytesMax = 64 * 1024;

/** The certificate that this node presents. */
interface OwnCertificate {
  readonly current: ServerCertificate;
  onChange(listener: (certificate: ServerCertificate) => void): void;
}

/** The connections to one node. */
interface Link {
  readonly url: URL;
  readonly fingerprint: string | null;
  readonly agent: http.Agent;
}

export class Peers implements PeerLink {
  readonly #cluster: Pick<ClusterView, "members" | "onChange">;
  readonly #own: OwnCertificate | undefined;
  readonly #links = new Map<string, Link>();
  readonly #forgetChanges: () => void;
  #isClosed = false;

  /** `own` is undefined if the server is unsecured. */
  constructor(cluster: Pick<ClusterView, "members" | "onChange">, own: OwnCertificate | undefined) {
    this.#cluster = cluster;
    this.#own = own;
    this.#forgetChanges = cluster.onChange(() => this.#endOthers());
    own?.onChange(() => this.#renew());
  }

  async send(tag: string, request: PeerRequest): Promise<PeerReply> {
    const { method, signal } = request;
    signal?.throwIfAborted();
    const link = this.#linkTo(tag);
    const isStreamed = request.body instanceof Readable;
    const outgoing = this.#request(link, {
      method,
      path: request.target,
      headers: {
        ...request.headers,
        ...(isStreamed ? { expect: "100-continue" } : lengthOf(request)),
      },
    });
    return await new Promise<PeerReply>((resolve, reject) => {
      const fail = failure(tag, outgoing, request, reject);
      outgoing.once("response", (incoming) => {
        fail.headCame();
        // The rest of the request body is not needed.
        incoming.once("close", () => {
          if (!outgoing.writableFinished) outgoing.destroy();
        });
        resolve({ status: incoming.statusCode ?? 0, headers: incoming.headers, body: incoming });
      });
      outgoing.once("continue", () => {
        // An error of the body aborts the request, and an error of the request destroys the body.
        if (isStreamed) pipeline(request.body as Readable, outgoing, () => undefined);
      });
      outgoing.once("close", () => {
        if (isStreamed) (request.body as Readable).destroy();
      });
      if (isStreamed) outgoing.flushHeaders();
      else outgoing.end(request.body as Buffer | undefined);
    });
  }

  async upgrade(tag: string, request: PeerRequest): Promise<PeerReply | PeerSocket> {
    request.signal?.throwIfAborted();
    const link = this.#linkTo(tag);
    const outgoing = this.#request(link, {
      method: request.method,
      path: request.target,
      headers: { ...request.headers, connection: "Upgrade" },
    });
    return await new Promise<PeerReply | PeerSocket>((resolve, reject) => {
      const fail = failure(tag, outgoing, request, reject);
      outgoing.once("response", (incoming) => {
        fail.headCame();
        resolve({ status: incoming.statusCode ?? 0, headers: incoming.headers, body: incoming });
      });
      outgoing.once("upgrade", (incoming, socket: Duplex, head) => {
        fail.headCame();
        socket.on("error", () => socket.destroy());
        request.signal?.addEventListener("abort", () => socket.destroy(), { once: true });
        if (head.length > 0) socket.unshift(head);
        resolve({ headers: incoming.headers, rawHeaders: incoming.rawHeaders, socket });
      });
      outgoing.end();
    });
  }

  /** Closes all connections. */
  close(): void {
    this.#isClosed = true;
    this.#forgetChanges();
    for (const { agent } of this.#links.values()) agent.destroy();
    this.#links.clear();
  }

  #request(link: Link, options: http.RequestOptions): http.ClientRequest {
    const settings: http.RequestOptions = {
      ...options,
      protocol: link.url.protocol,
      hostname: bareHost(link.url.hostname),
      port: link.url.port || (link.url.protocol === "https:" ? 443 : 80),
      agent: link.agent,
      maxHeaderSize: headerBytesMax,
    };
    return link.url.protocol === "https:" ? https.request(settings) : http.request(settings);
  }

  /** @throws EngineError node-unreachable */
  #linkTo(tag: string): Link {
    const member = this.#cluster.members().find((one) => one.tag === tag);
    if (member === undefined || this.#isClosed) {
      throw unreachable(tag, "it is not a member of the cluster", false);
    }
    const known = this.#links.get(tag);
    if (known !== undefined && isOf(known, member)) return known;
    if (known !== undefined) retire(known);
    const link = this.#makeLink(member);
    this.#links.set(tag, link);
    return link;
  }

  /** @throws EngineError node-unreachable */
  #makeLink({ tag, url: text, fingerprint }: ClusterMember): Link {
    const url = new URL(text);
    const isSecure = url.protocol === "https:";
    if (isSecure !== (fingerprint !== null) || isSecure !== (this.#own !== undefined)) {
      const why = "only one of the two nodes has a certificate";
      throw unreachable(tag, why, false);
    }
    const options = { keepAlive: true, maxFreeSockets: idleConnectionsMax, timeout: idleMs };
    const agent =
      fingerprint === null || this.#own === undefined
        ? new PlainAgent(options)
        : new PinnedAgent(options, this.#own.current.tls, fingerprint);
    return { url, fingerprint, agent };
  }

  /**
   * Closes the connections to nodes that were removed, or have another address or certificate. Requests in progress may
   * finish: one of them may be the removal of the node, of which this node learns before the reply.
   */
  #endOthers(): void {
    const members = new Map(this.#cluster.members().map((member) => [member.tag, member]));
    for (const [tag, link] of this.#links) {
      const member = members.get(tag);
      if (member !== undefined && isOf(link, member)) continue;
      this.#links.delete(tag);
      retire(link);
    }
  }

  /** Makes new connections present the new certificate. */
  #renew(): void {
    for (const link of this.#links.values()) retire(link);
    this.#links.clear();
  }
}

/** Closes idle connections immediately, and the others after their replies. */
function retire({ agent }: Link): void {
  agent.maxFreeSockets = 0;
  for (const sockets of Object.values(agent.freeSockets)) {
    for (const socket of sockets ?? []) socket.destroy();
  }
}

/** An agent for TLS connections to the owner of one certificate. */
class PinnedAgent extends https.Agent {
  readonly #tls: tls.SecureContextOptions;
  readonly #fingerprint: string;

  constructor(options: https.AgentOptions, own: tls.SecureContextOptions, fingerprint: string) {
    super(options);
    this.#tls = own;
    this.#fingerprint = fingerprint;
  }

  override createConnection(args: http.ClientRequestArgs, made?: Made): undefined {
    const { host, port } = addressOf(args);
    const socket = tls.connect({
      ...this.#tls,
      minVersion: tlsPolicy.minVersion,
      ciphers: tlsPolicy.ciphers,
      host,
      port,
      ...(net.isIP(host) === 0 ? { servername: host } : {}),
      ALPNProtocols: ["http/1.1"],
      // `whenUsable` checks the certificate.
      rejectUnauthorized: false,
    });
    whenUsable(socket, "secureConnect", made, () => {
      const shown = socket.getPeerX509Certificate()?.fingerprint256;
      const isIt = shown === this.#fingerprint;
      return isIt
        ? null
        : new Error(
            `it presents ${shown === undefined ? "no certificate" : `the certificate ${shown}`}`,
          );
    });
    return undefined;
  }
}

/** An agent for connections without TLS. */
class PlainAgent extends http.Agent {
  override createConnection(args: http.ClientRequestArgs, made?: Made): undefined {
    whenUsable(net.connect(addressOf(args)), "connect", made, () => null);
    return undefined;
  }
}

type Made = (error: Error | null, socket: Duplex) => void;

function addressOf({ hostname, host, port }: http.ClientRequestArgs): {
  readonly host: string;
  readonly port: number;
} {
  return { host: hostname ?? host ?? "", port: Number(port) };
}

/** Passes the connection to `made` once it is established and `check` accepts it. Nothing is sent before that. */
function whenUsable(
  socket: net.Socket,
  event: "connect" | "secureConnect",
  made: Made | undefined,
  check: () => Error | null,
): void {
  socket.setNoDelay(true);
  let isMade = false;
  const done = (error: Error | null) => {
    if (isMade) return;
    isMade = true;
    clearTimeout(timer);
    if (error !== null) socket.destroy();
    socket.off("error", done);
    made?.(error, socket);
  };
  const timer = setTimeout(() => done(new Error("it does not respond")), connectMs);
  socket.on("error", done);
  socket.once(event, () => done(check()));
  socket.once("close", () => done(new Error("it closed the connection")));
}

/** Rejects if the request fails, is aborted, or has no reply head in time. */
function failure(
  tag: string,
  outgoing: http.ClientRequest,
  { signal, headMs: ownMs = headMs }: PeerRequest,
  reject: (error: unknown) => void,
): { headCame(): void } {
  let wasSent = false;
  let isLate = false;
  outgoing.once("socket", () => {
    wasSent = true;
  });
  const timer = Number.isFinite(ownMs)
    ? setTimeout(() => {
        isLate = true;
        outgoing.destroy();
      }, ownMs)
    : undefined;
  const onAbort = () => outgoing.destroy();
  signal?.addEventListener("abort", onAbort, { once: true });
  const failed = (error?: Error) => {
    clearTimeout(timer);
    if (signal?.aborted === true) reject(signal.reason);
    else {
      const detail = isLate ? `it has not replied for ${ownMs / 1000} seconds` : error?.message;
      reject(unreachable(tag, detail ?? "it closed the connection", wasSent, error));
    }
  };
  outgoing.on("error", failed);
  outgoing.once("close", () => {
    signal?.removeEventListener("abort", onAbort);
    failed();
  });
  return { headCame: () => clearTimeout(timer) };
}

function isOf({ url, fingerprint }: Link, member: ClusterMember): boolean {
  return url.href === new URL(member.url).href && fingerprint === member.fingerprint;
}

function lengthOf({ method, body }: PeerRequest): Readonly<Record<string, string>> {
  const bytes = Buffer.isBuffer(body) ? body.length : 0;
  if (bytes === 0 && (method === "GET" || method === "HEAD")) return {};
  return { "content-length": String(bytes) };
}

function unreachable(tag: string, why: string, wasSent: boolean, cause?: unknown): EngineError {
  return new EngineError("node-unreachable", `Node ${tag} could not be reached: ${why}.`, {
    cause,
    details: { wasSent, retryAfterSeconds: 1 },
  });
}
