/**
 * The contents of a database, as a count and a hash of each kind of content: for comparing a restored database with
 * another. Etags, change vectors and times are excluded, and so is any order: a restore from a dump assigns new ones.
 *
 * Invariants:
 * - It describes the state at one point in time.
 */

import { createHash } from "node:crypto";
import { lowerCased } from "../../base/case-folding.ts";
import { nextSlice, pauseIfDue } from "../../base/scheduling/time-slices.ts";
import type { StoredRow } from "../../indexing/index-host.ts";
import { RecordReader } from "../../queries/rows/record-reader.ts";
import { bodyTextOf, idOf, metadataTextOf } from "../../state/documents/document-record.ts";
import { allCollections } from "../../state/keyspaces/document-table.ts";
import type { Store } from "../../state/store/store.ts";

/** One kind of content. */
interface KindDigest {
  readonly count: number;
  /** 64 hex digits: the SHA-256 hashes of all items, XOR. */
  readonly hash: string;
}

export interface ContentDigest {
  /** The newest etag in it. */
  readonly etag: number;
  readonly kinds: Readonly<Record<string, KindDigest>>;
}

const documentsPerBatch = 256;

/** Gathers the items of one kind. Their order does not matter; no two are equal. */
class Gathering {
  count = 0;
  readonly #sum = new Int32Array(8);

  add(...parts: readonly string[]): void {
    const hash = createHash("sha256");
    // With its length in front of each, so that no two lists of parts are alike.
    for (const part of parts) hash.update(`${part.length}:${part}`);
    const bytes = hash.digest();
    for (let i = 0; i < 8; i++) this.#sum[i] = (this.#sum[i] as number) ^ bytes.readInt32LE(4 * i);
    this.count++;
  }

  result(): KindDigest {
    const bytes = Buffer.from(this.#sum.buffer);
    return { count: this.count, hash: bytes.toString("hex") };
  }
}

/** Cost: reads all documents. @throws EngineError record-damaged; the reason of `signal` */
export async function digestOf(database: Store, signal?: AbortSignal): Promise<ContentDigest> {
  const { state } = database;
  const { keyspaces } = state;
  const view = database.view();
  const hold = state.documents.hold();
  const etag = view.lastEtag;
  const attachments = keyspaces.attachments.view();
  const counters = keyspaces.counters.view();
  const identities = keyspaces.identities.view();
  const compareExchange = keyspaces.compareExchange.view();
  const segments = keyspaces.timeSeriesSegments.view();
  try {
    const Documents = await digestOfDocuments(database, view.documents, signal);
    const digest = async <Value>(
      entries: Iterable<[string, { readonly value: Value }]>,
      add: (found: Gathering, key: string, value: Value) => void,
    ): Promise<KindDigest> => {
      const found = new Gathering();
      for (const [key, { value }] of entries) {
        add(found, key, value);
        await pauseIfDue();
        signal?.throwIfAborted();
      }
      return found.result();
    };
    return {
      etag,
      kinds: {
        Documents,
        Attachments: await digest(attachments.entries(), (found, key, value) => {
          // Attachments of revisions have keys with an etag, which begin with this character.
          if (key.startsWith("\u0000")) return;
          found.add(key, value.name, value.hash, value.contentType);
        }),
        Counters: await digest(counters.entries(), (found, key, value) =>
          found.add(key, value.name, value.value),
        ),
        TimeSeries: await digest(segments.entries(), (found, key, segment) => {
          const series = key.slice(0, key.lastIndexOf("\u0000"));
          for (const { time, values, tag } of segment.toEntries()) {
            found.add(series, String(time), JSON.stringify(values), tag ?? "");
          }
        }),
        CompareExchange: await digest(compareExchange.entries(), (found, key, value) =>
          found.add(key, value.text),
        ),
        Identities: await digest(identities.entries(), (found, key, value) =>
          found.add(key, String(value)),
        ),
      },
    };
  } finally {
    hold.release();
    view.release();
  }
}

async function digestOfDocuments(
  database: Store,
  documents: ReturnType<Store["view"]>["documents"],
  signal: AbortSignal | undefined,
): Promise<KindDigest> {
  const found = new Gathering();
  const { collections } = database.state.keyspaces;
  const reader = new RecordReader(database);
  const row: StoredRow = { docNum: 0, etag: 0, bytes: Buffer.alloc(0), start: 0, block: null };
  const cursor = documents.byEtag(allCollections, 1);
  const batch = new Uint32Array(documentsPerBatch);
  try {
    for (;;) {
      const filled = cursor.fill(batch, batch.length);
      for (let i = 0; i < filled; i++) {
        const document = batch[i] as number; // i < filled
        const position = documents.positionOf(document);
        const length = documents.lengthOf(document);
        while (!reader.tryPlace(position, length, row)) {
          await reader.gather(documents, batch, i, filled);
        }
        const { bytes, start } = row;
        found.add(
          lowerCased(idOf(bytes, start)),
          collections.nameOf(documents.collectionOf(document)),
          metadataTextOf(bytes, start),
          bodyTextOf(bytes, start),
        );
        await pauseIfDue();
      }
      signal?.throwIfAborted();
      if (filled < batch.length) return found.result();
      await nextSlice();
    }
  } finally {
    reader.close();
  }
}
