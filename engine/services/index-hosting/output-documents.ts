/**
 * Stores the reduced objects of one index as documents of a collection, together with documents that refer to them.
 * They are artificial: they get no revisions, and are left out of dumps. Behaves as RavenDB 7.2.7 does, except for the
 * hash in the ids and for patterns, which format dates.
 *
 * Invariants:
 * - A document whose text already equals its object is not written again.
 * - Objects that could not be stored for lack of space are stored later.
 * - A document of another collection that has the same id is not changed.
 * - A follower writes no output documents: it waits until the leader has written the documents that it expects.
 */

import { createHash } from "node:crypto";
import { foldedName, lowerCased } from "../../base/case-folding.ts";
import { EngineError } from "../../base/errors.ts";
import { outputDocumentsPerWrite } from "../../base/limits.ts";
import { checkDocumentId } from "../../base/names.ts";
import { nextSlice } from "../../base/scheduling/time-slices.ts";
import { restoreStride } from "../../indexing/columns/store-column.ts";
import {
  type OutputSink,
  type ReduceOutput,
  referenceId,
  referencesCollection,
} from "../../indexing/reduce/reduce-output.ts";
import {
  type PartReader,
  type PartWriter,
  restoredTexts,
  savedTexts,
} from "../../indexing/saved/saved-parts.ts";
import { collectionIdNamed } from "../../queries/rows/query-rows.ts";
import { bodyTextOf, documentFlags } from "../../state/documents/document-record.ts";
import type { Store } from "../../state/store/store.ts";
import type { Transaction } from "../../state/store/transaction.ts";
import { deleteDocument, putParsed } from "../../writes/documents.ts";

type Json = Readonly<Record<string, unknown>>;

/** Delay before a write that failed for lack of space is retried, in milliseconds; other indexes continue. */
const retryMs = 1_000;
const artificial = documentFlags.Artificial | documentFlags.FromIndex;

/** JSON text whose whole numbers have a point, as RavenDB 7.2.7 stores the numbers of scripts. */
function withDoubles(text: string): string {
  return text.replace(/"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g, (token) =>
    /^-?\d+$/.test(token) ? `${token}.0` : token,
  );
}

export class ReduceOutputs implements OutputSink {
  readonly #database: Store;
  readonly #output: ReduceOutput;
  /** Numbers of scripts are doubles. */
  readonly #isScript: boolean;
  readonly #wake: () => void;
  readonly #prefix: string;
  /** Objects still to be stored, by id: the text, null when deleted. */
  #changed = new Map<string, string | null>();
  /** Lower-cased ids of all objects, with the referring document of each. */
  readonly #live = new Map<string, string | null>();
  /** By id of a referring document: the ids of the objects. */
  readonly #references = new Map<string, Set<string>>();
  #touched = new Set<string>();
  /** Lower-cased ids of objects whose documents were written after the restored state, or are missing. */
  readonly #doubtful = new Set<string>();
  #isClean = false;
  /** A write is in progress; its documents are in none of these lists. */
  #isStoring = false;
  #isResting = false;

  /** @param wake resumes indexing: called when a failed write may be retried */
  constructor(database: Store, output: ReduceOutput, isScript: boolean, wake: () => void) {
    this.#database = database;
    this.#isScript = isScript;
    this.#wake = wake;
    this.#output = output;
    this.#prefix = `${output.collection}/${output.number}/`;
  }

  get isSettled(): boolean {
    const isStored = this.#changed.size === 0 && this.#touched.size === 0;
    const isClean = this.#isClean || this.#database.isFollowing;
    return isClean && isStored && !this.#isStoring;
  }

  get isStoring(): boolean {
    return this.#isStoring;
  }

  get isResting(): boolean {
    return this.#isResting;
  }

  changed(key: string, text: string | null): void {
    const stored = text !== null && this.#isScript ? withDoubles(text) : text;
    this.#changed.set(this.#idOf(key), stored);
  }

  #idOf(key: string): string {
    const hash = createHash("sha256").update(key).digest().readBigUInt64LE();
    return this.#prefix + hash;
  }

  get hasDoubts(): boolean {
    return this.#doubtful.size > 0;
  }

  isInDoubt(key: string): boolean {
    return this.#doubtful.has(lowerCased(this.#idOf(key)));
  }

  save(parts: PartWriter): void {
    parts.add("live", ...savedTexts(this.#live.keys()));
    parts.add("references", ...savedTexts(this.#live.values()));
    parts.add("changed", ...savedTexts(this.#changed.keys()));
    parts.add("texts", ...savedTexts(this.#changed.values()));
    parts.add("touched", ...savedTexts(this.#touched));
    parts.set("etag", this.#database.state.committedEtag);
  }

  *restore(parts: PartReader): Generator<void> {
    const references = restoredTexts(parts.bytes("references"));
    let count = 0;
    for (const lowerId of restoredTexts(parts.bytes("live"))) {
      const reference = references.next().value ?? null;
      const key = lowerId as string; // none is null
      this.#live.set(key, reference);
      if (reference !== null) {
        const outputs = this.#references.get(reference) ?? new Set();
        this.#references.set(reference, outputs.add(this.#prefix + key.slice(this.#prefix.length)));
      }
      if (++count % restoreStride === 0) yield;
    }
    const texts = restoredTexts(parts.bytes("texts"));
    for (const id of restoredTexts(parts.bytes("changed"))) {
      this.#changed.set(id as string, texts.next().value ?? null);
    }
    for (const id of restoredTexts(parts.bytes("touched"))) this.#touched.add(id as string);
    yield* this.#doubt(parts.get<number>("etag"));
  }

  /** Finds the objects whose documents have changed since this etag. */
  *#doubt(etag: number): Generator<void> {
    const { documents } = this.#database.state;
    for (const id of this.#writtenSince(this.#output.collection, etag)) this.#doubtful.add(id);
    let count = 0;
    for (const id of this.#live.keys()) {
      if (documents.find(id) < 0) this.#doubtful.add(id);
      if (++count % restoreStride === 0) yield;
    }
    if (this.#references.size === 0) return;
    const written = new Set(this.#writtenSince(referencesCollection(this.#output), etag));
    for (const id of this.#references.keys()) {
      if (written.has(lowerCased(id)) || documents.find(id) < 0) this.#touched.add(id);
      if (++count % restoreStride === 0) yield;
    }
  }

  /** Lower-cased ids of the documents of a collection that were written after this etag. */
  #writtenSince(collection: string, etag: number): string[] {
    const { state } = this.#database;
    const { documents } = state;
    const found: string[] = [];
    const cursor = documents.byEtag(collectionIdNamed(state, collection), etag + 1);
    const batch = new Uint32Array(outputDocumentsPerWrite);
    for (let count = batch.length; count === batch.length; ) {
      count = cursor.fill(batch, batch.length);
      for (const document of batch.subarray(0, count)) found.push(documents.lowerIdOf(document));
    }
    return found;
  }

  async store(isWhole: boolean): Promise<void> {
    this.#isStoring = true;
    try {
      if (this.#database.isFollowing) {
        await this.#compare();
        return;
      }
      while (this.#changed.size > 0) await this.#storeSome();
      await this.#storeReferences();
      if (!isWhole || this.#isClean) return;
      await this.#deleteOthers();
      this.#isClean = true;
    } catch (error) {
      if (!(error instanceof EngineError)) throw error;
      this.#rest();
    } finally {
      this.#isStoring = false;
    }
  }

  #rest(): void {
    this.#isResting = true;
    if (this.#database.hasEnded) return;
    this.#database.clock.setTimer(retryMs, () => {
      this.#isResting = false;
      this.#wake();
    });
  }

  /** Forgets the changes that the node which leads has stored already. */
  async #compare(): Promise<void> {
    let count = 0;
    for (const [id, text] of [...this.#changed]) {
      if (++count % outputDocumentsPerWrite === 0) await nextSlice();
      if (!(await this.#isAs(id, text, this.#output.collection))) continue;
      // The index may have changed the object again during the write.
      if (this.#changed.get(id) === text) this.#changed.delete(id);
      this.#refer(id, text);
    }
    for (const id of [...this.#touched]) {
      if (++count % outputDocumentsPerWrite === 0) await nextSlice();
      const text = this.#referencesText(id);
      if (!(await this.#isAs(id, text, referencesCollection(this.#output)))) continue;
      this.#touched.delete(id);
      if (text === null) this.#references.delete(id);
    }
    if (this.#changed.size > 0 || this.#touched.size > 0) this.#rest();
  }

  /**
   * Returns whether the document is in the state that the leader would write. A document of another collection is not
   * changed.
   */
  async #isAs(id: string, text: string | null, collection: string): Promise<boolean> {
    const { documents, keyspaces } = this.#database.state;
    const document = documents.find(id);
    if (document < 0) return text === null;
    if (text === null) return (documents.flagsOf(document) & artificial) !== artificial;
    const present = keyspaces.collections.nameOf(documents.collectionOf(document));
    if (foldedName(present) !== foldedName(collection)) return true;
    return (await this.#database.bodyText(id)) === text;
  }

  /** Returns the document that refers to objects; null: it refers to none, and is deleted. */
  #referencesText(id: string): string | null {
    const ReduceOutputs = [...(this.#references.get(id) ?? [])];
    return ReduceOutputs.length === 0 ? null : JSON.stringify({ ReduceOutputs });
  }

  async #storeSome(): Promise<void> {
    const some = [...this.#changed].slice(0, outputDocumentsPerWrite);
    for (const [id] of some) this.#changed.delete(id);
    try {
      await this.#database.write((transaction) => {
        const { collection } = this.#output;
        for (const [id, text] of some) {
          if (text === null) deleteDocument(transaction, id);
          else putArtificial(transaction, id, text, collection);
        }
      });
    } catch (error) {
      for (const [id, text] of some) if (!this.#changed.has(id)) this.#changed.set(id, text);
      throw error;
    }
    for (const [id, text] of some) this.#refer(id, text);
  }

  /** Records which document refers to an object. */
  #refer(id: string, text: string | null): void {
    const key = lowerCased(id);
    const { pattern } = this.#output;
    const next = text === null || pattern === null ? null : referenceOf(pattern, text);
    const last = this.#live.get(key) ?? null;
    if (text === null) this.#live.delete(key);
    else this.#live.set(key, next);
    if (last !== null && last !== next) {
      this.#references.get(last)?.delete(id);
      this.#touched.add(last);
    }
    if (next === null) return;
    const outputs = this.#references.get(next) ?? new Set();
    if (outputs.has(id)) return;
    this.#references.set(next, outputs.add(id));
    this.#touched.add(next);
  }

  async #storeReferences(): Promise<void> {
    const collection = referencesCollection(this.#output);
    while (this.#touched.size > 0) {
      const some = [...this.#touched].slice(0, outputDocumentsPerWrite);
      await this.#database.write((transaction) => {
        for (const id of some) {
          const text = this.#referencesText(id);
          if (text === null) {
            if (artificialBody(transaction, id) !== null) deleteDocument(transaction, id);
          } else putArtificial(transaction, id, text, collection);
        }
      });
      for (const id of some) {
        this.#touched.delete(id);
        if (this.#references.get(id)?.size === 0) this.#references.delete(id);
      }
    }
  }

  /** Deletes documents of earlier definitions, and of objects that vanished since the last start. */
  async #deleteOthers(): Promise<void> {
    const { collection, formerCollection } = this.#output;
    for (const name of [collection, formerCollection]) {
      if (name === null) continue;
      const made = new RegExp(`^${escaped(lowerCased(name))}/\\d+/\\d+$`);
      await this.#deleteOf(name, (id) => made.test(id) && !this.#live.has(id));
    }
    if (this.#output.pattern === null) return;
    const live = new Set([...this.#references.keys()].map((id) => lowerCased(id)));
    await this.#deleteOf(
      referencesCollection(this.#output),
      (id) => !live.has(id),
      (body) => {
        const { ReduceOutputs: outputs } = body;
        const isOurs = (one: unknown) =>
          typeof one === "string" && one.startsWith(`${collection}/`);
        return Array.isArray(outputs) && outputs.every(isOurs);
      },
    );
  }

  /** Deletes artificial documents of a collection. `isBody`: the test that their bodies must pass. */
  async #deleteOf(
    collection: string,
    isId: (lowerId: string) => boolean,
    isBody: (body: Json) => boolean = () => true,
  ): Promise<void> {
    const { state } = this.#database;
    const { documents } = state;
    const found: string[] = [];
    const cursor = documents.byEtag(collectionIdNamed(state, collection), 0);
    const batch = new Uint32Array(outputDocumentsPerWrite);
    for (let count = batch.length; count === batch.length; ) {
      count = cursor.fill(batch, batch.length);
      for (const document of batch.subarray(0, count)) {
        const isMade = (documents.flagsOf(document) & artificial) === artificial;
        if (isMade && isId(documents.lowerIdOf(document)))
          found.push(documents.lowerIdOf(document));
      }
    }
    for (let from = 0; from < found.length; from += outputDocumentsPerWrite) {
      await this.#database.write((transaction) => {
        for (const id of found.slice(from, from + outputDocumentsPerWrite)) {
          const body = artificialBody(transaction, id);
          if (body !== null && isBody(JSON.parse(body) as Json)) deleteDocument(transaction, id);
        }
      });
    }
  }
}

/**
 * Returns the id of the document that refers to an object. Null if the object has no id, or if its values form no valid
 * document id (too long, or an id that requests generation).
 */
function referenceOf(pattern: string, text: string): string | null {
  const id = referenceId(pattern, JSON.parse(text) as Json);
  if (id === null || id.endsWith("/") || id.endsWith("|")) return null;
  try {
    checkDocumentId(id);
    return id;
  } catch {
    return null;
  }
}

/** Returns the body of a document created by an index, or null. @throws RecordNotResident */
function artificialBody(transaction: Transaction, id: string): string | null {
  const document = transaction.find(id);
  if (document < 0 || (transaction.flagsOf(document) & artificial) !== artificial) return null;
  const { bytes, start } = transaction.recordOf(document);
  return bodyTextOf(bytes, start);
}

function putArtificial(
  transaction: Transaction,
  id: string,
  text: string,
  collection: string,
): void {
  if (artificialBody(transaction, id) === text) return;
  const document = transaction.find(id);
  if (document >= 0) {
    const { collections } = transaction.keyspaces;
    const present = collections.nameOf(transaction.collectionOf(document));
    if (foldedName(present) !== foldedName(collection)) return;
  }
  const metadata = `"@metadata":{"@collection":${JSON.stringify(collection)}}}`;
  const whole = `${text.slice(0, -1)}${text === "{}" ? "" : ","}${metadata}`;
  const parsed = transaction.state.parseText(whole);
  const options = { addedFlags: artificial, skipsRevision: true };
  putParsed(transaction, id, parsed, undefined, undefined, options);
}

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}
