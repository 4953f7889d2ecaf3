/**
 * The claim of one node to repair a replica, as a value of the cluster: while it is there, no other node does. One whose
 * owner has died counts no more when it has stood unchanged for long, by the clock of whoever looks.
 */
import { EngineError } from "../../engine/engine.ts";
import type { ClusterView } from "./cluster-view.ts";

const key = "cluster/repair";
const staleMs = 300_000;

export class RepairClaim {
  readonly #cluster: Pick<ClusterView, "tag" | "value" | "change">;
  readonly #nowMs: () => number;
  /** What this node has claimed; null: nothing. */
  #own: string | null = null;
  /** Is it to be given up, which could not be written yet? */
  #isLeft = false;
  /** The claim of another node, and since when it is seen. */
  #other: { readonly text: string; readonly sinceMs: number } | null = null;

  constructor(
    cluster: Pick<ClusterView, "tag" | "value" | "change">,
    nowMs: () => number = () => performance.now(),
  ) {
    this.#cluster = cluster;
    this.#nowMs = nowMs;
  }

  /** @returns false: another node repairs @throws EngineError when the values cannot be written now */
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

  /** Gives it up; if that cannot be written now, `releaseLeft` does. Never rejects. */
  async release(): Promise<void> {
    this.#isLeft = this.#own !== null;
    await this.releaseLeft();
  }

  async releaseLeft(): Promise<void> {
    if (!this.#isLeft || this.#own === null) return;
    try {
      await this.#cluster.change([{ key, expected: this.#own, value: null }]);
    } catch (error) {
      // With another claim there, this one is gone.
      if (!(error instanceof EngineError) || error.code !== "concurrency") return;
    }
    this.#own = null;
    this.#isLeft = false;
  }

  /** Is it one of this node, of an earlier start, or one that has stood for too long? */
  #isOver(text: string): boolean {
    const { tag } = JSON.parse(text) as { tag: string };
    if (tag === this.#cluster.tag) return true;
    const nowMs = this.#nowMs();
    if (this.#other?.text !== text) this.#other = { text, sinceMs: nowMs };
    return nowMs - this.#other.sinceMs >= staleMs;
  }
}
