/** The documents, entries and attachments of a database that were found damaged. The others remain usable. */

import { damagedListMax } from "../../base/limits.ts";
import { partitionPoint } from "../../base/partition-point.ts";
import type { Position } from "../../storage/log/log.ts";
import type { Damage } from "../../storage/log/scrub.ts";
import type { Throttle } from "../../storage/log/throttle.ts";
import { EntryKeyspace } from "../keyspaces/entry-keyspace.ts";
import type { DatabaseState } from "./database-state.ts";

/** Something with damaged stored bytes. */
export interface Damaged {
  /** "entry": a counter, an identity or the like, whose value is still in memory, or a revision. */
  readonly kind: "document" | "entry" | "attachment";
  /** The lower-cased id of a document; the name of the keyspace and the key of an entry; the hash of an attachment. */
  readonly id: string;
  /** Position of the damage, if known. */
  readonly file: string;
  readonly offset: number;
}

export class DamageList {
  #found = new Map<string, Damaged>();
  readonly #report: (found: Damaged) => void;

  /** `report`: called once for each damaged thing, and again only if a scrub in between did not find it. */
  constructor(report: (found: Damaged) => void) {
    this.#report = report;
  }

  /** In the order of discovery; at most `damagedListMax`. */
  get all(): readonly Damaged[] {
    return [...this.#found.values()];
  }

  /** Adds a document whose record a read has found damaged. */
  addDocument(id: string, file: string, offset: number): void {
    const damaged: Damaged = { kind: "document", id, file, offset };
    if (!this.#found.has(keyOf(damaged)) && add(this.#found, damaged)) this.#report(damaged);
  }

  /** Replaces the list by the result of a scrub. Cost: O(documents) when there is damage, else O(1). */
  async replace(
    state: DatabaseState,
    damages: readonly Damage[],
    hashes: readonly string[],
    throttle: Throttle,
  ): Promise<void> {
    const found = new Map<string, Damaged>();
    for (const hash of hashes) add(found, { kind: "attachment", id: hash, file: "", offset: 0 });
    if (damages.length > 0) {
      const places = new Places(damages);
      await findDocuments(state, places, found, throttle);
      findEntries(state, places, found);
    }
    const before = this.#found;
    this.#found = found;
    for (const [key, damaged] of found) if (!before.has(key)) this.#report(damaged);
  }
}

function keyOf({ kind, id }: Damaged): string {
  return `${kind} ${id}`;
}

/** @returns false when the list is full */
function add(found: Map<string, Damaged>, damaged: Damaged): boolean {
  if (found.size >= damagedListMax) return false;
  found.set(keyOf(damaged), damaged);
  return true;
}

/** Damaged ranges of the log, searchable by position. */
class Places {
  readonly #sorted: readonly Damage[];

  constructor(damages: readonly Damage[]) {
    this.#sorted = [...damages].sort((one, other) => one.position - other.position);
  }

  /** Returns the damage that overlaps the record at `position`. */
  at(position: Position, length: number): Damage | undefined {
    const low = partitionPoint(0, this.#sorted.length, (at) => {
      const damage = this.#sorted[at] as Damage; // at < length
      return damage.position + damage.length <= position;
    });
    const damage = this.#sorted[low];
    return damage !== undefined && damage.position < position + length ? damage : undefined;
  }
}

async function findDocuments(
  { documents }: DatabaseState,
  places: Places,
  found: Map<string, Damaged>,
  throttle: Throttle,
): Promise<void> {
  for (let document = 0; document < documents.docCount; document++) {
    if (document % 1024 === 1023 && throttle.isDue()) await throttle.yield();
    const length = documents.lengthOf(document);
    if (length === 0) continue;
    const damage = places.at(documents.positionOf(document), length);
    if (damage === undefined) continue;
    const { file, offset } = damage;
    add(found, { kind: "document", id: documents.lowerIdOf(document), file, offset });
  }
}

function findEntries(
  { documents, keyspaces }: DatabaseState,
  places: Places,
  found: Map<string, Damaged>,
): void {
  for (const keyspace of keyspaces.all) {
    if (!(keyspace instanceof EntryKeyspace)) continue;
    for (const [key, entry] of keyspace.newestWithPrefix("")) {
      const damage = places.at(entry.position, entry.length);
      if (damage === undefined) continue;
      const { file, offset } = damage;
      add(found, { kind: "entry", id: `${keyspace.name}/${key}`, file, offset });
    }
  }
  const { revisions } = keyspaces;
  for (const row of revisions.rowsFrom(0)) {
    const damage = places.at(revisions.positionOfRow(row), revisions.lengthOf(row));
    if (damage === undefined) continue;
    const { file, offset } = damage;
    const id = `${revisions.name}/${documents.lowerIdOf(revisions.documentOf(row))}`;
    add(found, { kind: "entry", id, file, offset });
  }
}
