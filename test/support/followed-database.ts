/**
 * A database and a follower: each group of its log is applied to the follower, which must have the
 * same contents at the end. Ordering and transfer of the groups between nodes are not included.
 */
import { expect } from "vitest";
import type { OpenDatabase } from "../../engine/api/database/open-database.ts";
import { markRecord, replicationMarkKey } from "../../engine/state/keyspaces/replication-marks.ts";
import type { LogCarrier } from "../../engine/storage/log/log-carrier.ts";
import { pictureOf } from "./database-picture.ts";

/** A group, and the record of its mark. */
export interface CarriedGroup {
  readonly payload: Buffer;
  readonly mark: Buffer;
}

/** The number of groups in a database, from its mark. */
export function groupsIn(database: OpenDatabase): number {
  return database.state.keyspaces.replication.get(replicationMarkKey)?.sequence ?? 0;
}

/** The mark after `sequence` groups. */
function markAt(sequence: number): Buffer {
  const hash = sequence.toString(16).padStart(64, "0");
  return markRecord({ generation: 1, sequence, epoch: 1, hash });
}

/** Stores the carried groups of a log, in order. */
export class GroupList implements LogCarrier {
  durable(): void {}

  readonly groups: CarriedGroup[] = [];

  readonly isSending = true;

  async carry(payload: Buffer): Promise<Buffer> {
    const mark = markAt(this.groups.length + 1);
    this.groups.push({ payload: Buffer.from(payload), mark });
    await new Promise((resolve) => setImmediate(resolve));
    return mark;
  }
}

/** The carrier of a log written by a leader: its frames contain the mark of their last group. */
export class FollowingCarrier implements LogCarrier {
  durable(): void {}

  #mark: Buffer;

  /** `before`: the number of groups already in the log. */
  constructor(before = 0) {
    this.#mark = markAt(before);
  }

  appended({ mark }: CarriedGroup): void {
    this.#mark = mark;
  }

  readonly isSending = false;

  carry(): Promise<Buffer> {
    return Promise.resolve(this.#mark);
  }
}

/** Copies the contents of attachments that `from` refers to and `to` does not. */
async function copyContents(from: OpenDatabase, to: OpenDatabase): Promise<(() => void)[]> {
  const releases: (() => void)[] = [];
  const hashes = new Set<string>();
  for (const [, { hash }] of from.state.keyspaces.attachments.withPrefix("")) hashes.add(hash);
  for (const hash of hashes) {
    const reader = await from.blobs.open(hash);
    try {
      const lease = await to.blobs.store(reader.read(0, reader.size));
      releases.push(() => lease.release());
    } finally {
      await reader.close();
    }
  }
  return releases;
}

/** Applies all groups to `follower`, some of them without waiting for the previous ones. */
export async function follow(
  leader: OpenDatabase,
  groups: readonly CarriedGroup[],
  follower: OpenDatabase,
  carrier: FollowingCarrier,
): Promise<void> {
  const releases = await copyContents(leader, follower);
  let before: Promise<void> = Promise.resolve();
  for (const group of groups) {
    const appended = new Promise<void>((resolve) => {
      const added = follower.addGroup(group.payload, () => {
        carrier.appended(group);
        resolve();
      });
      before = Promise.all([before, added]).then(() => undefined);
    });
    await Promise.race([appended, before]);
  }
  await before;
  for (const release of releases) release();
}

/** The contents of a database, without the positions of records in its files. */
async function contentsOf(database: OpenDatabase): Promise<object> {
  const placeless = (rows: readonly object[]) => rows.map((row) => ({ ...row, position: 0 }));
  const { documents, entries, revisions, counts, committedEtag } = pictureOf(database);
  return {
    documents: placeless(documents),
    entries: Object.fromEntries(
      Object.entries(entries).map(([name, rows]) => [name, placeless(rows)]),
    ),
    revisions: placeless(revisions),
    counts,
    committedEtag,
    shapes: database.state.shapes.loggedCount,
    texts: await textsOf(database),
  };
}

/** The documents as read by clients. */
async function textsOf(database: OpenDatabase): Promise<readonly (string | undefined)[]> {
  const texts: (string | undefined)[] = [];
  for (const { id } of pictureOf(database).documents as readonly { readonly id: string }[]) {
    texts.push((await database.getText(id))?.toString());
  }
  return texts;
}

export async function expectSameContents(
  leader: OpenDatabase,
  follower: OpenDatabase,
): Promise<void> {
  follower.checkInvariants();
  expect(await contentsOf(follower)).toEqual(await contentsOf(leader));
  expect(follower.state.keyspaces.replication.get(replicationMarkKey)).toEqual(
    leader.state.keyspaces.replication.get(replicationMarkKey),
  );
}
