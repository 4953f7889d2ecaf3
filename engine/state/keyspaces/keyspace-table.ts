/**
 * All keyspaces of a database except documents and shapes, by name and by record kind: used by replay, commits,
 * compaction and snapshots.
 */

import { assert } from "../../base/assert.ts";
import { idSeparatorDefault } from "../../base/document-id.ts";
import type { JsonObject } from "../../base/json/json-object.ts";
import { type Attachment, makeAttachments } from "./attachments.ts";
import { Collections } from "./collections.ts";
import { type CompareExchangeValue, makeCompareExchange } from "./compare-exchange.ts";
import { type Counter, CounterOwners, makeCounters } from "./counters.ts";
import type { DocumentTable } from "./document-table.ts";
import type { EntryKeyspace } from "./entry-keyspace.ts";
import { makeIdentities } from "./identities.ts";
import { makeIndexDefinitions } from "./index-definitions.ts";
import { makeIndexHistories } from "./index-histories.ts";
import type { DeadRecordListener, Keyspace } from "./keyspace.ts";
import { makeReplicationMarks, type ReplicationMark } from "./replication-marks.ts";
import { databaseRecordKey, RevisionRules } from "./revision-rules.ts";
import { RevisionTable } from "./revision-table.ts";
import { SegmentChanges } from "./segment-changes.ts";
import { type KeyspaceName, stateKinds } from "./state-kinds.ts";
import { makeSubscriptions, type SubscriptionTask } from "./subscriptions.ts";
import type { Segment } from "./time-series/series-segment.ts";
import {
  makeTimeSeries,
  makeTimeSeriesSegments,
  type TimeSeries,
} from "./time-series/time-series.ts";
import { purgedThroughKey, Tombstones } from "./tombstones.ts";
import { clusterCountKey, makeValues } from "./values.ts";

/** Number of deleted documents examined per purged tombstone: more than one, so that the backlog shrinks. */
export const numbersPerTombstone = 4;

export class KeyspaceTable {
  readonly collections: Collections;
  readonly tombstones: Tombstones;
  readonly counters: EntryKeyspace<Counter>;
  readonly counterOwners: CounterOwners;
  readonly attachments: EntryKeyspace<Attachment>;
  readonly identities: EntryKeyspace<number>;
  readonly compareExchange: EntryKeyspace<CompareExchangeValue>;
  readonly indexDefinitions: EntryKeyspace<JsonObject>;
  readonly indexHistories: EntryKeyspace<JsonObject>;
  readonly timeSeries: EntryKeyspace<TimeSeries>;
  readonly timeSeriesSegments: EntryKeyspace<Segment>;
  readonly segmentChanges: SegmentChanges;
  readonly subscriptions: EntryKeyspace<SubscriptionTask>;
  readonly values: EntryKeyspace<unknown>;
  readonly replication: EntryKeyspace<ReplicationMark>;
  readonly revisions: RevisionTable;
  readonly revisionRules: RevisionRules;
  /** See `clusterCountKey`; 0 before the first cluster-wide transaction. */
  clusterCount = 0;
  /** The character at the end of an id that requests a server-generated one, and that precedes an identity's number. */
  idSeparator = idSeparatorDefault;
  readonly all: readonly Keyspace[];
  readonly #byKind: (Keyspace | undefined)[] = [];

  /**
   * `documents`: assigns the document numbers that revisions are keyed by. `replaced` is called for records that are
   * never needed again, `dead` for tombstones, which mark a deletion and may have to be kept.
   */
  constructor(documents: DocumentTable, replaced: DeadRecordListener, dead: DeadRecordListener) {
    this.collections = new Collections(replaced);
    this.tombstones = new Tombstones(dead, (id) => documents.markUnused(documents.lookup(id)));
    this.counters = makeCounters(replaced);
    this.counterOwners = new CounterOwners(this.counters);
    this.attachments = makeAttachments(replaced);
    this.identities = makeIdentities(replaced);
    this.compareExchange = makeCompareExchange(replaced);
    this.indexDefinitions = makeIndexDefinitions(replaced);
    this.indexHistories = makeIndexHistories(replaced);
    this.timeSeries = makeTimeSeries(replaced);
    this.timeSeriesSegments = makeTimeSeriesSegments(replaced);
    this.segmentChanges = new SegmentChanges(this.timeSeriesSegments);
    this.subscriptions = makeSubscriptions(replaced);
    this.values = makeValues(replaced);
    this.replication = makeReplicationMarks(replaced);
    this.revisions = new RevisionTable(documents, replaced);
    documents.isNeeded = (document) =>
      this.revisions.hasAny(document) ||
      (!this.tombstones.isEmpty && this.tombstones.hasDocument(documents.lowerIdOf(document)));
    this.revisionRules = new RevisionRules(this.collections);
    this.values.listen((key, value) => {
      if (key === purgedThroughKey) {
        documents.reclaim(numbersPerTombstone * this.tombstones.purgeThrough(Number(value)));
      } else if (key === databaseRecordKey) {
        this.revisionRules.configure(value);
        this.idSeparator = idSeparatorOf(value);
      } else if (key === clusterCountKey) this.clusterCount = Number(value);
    });
    const byName: Readonly<Record<KeyspaceName, Keyspace>> = {
      collections: this.collections.records,
      tombstones: this.tombstones.records,
      counters: this.counters,
      attachments: this.attachments,
      identities: this.identities,
      compareExchange: this.compareExchange,
      indexDefinitions: this.indexDefinitions,
      indexHistories: this.indexHistories,
      subscriptions: this.subscriptions,
      values: this.values,
      replication: this.replication,
      timeSeries: this.timeSeries,
      timeSeriesSegments: this.timeSeriesSegments,
      revisions: this.revisions,
    };
    this.all = Object.values(byName);
    for (const name of Object.keys(byName) as KeyspaceName[]) {
      const keyspace = byName[name];
      assert(keyspace.kind === stateKinds[name].record, "a keyspace has the records of its kind");
      assert(this.#byKind[keyspace.kind] === undefined, "a record kind has one keyspace");
      this.#byKind[keyspace.kind] = keyspace;
    }
  }

  /** Approximate bytes of all of them in an index snapshot. */
  snapshotBytes(): number {
    return this.all.reduce((bytes, keyspace) => bytes + keyspace.snapshotBytes, 0);
  }

  /** Returns the keyspace of a record type; undefined for documents and shapes, which are not in this table. */
  ofKind(kind: number): Keyspace | undefined {
    return this.#byKind[kind];
  }
}

/** Returns the setting `Client.IdentityPartsSeparator` of the database's record, unless it is disabled. */
function idSeparatorOf(record: unknown): string {
  const { Client } = (record ?? {}) as { Client?: Record<string, unknown> | null };
  const separator = Client?.["IdentityPartsSeparator"];
  return typeof separator === "string" && Client?.["Disabled"] !== true
    ? separator
    : idSeparatorDefault;
}
