/**
 * What a subscription may send, in the order of etags: the documents of a collection, or the revisions of its documents.
 * What changes while it is walked over stands at its end, and is come to there.
 */

import { allCollections } from "../keyspaces/document-table.ts";
import { subscriptionRevisionsMax } from "../limits.ts";
import { collectionIdNamed, DocumentCursor } from "../query-rows.ts";
import { RecordReader } from "../record-reader.ts";
import type { StoredRow } from "../rql/row-source.ts";
import type { Store } from "../store.ts";
import type { SubscriptionItem, SubscriptionQuery } from "./subscription-query.ts";

/** Something that may be sent: a state of a document, by the etag of the document or revision. */
export interface Candidate {
  readonly document: number;
  readonly etag: number;
}

/** A walk over candidates. */
export interface CandidateWalk {
  /** The next one; null at the end. A promise when its record must be read from the disk. */
  next(): Candidate | null | Promise<Candidate | null>;
  /** What is to be sent for the one that `next` gave last; null: nothing. */
  evaluate(): SubscriptionItem | null | Promise<SubscriptionItem | null>;
  /** Nothing more is asked. */
  end(): void;
}

export interface SubscriptionSource {
  /** No candidate is above it. Cost: O(1). */
  readonly newestEtag: number;
  /** Candidates with an etag above `etag`. */
  walk(etag: number): CandidateWalk;
  /** A walk over candidates of before that are to be sent again; those that are no longer current are left out. */
  again(candidates: readonly Candidate[]): CandidateWalk;
}

export function sourceOf(database: Store, query: SubscriptionQuery): SubscriptionSource {
  return query.hasRevisions
    ? new RevisionSource(database, query)
    : new DocumentSource(database, query);
}

class DocumentSource implements SubscriptionSource {
  readonly #database: Store;
  readonly #query: SubscriptionQuery;

  constructor(database: Store, query: SubscriptionQuery) {
    this.#database = database;
    this.#query = query;
  }

  get newestEtag(): number {
    return this.#database.state.documents.newestEtagOf(this.#collectionId);
  }

  get #collectionId(): number {
    const { collection } = this.#query;
    const { state } = this.#database;
    return collection === null ? allCollections : collectionIdNamed(state, collection);
  }

  walk(etag: number): CandidateWalk {
    const { documents } = this.#database.state;
    return this.#walkOf(documents.byEtag(this.#collectionId, etag + 1));
  }

  again(candidates: readonly Candidate[]): CandidateWalk {
    const { documents } = this.#database.state;
    const current = candidates.filter(({ document, etag }) => documents.etagOf(document) === etag);
    let at = 0;
    return this.#walkOf({
      fill(batch, limit) {
        let count = 0;
        while (count < limit && at < current.length) {
          batch[count++] = (current[at++] as Candidate).document; // at < current.length
        }
        return count;
      },
    });
  }

  #walkOf(numbers: ConstructorParameters<typeof DocumentCursor>[1]): CandidateWalk {
    const { documents, committedEtag } = this.#database.state;
    const cursor = new DocumentCursor(documents, numbers, new RecordReader(this.#database));
    const query = this.#query;
    const next = (): Candidate | null | Promise<Candidate | null> => {
      for (;;) {
        if (cursor.next()) {
          // It changed since the walk began: it stands at the end now.
          if (cursor.row.etag > committedEtag) continue;
          return { document: cursor.row.docNum, etag: cursor.row.etag };
        }
        return cursor.pending === null ? null : cursor.pending.then(next);
      }
    };
    return { next, evaluate: () => query.evaluate(cursor.row), end: () => cursor.end() };
  }
}

class RevisionSource implements SubscriptionSource {
  readonly #database: Store;
  readonly #query: SubscriptionQuery;
  /** Found by the last search, and not yet passed. */
  #known: readonly Candidate[] = [];
  /** There may be more behind them. */
  #isCut = false;
  #searchedEtag = -1;

  constructor(database: Store, query: SubscriptionQuery) {
    this.#database = database;
    this.#query = query;
  }

  get newestEtag(): number {
    return this.#database.state.keyspaces.revisions.newestEtag;
  }

  walk(etag: number): CandidateWalk {
    this.#known = this.#known.filter((candidate) => candidate.etag > etag);
    // A search costs a look at all revisions: one for many batches, not one for each.
    if (this.#known.length === 0 && this.#mayHaveMore) this.#search(etag);
    return this.#walkOf(this.#known, etag);
  }

  /** May there be revisions behind those that are known? */
  get #mayHaveMore(): boolean {
    return this.#isCut || this.newestEtag > this.#searchedEtag;
  }

  again(candidates: readonly Candidate[]): CandidateWalk {
    return this.#walkOf(candidates, null);
  }

  #search(etag: number): void {
    const { keyspaces } = this.#database.state;
    const { revisions } = keyspaces;
    const { collection } = this.#query;
    const wanted = collection === null ? -1 : keyspaces.collections.find(collection);
    const rows = revisions
      .rowsFrom(etag + 1)
      .filter((row) => collection === null || revisions.collectionOf(row) === wanted);
    this.#isCut = rows.length > subscriptionRevisionsMax;
    this.#searchedEtag = this.newestEtag;
    this.#known = rows
      .slice(0, subscriptionRevisionsMax)
      .map((row) => ({ document: revisions.documentOf(row), etag: revisions.etagOf(row) }));
  }

  /** `start`: the etag that the walk goes on behind, to the newest revision; null: it has these candidates only. */
  #walkOf(first: readonly Candidate[], start: number | null): CandidateWalk {
    let candidates = first;
    let at = -1;
    return {
      next: () => {
        at++;
        if (at === candidates.length && start !== null && this.#mayHaveMore) {
          this.#search(candidates.at(-1)?.etag ?? start);
          candidates = this.#known;
          at = 0;
        }
        return candidates[at] ?? null;
      },
      evaluate: () => this.#evaluate(candidates[at] as Candidate), // next gave it
      end: () => undefined,
    };
  }

  async #evaluate({ document, etag }: Candidate): Promise<SubscriptionItem | null> {
    const { revisions } = this.#database.state.keyspaces;
    const row = revisions.find(document, etag);
    if (row < 0) return null; // dropped meanwhile
    const older = revisions.olderThan(row);
    // Both in this turn: rows may be others' later.
    const [current, previous] = await Promise.all([
      this.#read(row),
      older < 0 ? null : this.#read(older),
    ]);
    return await this.#query.evaluatePair(current, previous);
  }

  async #read(row: number): Promise<StoredRow> {
    const { revisions } = this.#database.state.keyspaces;
    const docNum = revisions.documentOf(row);
    const etag = revisions.etagOf(row);
    const position = revisions.positionOfRow(row);
    const bytes = await this.#database.recordAt(docNum, position, revisions.lengthOf(row));
    return { docNum, etag, bytes: Buffer.from(bytes), start: 0 };
  }
}
