/**
 * The claim of one node to repair a replica, stored as a shared value. While it exists, no other node repairs a replica.
 * A claim of a dead node expires when it has not changed for a long time, by the clock of the observing node.
 */
import { EngineError } from "../../engine/engine.ts";
import type { ClusterView } from "./cluster-view.ts";

const key = "cluster/repair";
const staleMs = 300_000;

export class RepairClaim {
  readonly #cluster: Pick<ClusterView, "tag" | "value" | "change">;
  readonly #nowMs: () => number;
  /** Stream claimed by this node, or null. */
  #own: string | null = null;
  /** Whether the claim is to be released, but this could not be written yet. */
  #isLeft = false;
  /** Claim of another node, and the time at which it was first observed. */
  #other: { readonly text: string; readonly sinceMs: number } | null = null;

  constructor(
    cluster: Pick<ClusterView, "tag" | "value" | "change">,
    nowMs: () => number = () => performance.now(),
  ) {
    this.#cluster = cluster;
    this.#nowMs = nowMs;
  }

  /** @returns false if another node repairs a replica @throws EngineError if the values cannot be written now */
  async take(stream: string): Promise<boolean> {
    const found = this.#cluster.value(key);
    if (found !== undefined && !this.#isOver(found)) return false;
    const wanted = JSON.stringify({ tag: this.#cluster.tag, stream, at: new Date().toISOString() });
    try {
      await this.#cluster.change([{ key, expected: found ?? null, value: wanted }]);
    } catch (error) {
      if (error instanceof EngineError && error.code === "concurrency") return false;
      throw error;
    }
    this.#own = wanted;
    this.#isLeft = false;
    return true;
  }

  /** Releases the claim. If this cannot be written now, `releaseLeft` retries it. Never rejects. */
  async release(): Promise<void> {
    this.#isLeft = this.#own !== null;
    await this.releaseLeft();
  }

  async releaseLeft(): Promise<void> {
    if (!this.#isLeft || this.#own === null) return;
    try {
      await this.#cluster.change([{ key, expected: this.#own, value: null }]);
    } catch (error) {
      // Another node's claim has replaced this one.
      if (!(error instanceof EngineError) || error.code !== "concurrency") return;
    }
    this.#own = null;
    this.#isLeft = false;
  }

  /** Returns whether the claim is one of an earlier run of this node, or has expired. */
  #isOver(text: string): boolean {
    const { tag } = JSON.parse(text) as { tag: string };
    if (tag === this.#cluster.tag) return true;
    const nowMs = this.#nowMs();
    if (this.#other?.text !== text) this.#other = { text, sinceMs: nowMs };
    return nowMs - this.#other.sinceMs >= staleMs;
  }
}
