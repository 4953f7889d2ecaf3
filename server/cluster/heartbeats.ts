/**
 * Heartbeats: each node publishes its status every 500 ms on a subject of NATS that no stream stores. A received
 * heartbeat is a hint; no decision depends on it alone.
 *
 * Invariants:
 * - Invalid or oversized messages are dropped.
 */
import { randomBytes } from "node:crypto";
import { nodeTagPattern } from "../../engine/base/names.ts";

const subject = "jd.heartbeat";
export const heartbeatMs = 500;
/** Maximum size of a status, in bytes. A database takes about a hundred. */
const statusBytesMax = 1024 * 1024;
/** Minimum time between two warnings about another server with this node's tag, in milliseconds. */
const complaintMs = 60_000;

export type NodeStatus = Readonly<Record<string, unknown>>;

/** The operations of a connection that heartbeats need. */
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
  /** Returns the status to publish, which must be serializable as JSON. */
  readonly status: () => NodeStatus;
  /** Called for each heartbeat of another node. */
  readonly heard: (tag: string, status: NodeStatus) => void;
  readonly report: (message: string) => void;
  /** Monotonic milliseconds. */
  readonly nowMs?: () => number;
}

export class Heartbeats {
  readonly #options: HeartbeatOptions;
  readonly #nowMs: () => number;
  /** Distinguishes this process from another one with the same tag. */
  readonly #run = randomBytes(8).toString("hex");
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

  /** Publishes the status now instead of within 500 ms, after a change that other nodes wait for. */
  beat(): void {
    const { link, tag, status, report } = this.#options;
    const text = JSON.stringify({ tag, run: this.#run, status: status() });
    if (text.length > statusBytesMax) {
      report(`The status of this node has ${text.length} characters and is not sent`);
      return;
    }
    link.publish(subject, text);
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
    this.#options.heard(tag, status);
  }

  #complain(): void {
    if (this.#nowMs() - this.#complainedMs < complaintMs) return;
    this.#complainedMs = this.#nowMs();
    this.#options.report(
      `Another server has the same tag ${this.#options.tag}: set a unique Cluster.NodeTag on each node`,
    );
  }
}

/** Returns null if the message is not a heartbeat. */
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
