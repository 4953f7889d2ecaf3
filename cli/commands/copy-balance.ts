/**
 * Plan for balancing the copies of databases over the nodes of a cluster, computed from the cluster status. `jackdaw
 * cluster spread` (cluster.ts) executes it.
 *
 * Invariants:
 * - A database never loses copies, and has at most one copy per node.
 * - The number of moves is minimal, because each move transfers a copy over the network.
 */

/** A database and the nodes with its copies. */
export interface PlacedDatabase {
  readonly name: string;
  readonly leader: string | null;
  readonly tags: readonly string[];
  /** False if one of its copies is not in sync; such a database is not moved. */
  readonly isSound: boolean;
}

/** A move of a copy; `from` is null for an additional copy. */
export interface CopyMove {
  readonly name: string;
  readonly from: string | null;
  readonly to: string;
}

/**
 * Returns the moves, additional copies first.
 * @param nodes nodes that can hold copies
 * @param copies minimum number of copies of each database
 */
export function planCopyMoves(
  nodes: readonly string[],
  databases: readonly PlacedDatabase[],
  copies = 0,
): CopyMove[] {
  const placement = new Placement(nodes, databases);
  while (placement.step(copies)) {}
  // The plan may move a copy twice: combine the moves.
  const moves = databases.flatMap(({ name, tags }) => {
    const after = placement.tagsOf(name);
    const gone = tags.filter((tag) => !after.includes(tag));
    const come = after.filter((tag) => !tags.includes(tag));
    return come.map((to, at): CopyMove => ({ name, from: gone[at] ?? null, to }));
  });
  return [
    ...moves.filter(({ from }) => from === null),
    ...moves.filter(({ from }) => from !== null),
  ];
}

class Placement {
  readonly #nodes: readonly string[];
  readonly #sound: readonly PlacedDatabase[];
  /** Tags of the nodes of each database, by its name. */
  readonly #tags: Map<string, readonly string[]>;
  readonly #copies = new Map<string, number>();
  /** Number of databases that two nodes share, by both tags in either order. */
  readonly #shared = new Map<string, number>();

  constructor(nodes: readonly string[], databases: readonly PlacedDatabase[]) {
    this.#nodes = nodes;
    this.#sound = databases.filter(({ isSound }) => isSound);
    this.#tags = new Map(databases.map(({ name, tags }) => [name, tags]));
    for (const { tags } of databases) this.#count(tags, 1);
  }

  /** Applies the best next move. @returns false if there is no move */
  step(copies: number): boolean {
    const move = this.#missing(copies) ?? this.#best();
    if (move === null) return false;
    const { name, from, to } = move;
    const before = this.tagsOf(name);
    const after = [...before.filter((tag) => tag !== from), to];
    this.#tags.set(name, after);
    this.#count(before, -1);
    this.#count(after, 1);
    return true;
  }

  tagsOf(name: string): readonly string[] {
    return this.#tags.get(name) ?? [];
  }

  /** Returns an additional copy for the first database with fewer than `copies`, or null. */
  #missing(copies: number): CopyMove | null {
    const most = Math.min(copies, this.#nodes.length);
    for (const { name } of this.#sound) {
      const tags = this.tagsOf(name);
      if (tags.length >= most) continue;
      const free = this.#nodes.filter((tag) => !tags.includes(tag));
      const rank = (tag: string) => [this.#copiesOn(tag), this.#sharedWith(tag, tags)];
      const to = least(free, rank);
      if (to !== undefined) return { name, from: null, to };
    }
    return null;
  }

  /** Returns the move that reduces the imbalance most, or null if no move reduces it. */
  #best(): CopyMove | null {
    const moves: CopyMove[] = [];
    let most = 2;
    for (const { name } of this.#sound) {
      const tags = this.tagsOf(name);
      for (const from of tags) {
        for (const to of this.#nodes) {
          const difference = this.#copiesOn(from) - this.#copiesOn(to);
          if (difference < most || tags.includes(to)) continue;
          if (difference > most) moves.length = 0;
          most = difference;
          moves.push({ name, from, to });
        }
      }
    }
    const led = new Map(this.#sound.map(({ name, leader }) => [name, leader]));
    // Prefer databases that the node does not lead, because moving a leader needs a transfer; then nodes that share
    // few databases.
    const rank = ({ name, from, to }: CopyMove) => [
      led.get(name) === from ? 1 : 0,
      this.#sharedWith(
        to,
        this.tagsOf(name).filter((tag) => tag !== from),
      ),
    ];
    return least(moves, rank) ?? null;
  }

  #count(tags: readonly string[], by: 1 | -1): void {
    for (const tag of tags) {
      this.#copies.set(tag, this.#copiesOn(tag) + by);
      for (const other of tags) {
        const pair = `${tag} ${other}`;
        this.#shared.set(pair, (this.#shared.get(pair) ?? 0) + by);
      }
    }
  }

  #copiesOn(tag: string): number {
    return this.#copies.get(tag) ?? 0;
  }

  #sharedWith(tag: string, others: readonly string[]): number {
    return others.reduce((sum, other) => sum + (this.#shared.get(`${tag} ${other}`) ?? 0), 0);
  }
}

/** Returns the first item with the lowest rank. */
function least<Item>(
  items: readonly Item[],
  rank: (item: Item) => readonly number[],
): Item | undefined {
  let best: { readonly item: Item; readonly rank: readonly number[] } | undefined;
  for (const item of items) {
    const own = rank(item);
    if (best === undefined || isLess(own, best.rank)) best = { item, rank: own };
  }
  return best?.item;
}

function isLess(one: readonly number[], other: readonly number[]): boolean {
  for (const [at, value] of one.entries()) {
    const than = other[at] ?? 0;
    if (value !== than) return value < than;
  }
  return false;
}
