/**
 * A B+tree from keys to values in memory. Knows nothing of documents or disks.
 *
 * A clone shares every node with its origin; both copy a shared node before they change it (copy on write). So
 * `clone()` costs O(1) and gives a snapshot of the tree.
 *
 * Invariants:
 * - Keys are unique and ascend by `compare`; all leaves are at the same depth.
 * - Every node but the root holds between ceil(fanOut / 2) and fanOut keys (leaf) or children (branch);
 *   a root that is a branch has at least two children.
 * - `branch.keys[i]` is greater than all keys under child `i`, and at most the least under `i + 1`.
 * - A node is changed only by the tree whose token it carries.
 */
import { assert } from "../assert.ts";
import type { Compare } from "./compare.ts";
import { countBelow, search } from "./search.ts";

const fanOutDefault = 32;

/** Marks the nodes that a tree owns; only its identity matters. */
type Token = object;

interface Leaf<K, V> {
  readonly kind: "leaf";
  readonly token: Token;
  readonly keys: K[];
  readonly values: V[];
}

interface Branch<K, V> {
  readonly kind: "branch";
  readonly token: Token;
  readonly keys: K[];
  readonly children: TreeNode<K, V>[];
}

type TreeNode<K, V> = Leaf<K, V> | Branch<K, V>;

/** A range of keys and its direction. An undefined bound is open; bounds are inclusive. */
export interface KeyRange<K> {
  readonly lower?: K | undefined;
  readonly upper?: K | undefined;
  readonly descending?: boolean | undefined;
}

/** @typeParam K - any keys but `undefined`, which means "no bound". */
export class BTree<K, V> {
  readonly compare: Compare<K>;
  readonly fanOut: number;
  #root: TreeNode<K, V>;
  #token: Token = {};
  #size = 0;
  #changeCount = 0;
  /**
   * The leaf of the last `set`, if nothing was deleted since. The next key often belongs there, and costs 20 to 35 %
   * less; keys in random order cost the same within the noise.
   */
  #near: Leaf<K, V> | null = null;

  /** @param fanOut - maximum keys of a leaf and children of a branch; at least 4. */
  constructor(compare: Compare<K>, fanOut: number = fanOutDefault) {
    assert(fanOut >= 4, "a B+tree node holds at least four");
    this.compare = compare;
    this.fanOut = fanOut;
    this.#root = { kind: "leaf", token: this.#token, keys: [], values: [] };
  }

  /** Number of keys. */
  get size(): number {
    return this.#size;
  }

  /** Increases with every change; a cursor is valid only while it is unchanged. */
  get changeCount(): number {
    return this.#changeCount;
  }

  /** Returns the value of `key`, or undefined. Cost: O(log size). */
  get(key: K): V | undefined {
    const leaf = this.#leafOf(key);
    const at = search(leaf.keys, key, this.compare);
    return at < 0 ? undefined : leaf.values[at];
  }

  has(key: K): boolean {
    return search(this.#leafOf(key).keys, key, this.compare) >= 0;
  }

  /** Sets the value of `key`; returns the previous one, or undefined. The stored key is replaced as well. */
  set(key: K, value: V): V | undefined {
    this.#changeCount++;
    const near = this.#near;
    if (near !== null && this.#mayTake(near, key)) return this.#insert(near, key, value);
    const root = this.#own(this.#root);
    this.#root = root;
    const sizeBefore = this.#size;
    const previous = this.#insert(root, key, value);
    if (this.#size !== sizeBefore && widthOf(root) > this.fanOut) {
      const keys: K[] = [];
      const children: TreeNode<K, V>[] = [root];
      this.#splitChild(keys, children, 0);
      this.#root = { kind: "branch", token: this.#token, keys, children };
    }
    return previous;
  }

  /** Removes `key`; returns its value, or undefined. */
  delete(key: K): V | undefined {
    if (!this.has(key)) return undefined; // so that no shared node is copied needlessly
    this.#changeCount++;
    this.#near = null;
    const root = this.#own(this.#root);
    const previous = this.#remove(root, key);
    this.#size--;
    const only =
      root.kind === "branch" && root.children.length === 1 ? root.children[0] : undefined;
    this.#root = only ?? root;
    return previous;
  }

  clear(): void {
    this.#changeCount++;
    this.#near = null;
    this.#token = {};
    this.#root = { kind: "leaf", token: this.#token, keys: [], values: [] };
    this.#size = 0;
  }

  /** Returns the least key with its value, or undefined when empty. */
  first(): [K, V] | undefined {
    return this.#end(false);
  }

  /** Returns the greatest key with its value, or undefined when empty. */
  last(): [K, V] | undefined {
    return this.#end(true);
  }

  /** Returns an independent tree with the same content. Cost: O(1). */
  clone(): BTree<K, V> {
    const copy = new BTree<K, V>(this.compare, this.fanOut);
    copy.#root = this.#root;
    copy.#size = this.#size;
    this.#token = {}; // the nodes so far are owned by neither tree: both copy before they change them
    return copy;
  }

  /**
   * Returns a cursor positioned before the first key of `range`. It must not be used after the tree has changed; to
   * change a tree during an iteration, iterate over a clone.
   */
  cursor(range: KeyRange<K> = {}): TreeCursor<K, V> {
    return new TreeCursor(this, this.#root, range);
  }

  /** Yields the entries of `range`; a convenience over `cursor` that allocates an array per entry. */
  *entries(range: KeyRange<K> = {}): Generator<[K, V]> {
    const cursor = this.cursor(range);
    while (cursor.next()) yield [cursor.key, cursor.value];
  }

  /** Returns the number of keys in `range`. Cost: O(log size + leaves touched). */
  count(range: KeyRange<K> = {}): number {
    if (range.lower === undefined && range.upper === undefined) return this.#size;
    const cursor = this.cursor(range);
    let count = 0;
    while (cursor.next()) count++;
    return count;
  }

  /** @throws InvariantError when an invariant listed above does not hold. Cost: O(size). */
  checkInvariants(): void {
    const depths = new Set<number>();
    const counted = this.#check(this.#root, 0, undefined, undefined, depths);
    assert(counted === this.#size, "size counts the tree's keys");
    assert(depths.size === 1, "all leaves are at one depth");
  }

  #leafOf(key: K): Leaf<K, V> {
    let node = this.#root;
    while (node.kind === "branch")
      node = childOf(node, countBelow(node.keys, key, true, this.compare));
    return node;
  }

  /** Whether `key` is between the keys of a leaf of this tree, which has room for it. */
  #mayTake({ token, keys }: Leaf<K, V>, key: K): boolean {
    const { length } = keys;
    return (
      length > 0 &&
      length < this.fanOut &&
      token === this.#token &&
      this.compare(keys[0] as K, key) < 0 &&
      this.compare(keys[length - 1] as K, key) > 0
    );
  }

  #end(last: boolean): [K, V] | undefined {
    if (this.#size === 0) return undefined;
    let node = this.#root;
    while (node.kind === "branch") node = childOf(node, last ? node.children.length - 1 : 0);
    const at = last ? node.keys.length - 1 : 0;
    return [node.keys[at] as K, node.values[at] as V]; // leaves of a tree that is not empty have keys
  }

  /** `node` itself when this tree owns it, else a copy that it owns. */
  #own(node: TreeNode<K, V>): TreeNode<K, V> {
    if (node.token === this.#token) return node;
    const token = this.#token;
    if (node.kind === "leaf") {
      return { kind: "leaf", token, keys: node.keys.slice(), values: node.values.slice() };
    }
    return { kind: "branch", token, keys: node.keys.slice(), children: node.children.slice() };
  }

  #ownChild(branch: Branch<K, V>, at: number): TreeNode<K, V> {
    const child = this.#own(childOf(branch, at));
    branch.children[at] = child;
    return child;
  }

  /** Inserts the entry under the owned `node`, which may become one too wide. */
  #insert(node: TreeNode<K, V>, key: K, value: V): V | undefined {
    if (node.kind === "branch") {
      const at = isAbove(node.keys, key, this.compare)
        ? node.keys.length
        : countBelow(node.keys, key, true, this.compare);
      const child = this.#ownChild(node, at);
      const previous = this.#insert(child, key, value);
      if (widthOf(child) > this.fanOut) this.#splitChild(node.keys, node.children, at);
      return previous;
    }
    this.#near = node;
    if (isAbove(node.keys, key, this.compare)) {
      node.keys.push(key);
      node.values.push(value);
      this.#size++;
      return undefined;
    }
    const at = search(node.keys, key, this.compare);
    if (at >= 0) {
      const previous = node.values[at];
      node.keys[at] = key;
      node.values[at] = value;
      return previous;
    }
    node.keys.splice(~at, 0, key);
    node.values.splice(~at, 0, value);
    this.#size++;
    return undefined;
  }

  /** Splits the owned child `at` into two halves. */
  #splitChild(keys: K[], children: TreeNode<K, V>[], at: number): void {
    const child = children[at] as TreeNode<K, V>; // the caller has just widened it
    const keep = widthOf(child) >>> 1;
    if (child.kind === "leaf") {
      const right = { keys: child.keys.splice(keep), values: child.values.splice(keep) };
      keys.splice(at, 0, right.keys[0] as K); // a split-off half is never empty
      children.splice(at + 1, 0, { kind: "leaf", token: this.#token, ...right });
      return;
    }
    const right = { keys: child.keys.splice(keep), children: child.children.splice(keep) };
    keys.splice(at, 0, child.keys.pop() as K); // the separator before child `keep` moves up
    children.splice(at + 1, 0, { kind: "branch", token: this.#token, ...right });
  }

  /** Removes the existing `key` from under the owned `node`, which may become one too narrow. */
  #remove(node: TreeNode<K, V>, key: K): V | undefined {
    if (node.kind === "leaf") {
      const at = search(node.keys, key, this.compare);
      const previous = node.values[at];
      node.keys.splice(at, 1);
      node.values.splice(at, 1);
      return previous;
    }
    const at = countBelow(node.keys, key, true, this.compare);
    const child = this.#ownChild(node, at);
    const previous = this.#remove(child, key);
    if (widthOf(child) < Math.ceil(this.fanOut / 2)) this.#widen(node, at);
    return previous;
  }

  /** Child `at` is one too narrow: borrows from a sibling that can spare an entry, or merges with one. */
  #widen(branch: Branch<K, V>, at: number): void {
    const least = Math.ceil(this.fanOut / 2);
    if (at > 0 && widthOf(childOf(branch, at - 1)) > least) this.#moveRight(branch, at - 1);
    else if (at + 1 < branch.children.length && widthOf(childOf(branch, at + 1)) > least) {
      this.#moveLeft(branch, at);
    } else this.#join(branch, at > 0 ? at - 1 : at);
  }

  /** Moves the last of child `at` to the front of child `at + 1`. */
  #moveRight(branch: Branch<K, V>, at: number): void {
    const left = this.#ownChild(branch, at);
    const right = this.#ownChild(branch, at + 1);
    if (left.kind === "leaf" && right.kind === "leaf") {
      right.keys.unshift(left.keys.pop() as K); // the giver has more than the minimum, so it has one
      right.values.unshift(left.values.pop() as V);
      branch.keys[at] = right.keys[0] as K;
    } else if (left.kind === "branch" && right.kind === "branch") {
      right.keys.unshift(branch.keys[at] as K); // the separator moves down, the giver's last key moves up
      branch.keys[at] = left.keys.pop() as K;
      right.children.unshift(left.children.pop() as TreeNode<K, V>);
    }
  }

  /** Moves the first of child `at + 1` to the end of child `at`. */
  #moveLeft(branch: Branch<K, V>, at: number): void {
    const left = this.#ownChild(branch, at);
    const right = this.#ownChild(branch, at + 1);
    if (left.kind === "leaf" && right.kind === "leaf") {
      left.keys.push(right.keys.shift() as K); // see #moveRight
      left.values.push(right.values.shift() as V);
      branch.keys[at] = right.keys[0] as K;
    } else if (left.kind === "branch" && right.kind === "branch") {
      left.keys.push(branch.keys[at] as K);
      branch.keys[at] = right.keys.shift() as K;
      left.children.push(right.children.shift() as TreeNode<K, V>);
    }
  }

  /** Merges child `at + 1` into child `at`. */
  #join(branch: Branch<K, V>, at: number): void {
    const left = this.#ownChild(branch, at);
    const right = childOf(branch, at + 1);
    if (left.kind === "leaf" && right.kind === "leaf") {
      left.keys.push(...right.keys);
      left.values.push(...right.values);
    } else if (left.kind === "branch" && right.kind === "branch") {
      left.keys.push(branch.keys[at] as K, ...right.keys); // at < branch.keys.length: it has a right sibling
      left.children.push(...right.children);
    }
    branch.keys.splice(at, 1);
    branch.children.splice(at + 1, 1);
  }

  /** Checks the nodes under `node`, whose keys are in [lower, upper); returns their number of keys. */
  #check(
    node: TreeNode<K, V>,
    depth: number,
    lower: K | undefined,
    upper: K | undefined,
    depths: Set<number>,
  ): number {
    const least = node.kind === "branch" ? 2 : 0;
    const narrowest = node === this.#root ? least : Math.ceil(this.fanOut / 2);
    assert(
      widthOf(node) >= narrowest && widthOf(node) <= this.fanOut,
      "nodes are filled within bounds",
    );
    for (const [at, key] of node.keys.entries()) {
      const next = node.keys[at + 1];
      assert(next === undefined || this.compare(key, next) < 0, "keys ascend");
      assert(
        lower === undefined || this.compare(lower, key) <= 0,
        "keys are above the separator left of them",
      );
      assert(
        upper === undefined || this.compare(key, upper) < 0,
        "keys are below the separator right of them",
      );
    }
    if (node.kind === "leaf") {
      assert(node.keys.length === node.values.length, "each key has a value");
      depths.add(depth);
      return node.keys.length;
    }
    assert(node.children.length === node.keys.length + 1, "separators stand between children");
    let count = 0;
    for (const [at, child] of node.children.entries()) {
      count += this.#check(
        child,
        depth + 1,
        node.keys[at - 1] ?? lower,
        node.keys[at] ?? upper,
        depths,
      );
    }
    return count;
  }
}

/**
 * Iterates over a range of a tree: `while (cursor.next()) use(cursor.key, cursor.value)`. Allocates nothing per entry.
 * `key` and `value` are set only after `next()` returned true.
 */
export class TreeCursor<K, V> {
  readonly #tree: BTree<K, V>;
  readonly #changeCount: number;
  readonly #descending: boolean;
  readonly #stop: K | undefined;
  /** The branches above the leaf, and the index of the child in each. */
  readonly #path: Branch<K, V>[] = [];
  readonly #childIndexes: number[] = [];
  #leaf: Leaf<K, V>;
  #at: number;

  /** Created by `BTree.cursor`. */
  constructor(tree: BTree<K, V>, root: TreeNode<K, V>, range: KeyRange<K>) {
    this.#tree = tree;
    this.#changeCount = tree.changeCount;
    this.#descending = range.descending === true;
    this.#stop = this.#descending ? range.lower : range.upper;
    const start = this.#descending ? range.upper : range.lower;
    let node = root;
    while (node.kind === "branch") {
      const open = this.#descending ? node.children.length - 1 : 0;
      const turn = start === undefined ? open : countBelow(node.keys, start, true, tree.compare);
      this.#path.push(node);
      this.#childIndexes.push(turn);
      node = childOf(node, turn);
    }
    this.#leaf = node;
    const open = this.#descending ? node.keys.length : 0;
    // Ascending, the keys below the start are skipped; descending, the keys above it.
    const below =
      start === undefined ? open : countBelow(node.keys, start, this.#descending, tree.compare);
    this.#at = this.#descending ? below : below - 1;
  }

  get key(): K {
    return this.#leaf.keys[this.#at] as K; // next() stopped on an entry
  }

  get value(): V {
    return this.#leaf.values[this.#at] as V; // next() stopped on an entry
  }

  /** Moves to the next entry; false at the end, and from then on. */
  next(): boolean {
    assert(this.#changeCount === this.#tree.changeCount, "a tree does not change under a cursor");
    const step = this.#descending ? -1 : 1;
    this.#at += step;
    while (this.#at < 0 || this.#at >= this.#leaf.keys.length) {
      if (!this.#nextLeaf(step)) return this.#end(step);
    }
    if (this.#stop === undefined) return true;
    if (this.#tree.compare(this.key, this.#stop) * step <= 0) return true;
    return this.#end(step);
  }

  /** Steps back from the entry after the end, so that the next call ends there again. */
  #end(step: number): false {
    this.#at -= step;
    return false;
  }

  #nextLeaf(step: number): boolean {
    let level = this.#path.length - 1;
    while (level >= 0) {
      const branch = this.#path[level] as Branch<K, V>; // level < path.length
      const turn = (this.#childIndexes[level] as number) + step;
      if (turn >= 0 && turn < branch.children.length) {
        this.#childIndexes[level] = turn;
        this.#descend(childOf(branch, turn), level + 1);
        return true;
      }
      level--;
    }
    return false;
  }

  /** Descends from `node`, at `level`, along the edge where this direction begins. */
  #descend(node: TreeNode<K, V>, level: number): void {
    let below = node;
    for (let depth = level; below.kind === "branch"; depth++) {
      const turn = this.#descending ? below.children.length - 1 : 0;
      this.#path[depth] = below;
      this.#childIndexes[depth] = turn;
      below = childOf(below, turn);
    }
    this.#leaf = below;
    this.#at = this.#descending ? below.keys.length - 1 : 0;
  }
}

/** Returns the keys of a leaf or children of a branch: the number that the fan-out limits. */
function widthOf<K, V>(node: TreeNode<K, V>): number {
  return node.kind === "leaf" ? node.keys.length : node.children.length;
}

/**
 * Returns whether `key` is greater than all of `keys`. Many keys arrive in ascending order: etags, times, names with a
 * number.
 */
function isAbove<K>(keys: readonly K[], key: K, compare: Compare<K>): boolean {
  const last = keys.length - 1;
  return last >= 0 && compare(keys[last] as K, key) < 0;
}

function childOf<K, V>(branch: Branch<K, V>, at: number): TreeNode<K, V> {
  return branch.children[at] as TreeNode<K, V>; // callers pass positions within the branch
}
