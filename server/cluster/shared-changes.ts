/**
 * Changes of the shared values, made by the leading node at the request of any node.
 *
 * Invariants:
 * - When `change` resolves, this node's own copy includes the change.
 * - A change with an unknown outcome is not repeated.
 */

import { setTimeout as pause } from "node:timers/promises";
import { collectBytes } from "../../engine/base/memory/collect-bytes.ts";
import { EngineError, type SharedValues } from "../../engine/engine.ts";
import type { ValueChange } from "./cluster-view.ts";
import type { PeerLink } from "./peer-link.ts";

/** Timeout for finding a leader, and again for receiving the change on this node, in milliseconds. */
const changeMs = 15_000;
const retryMs = 100;
const pollMs = 10;
/** Path of the routes between nodes: see endpoints/cluster-values.ts. */
const valuesPath = "/cluster/values";
const standPath = "/cluster/stand";

/** The response of another node. */
interface PeerResponse {
  /** Index at which the shared values include the change. */
  readonly Index?: number;
  /** Error code if the change was not made. */
  readonly Code?: string;
  readonly Message?: string;
}

interface SharedChangesOptions {
  /** Tag of this node. */
  readonly tag: string;
  readonly shared: SharedValues;
  /** Returns the tag of the node that leads the shared values, or null if not known. */
  readonly leaderTag: () => string | null;
  readonly isStopped: () => boolean;
}

export class SharedChanges {
  readonly #options: SharedChangesOptions;
  /** Null until this node can reach others. */
  peers: PeerLink | null = null;

  constructor(options: SharedChangesOptions) {
    this.#options = options;
  }

  /** Implements `ClusterView.change`. */
  async change(changes: readonly ValueChange[]): Promise<void> {
    const untilMs = performance.now() + changeMs;
    for (;;) {
      try {
        await this.#changeOnce(changes);
        return;
      } catch (error) {
        const isLate = performance.now() > untilMs || this.#options.isStopped();
        if (!wasNotMade(error) || isLate) throw error;
      }
      await pause(retryMs);
    }
  }

  /** Implements `ClusterView.changeHere`. */
  async changeHere(changes: readonly ValueChange[]): Promise<number> {
    const { shared } = this.#options;
    if (shared.replication.role !== "leader") throw notLeading();
    await shared.change(
      changes.map(({ key, expected, value }) => ({
        key,
        expected: typeof expected === "string" ? (JSON.parse(expected) as unknown) : expected,
        value: value === null ? null : (JSON.parse(value) as unknown),
      })),
    );
    return shared.index;
  }

  /** Requests another node to lead a database. @throws EngineError node-unreachable */
  async requestCandidacy(tag: string, name: string): Promise<void> {
    await this.#post(tag, standPath, { Name: name });
  }

  async #changeOnce(changes: readonly ValueChange[]): Promise<void> {
    const { tag, shared, leaderTag } = this.#options;
    const leader = leaderTag();
    if (leader === tag) {
      await this.changeHere(changes);
      return;
    }
    if (leader === null) throw notLeading();
    const { status, answer } = await this.#post(leader, valuesPath, { Changes: changes });
    if (answer.Index === undefined) throw refusalOf(leader, status, answer);
    const untilMs = performance.now() + changeMs;
    while (shared.index < answer.Index) {
      if (performance.now() > untilMs) {
        throw new EngineError(
          "outcome-unknown",
          `The change was made, but did not arrive at this node within ${changeMs} ms.`,
        );
      }
      await pause(pollMs);
    }
  }

  /** Sends a request to another node. @throws EngineError node-unreachable, not-leader before this node can reach others */
  async #post(
    tag: string,
    path: string,
    body: unknown,
  ): Promise<{ readonly status: number; readonly answer: PeerResponse }> {
    if (this.peers === null) throw notLeading();
    const reply = await this.peers.send(tag, {
      method: "POST",
      target: path,
      headers: { "content-type": "application/json" },
      body: Buffer.from(JSON.stringify(body)),
      headMs: changeMs,
    });
    const text = (await collectBytes(reply.body)).toString();
    const answer = reply.status === 200 ? (JSON.parse(text) as PeerResponse) : {};
    return { status: reply.status, answer };
  }
}

function notLeading(): EngineError {
  return new EngineError("not-leader", "The cluster has no leader for its values at the moment.");
}

/** Returns whether nothing was changed because no leader was available, so that a retry may succeed. */
export function wasNotMade(error: unknown): boolean {
  if (!(error instanceof EngineError)) return false;
  if (error.code === "not-leader") return true;
  return error.code === "node-unreachable" && error.details?.["wasSent"] === false;
}

function refusalOf(tag: string, status: number, { Code, Message }: PeerResponse): EngineError {
  if (Code === "concurrency") return new EngineError("concurrency", Message ?? "");
  if (Code === "not-leader") return new EngineError("not-leader", Message ?? "");
  return new EngineError(
    "outcome-unknown",
    Message ?? `Node ${tag} answered the change of the shared values with status ${status}.`,
  );
}
