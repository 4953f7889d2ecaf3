/**
 * Follows the contents of attachments, for a copy of them elsewhere: lists stored contents that were not copied yet.
 *
 * Invariants:
 * - A pending content stays on disk even if it is no longer referenced: the copied log may refer to it. If too many
 *   contents or bytes are pending, the follower is lost and retains nothing.
 */
import { followedContentsMax } from "../../base/limits.ts";

/** The interface of the blob store for a follower. */
interface FollowedContents {
  readonly followers: Set<ContentFollower>;
  /** Reports that no follower waits for this content: it is removed once it is unreferenced. */
  letGo(hash: string): void;
}

export class ContentFollower {
  /** Called once when it is lost. */
  whenLost: () => void = () => undefined;
  /** Called with the bytes that are on the disk only for it. */
  whenKept: (bytes: number) => void = () => undefined;
  readonly #store: FollowedContents;
  /** Bytes by hash; 0: not known. */
  readonly #waiting = new Map<string, number>();
  #isOpen = true;

  /** Registers itself with `store`. */
  constructor(store: FollowedContents, hashes: Iterable<string>) {
    this.#store = store;
    for (const hash of hashes) this.#waiting.set(hash, 0);
    store.followers.add(this);
  }

  /** Hashes of the contents that wait, oldest first. */
  get waiting(): string[] {
    return [...this.#waiting.keys()];
  }

  /** Whether it no longer retains contents. */
  get isLost(): boolean {
    return !this.#isOpen;
  }

  /** Returns another follower, of the pending contents that `isWanted` selects and of all later ones. */
  branch(isWanted: (hash: string) => boolean): ContentFollower {
    const other = new ContentFollower(this.#store, []);
    for (const [hash, bytes] of this.#waiting) if (isWanted(hash)) other.added(hash, bytes);
    if (!this.#isOpen) other.close();
    return other;
  }

  has(hash: string): boolean {
    return this.#waiting.has(hash);
  }

  /** From the store: a content was stored. */
  added(hash: string, bytes: number): void {
    this.#waiting.set(hash, bytes);
    if (this.#waiting.size > followedContentsMax) this.lose();
  }

  /** Called by the store when this content is no longer referenced. */
  unreferenced(hash: string): void {
    this.whenKept(this.#waiting.get(hash) ?? 0);
  }

  /** The copies of these are durable, or not wanted. */
  taken(hashes: Iterable<string>): void {
    for (const hash of hashes) if (this.#waiting.delete(hash)) this.#store.letGo(hash);
  }

  /** Lets go of everything. */
  lose(): void {
    if (!this.#isOpen) return;
    this.close();
    this.whenLost();
  }

  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#store.followers.delete(this);
    this.taken(this.waiting);
  }
}
