/**
 * Who is there: each node says so, with its status, every 500 ms on a subject of NATS that nothing stores. What is heard
 * is a hint; nothing is decided by it alone.
 *
 * Invariants:
 * - When another was heard is told by the clock of this process that never jumps.
 * - What is no heartbeat, is too large, or comes from more nodes than a cluster has, is dropped.
 */
import { randomBytes } from "node:crypto";
import { nodeTagPattern } from "../../engine/base/names.ts";

const subject = "jd.heartbeat";
export const heartbeatMs = 500;
/** Bytes of a status: about a hundred for each database. */
const statusBytesMax = 1024 * 1024;
const nodeCountMax = 100;
/** Milliseconds between two complaints about another server with this node's tag. */
const complaintMs = 60_000;

export type NodeStatus = Readonly<Record<string, unknown>>;

/** What a heartbeat needs of a connection. */
export interface HeartbeatLink {
  publish(subject: string, payload: string): void;
  subscribe(
    subject: string,
    received: (message: { readonly data: Uint8Array }) => void,
  ): { stop(): void };
}

export interface HeartbeatOptions {
  readonly link: HeartbeatLink;
  readonly tag: string;
  /** Asked for each beat; must become JSON. */
  readonly status: () => NodeStatus;
  /** Told of each beat of another node. */
  readonly heard?: (tag: string, status: NodeStatus) => void;
  readonly report: (message: string) => void;
  /** Monotonic milliseconds. */
  readonly nowMs?: () => number;
}

export interface HeardNode {
  readonly status: NodeStatus;
  /** When, by the monotonic clock of this process. */
  readonly atMs: number;
}

export class Heartbeats {
  readonly #options: HeartbeatOptions;
  readonly #nowMs: () => number;
  /** Tells this process from another one that has the same tag by mistake. */
  readonly #run = randomBytes(8).toString("hex");
  readonly #heard = new Map<string, HeardNode>();
  readonly #subscription: { stop(): void };
  readonly #timer: NodeJS.Timeout;
  #complainedMs = Number.NEGATIVE_INFINITY;

  constructor(options: HeartbeatOptions) {
    this.#options = options;
    this.#nowMs = options.nowMs ?? (() => performance.now());
    this.#subscription = options.link.subscribe(subject, ({ data }) => this.#receive(data));
    this.#timer = setInterval(() => this.beat(), heartbeatMs).unref();
    this.beat();
  }

  /** The others, by tag, each as it was heard last. */
  get heard(): ReadonlyMap<string, HeardNode> {
    return this.#heard;
  }

  /** Says now what would be said within 500 ms: after a change that others wait for. */
  beat(): void {
    const { link, tag, status, report } = this.#options;
    const text = JSON.stringify({ tag, run: this.#run, status: status() });
    if (text.length > statusBytesMax) {
      report(`The status of this node has ${text.length} characters and is not sent`);
      return;
    }
    link.publish(subject, text);
  }

  /** A node that was removed. */
  forget(tag: string): void {
    this.#heard.delete(tag);
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#subscription.stop();
  }

  #receive(data: Uint8Array): void {
    const beat = parseBeat(data);
    if (beat === null) return;
    const { tag, run, status } = beat;
    if (tag === this.#options.tag) {
      if (run !== this.#run) this.#complain();
      return;
    }
    if (!this.#heard.has(tag) && this.#heard.size >= nodeCountMax) return;
    this.#heard.set(tag, { status, atMs: this.#nowMs() });
    this.#options.heard?.(tag, status);
  }

  #complain(): void {
    if (this.#nowMs() - this.#complainedMs < complaintMs) return;
    this.#complainedMs = this.#nowMs();
    this.#options.report(
      `Another server has the tag ${this.#options.tag} of this one: give each a Cluster.NodeTag of its own`,
    );
  }
}

/** null: it is no heartbeat. */
function parseBeat(data: Uint8Array): { tag: string; run: string; status: NodeStatus } | null {
  if (data.length > statusBytesMax) return null;
  let value: unknown;
  try {
    value = JSON.parse(Buffer.from(data).toString());
  } catch {
    return null;
  }
  if (typeof value !== "object" || value === null) return null;
  const { tag, run, status } = value as Readonly<Record<string, unknown>>;
  if (typeof tag !== "string" || !nodeTagPattern.test(tag) || typeof run !== "string") return null;
  if (typeof status !== "object" || status === null || Array.isArray(status)) return null;
  return { tag, run, status: status as NodeStatus };
}
