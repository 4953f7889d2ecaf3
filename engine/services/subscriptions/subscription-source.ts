/**
 * The source of a subscription's items, in etag order: the documents of a collection, or their revisions. A document
 * that changes during a scan moves to the end, and is reached there.
 */

import { subscriptionRevisionsMax } from "../../base/limits.ts";
import type { StoredRow } from "../../queries/execution/row-source.ts";
import { collectionIdNamed, DocumentCursor } from "../../queries/rows/query-rows.ts";
import { RecordReader } from "../../queries/rows/record-reader.ts";
import { allCollections } from "../../state/keyspaces/document-table.ts";
import type { Store } from "../../state/store/store.ts";
import type { SubscriptionItem, SubscriptionQuery } from "./subscription-query.ts";

/** A state of a document that may be sent, identified by the etag of the document or revision. */
export interface Candidate {
  readonly document: number;
  readonly etag: number;
}

/** A scan over candidates. */
export interface CandidateWalk {
  /** Returns the next one; null at the end. A promise when its record must be read from disk. */
  next(): Candidate | null | Promise<Candidate | null>;
  /** Returns the item to send for the candidate that `next` returned last; null: none. */
  evaluate(): SubscriptionItem | null | Promise<SubscriptionItem | null>;
  /** Ends the scan and releases its resources. */
  end(): void;
}

export interface SubscriptionSource {
  /** No candidate has a greater etag. Cost: O(1). */
  readonly newestEtag: number;
  /** Candidates with an etag above `etag`. */
  walk(etag: number): CandidateWalk;
  /** Returns a scan over earlier candidates to be sent again; candidates that are no longer current are skipped. */
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
          // It has changed since the scan began, and is at the end now.
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
  /** Candidates found by the last search and not passed yet. */
  #known: readonly Candidate[] = [];
  /** The last search was truncated: there may be more. */
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
    // A search costs O(revisions): one serves many batches.
    if (this.#known.length === 0 && this.#mayHaveMore) this.#search(etag);
    return this.#walkOf(this.#known, etag);
  }

  /** Whether revisions may exist after the known ones. */
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

  /** `start`: the etag after which the scan continues, up to the newest revision; null: only these candidates. */
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
      evaluate: () => this.#evaluate(candidates[at] as Candidate), // returned by next
      end: () => undefined,
    };
  }

  async #evaluate({ document, etag }: Candidate): Promise<SubscriptionItem | null> {
    const { revisions } = this.#database.state.keyspaces;
    const row = revisions.find(document, etag);
    if (row < 0) return null; // removed in the meantime
    const older = revisions.olderThan(row);
    // Both in this tick: rows may be reused later.
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
