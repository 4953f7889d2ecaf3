/**
 * Changes of the values that the nodes of a cluster share: made by the node that leads them, asked for by any.
 *
 * Invariants:
 * - When `change` resolves, this node's own copy has the change.
 * - A change whose outcome is not known is not made again.
 */
import { setTimeout as pause } from "node:timers/promises";
import { EngineError, type SharedValues } from "../../engine/engine.ts";
import type { ValueChange } from "./cluster-view.ts";
import type { PeerLink } from "./peer-link.ts";

/** A change waits this long for somebody who can make it, and then to come to this node. */
const changeMs = 15_000;
const retryMs = 100;
const pollMs = 10;
/** Routes between nodes: see endpoints/cluster-values.ts. */
const valuesPath = "/cluster/values";
const standPath = "/cluster/stand";

/** What another node answers. */
interface PeerResponse {
  /** The shared values have the change from here on. */
  readonly Index?: number;
  /** Why it was not made. */
  readonly Code?: string;
  readonly Message?: string;
}

export interface SharedChangesOptions {
  /** Of this node. */
  readonly tag: string;
  readonly shared: SharedValues;
  /** Who leads the shared values; null: not known. */
  readonly leaderTag: () => string | null;
  readonly isStopped: () => boolean;
}

export class SharedChanges {
  readonly #options: SharedChangesOptions;
  /** Null until this node can ask others. */
  peers: PeerLink | null = null;

  constructor(options: SharedChangesOptions) {
    this.#options = options;
  }

  /** See `ClusterView.change`. */
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

  /** See `ClusterView.changeHere`. */
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

  /** Asks a node to lead a database. @throws EngineError node-unreachable */
  async askToStand(tag: string, name: string): Promise<void> {
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
          `The change was made, and has not come to this node within ${changeMs} ms.`,
        );
      }
      await pause(pollMs);
    }
  }

  /** Asks another node. @throws EngineError node-unreachable, not-leader before this node can ask */
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
    const pieces: Buffer[] = [];
    for await (const piece of reply.body) pieces.push(piece as Buffer);
    const text = Buffer.concat(pieces).toString();
    const answer = reply.status === 200 ? (JSON.parse(text) as PeerResponse) : {};
    return { status: reply.status, answer };
  }
}

function notLeading(): EngineError {
  return new EngineError("not-leader", "No node of the cluster orders its changes at the moment.");
}

/** Was nothing changed for want of a leader, so that another try may help? */
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
    Message ?? `Node ${tag} answered the change of the cluster's values by ${status}.`,
  );
}
