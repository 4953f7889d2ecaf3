/**
 * Every limit of the engine, with its unit. Limits that depend on each other are asserted at the end.
 * A limit that an operator may change is a default here and a setting in server/settings/config.ts.
 */
import { assert } from "./assert.ts";

/** Maximum length of a document id, collection, attachment, counter or compare-exchange name, in UTF-8 bytes. */
export const nameBytesMax = 512;
/** Maximum length of an entry's key, all parts together, in UTF-8 bytes: the length has 16 bits on disk. */
export const entryKeyBytesMax = 65_535;
/** Maximum length of a change vector, in bytes: the length has 16 bits on disk. */
export const changeVectorBytesMax = 65_535;
/** Maximum length of a database name, in characters. */
export const databaseNameLengthMax = 128;
/** Maximum number of automatic reopenings of a stopped database per hour. */
export const reopeningsMax = 3;
export const reopeningWindowMs = 3_600_000;
/** Maximum wait of a stopped database for work in progress before it is reopened, in milliseconds. */
export const endingWaitMs = 1_000;
/** Maximum size of a document's text, in UTF-8 bytes. */
export const documentBytesMax = 256 * 1024 * 1024;
/** Maximum nesting depth of objects and arrays in a document. */
export const documentDepthMax = 10_000;
/**
 * Size of a document's text from which on it is parsed and copied in slices before its transaction, which runs in one
 * tick of the event loop; in bytes.
 */
export const preparedBytesMin = 256 * 1024;
/** Maximum size of a transaction in the log, in bytes. */
export const transactionBytesMax = 512 * 1024 * 1024;
/**
 * Size at which a segment of the log is full and the next begins, in bytes (a larger transaction gets a segment of its
 * size).
 */
export const segmentBytesMax = 64 * 1024 * 1024;
/** Size of a new database's first segment, in bytes; each next segment is twice as large, up to `segmentBytesMax`. */
export const segmentBytesMin = 256 * 1024;
/** Maximum share of the memory budget for a new segment: its image is in memory while it is written. */
export const segmentShareOfMemory = 1 / 16;
/** Maximum number of bytes written but not yet synced; above it, writers must wait. */
export const unsyncedBytesMax = 64 * 1024 * 1024;
/** The same limit as a share of the memory budget, if that is less. */
export const unsyncedShareOfMemory = 1 / 8;
/**
 * Maximum size of the section of a group commit in one frame of a replicated log, in bytes; a larger group has several
 * frames.
 */
export const framePartBytesMax = 1024 * 1024;
/** Maximum size of a chunk of an attachment's content in one frame of a replicated log, in bytes. */
export const contentChunkBytesMax = framePartBytesMax;
/**
 * Maximum payload size of one frame of a replicated log, in bytes: a chunk of content is preceded by its
 * identification.
 */
export const framePayloadBytesMax = framePartBytesMax + 64;
/** Maximum size of a replicated group commit, in bytes: the unsynced bytes plus one transaction of the largest size. */
export const replicatedGroupBytesMax = unsyncedBytesMax + transactionBytesMax;
/**
 * Maximum number of frames that a leader may have appended without knowing the outcome. Nodes that share a stream must
 * agree on it.
 */
export const framesInFlightMax = 8;
/** Maximum number of bytes delivered to a follower and not yet durable; beyond it, the follower stops following. */
export const unappliedBytesMax = 64 * 1024 * 1024;
/**
 * Delay before an open append is repeated for the first time, in milliseconds; it doubles up to 16 times this value.
 */
export const replicaRetryMs = 100;
/** Interval between comparisons of a node's last frame with the stream's, in milliseconds. */
export const replicaProbeMs = 5_000;
/**
 * Time for which a leader trusts the stream to still have its last frame, in milliseconds: less than other nodes wait
 * before an election.
 */
export const replicaVerifiedMs = 1_000;
/**
 * Time for which a frame of the own log must be missing in the stream before the stream is considered to have lost it,
 * in milliseconds. More than `replicaStallMs`: a leader whose stream was trimmed first becomes a follower, and detects
 * the trimming then.
 */
export const replicaMissingMs = 30_000;
/**
 * Time without progress, while other nodes are known to have more frames, after which a follower follows again, and
 * then requests the frames from peers; in milliseconds.
 */
export const replicaBehindMs = 2_000;
/**
 * Time without progress after which a leader stops leading and settles its open proposals as unknown, in milliseconds.
 */
export const replicaStallMs = 20_000;
/** Time without a heartbeat of the owner of a folder after which another process may acquire it, in milliseconds. */
export const folderSilenceMs = 10_000;
/** Minimum value of the setting for it, in milliseconds: heartbeats are ten times as frequent. */
export const folderSilenceMsMin = 500;
/** Number of segment and snapshot numbers that are skipped, because a previous owner may be about to use them. */
export const rivalNumbers = 64;
/** Free space on the disk below which a database accepts only deletes, in bytes. */
export const diskReserveBytes = 16 * 1024 * 1024;
/**
 * Maximum size of files that a database retains only for a continuous backup that has not copied them yet, in bytes;
 * beyond it, the backup continues with a new base.
 */
export const followedBytesMin = 256 * 1024 * 1024;
/** The same limit as a share of the live bytes, if that is more. */
export const followedShare = 1 / 4;
/**
 * Maximum number of attachment contents that a continuous backup has not copied yet, in addition to those of its base.
 */
export const followedContentsMax = 1_000_000;
/** Maximum number of collections of a database: a row has 16 bits for the number. */
export const collectionCountMax = 65_535;
/** Maximum number of distinct top-level property lists ("shapes") of a database that get a field table. */
export const shapeCountMax = 16_384;
/** Maximum number of properties of a shape; a document with more has no field table. */
export const shapeFieldCountMax = 512;
/** Maximum memory for the shapes of a database, in bytes (estimated); further documents get no shape. */
export const shapeMemoryBytesMax = 32 * 1024 * 1024;
/**
 * Compressed bytes of an export that are buffered before its reply begins: an error up to there is answered as an
 * error.
 */
export const exportHeldBytesMax = 1024 * 1024;
/** Maximum number of statements in a run of a script, unless its limits are lifted. */
export const scriptStepsMax = 10_000;
/** Maximum processor time of a run of a script, in milliseconds; the run blocks everything else. Cannot be lifted. */
export const scriptMsMax = 25;
/** Maximum processor time of all scripts of a batch, in milliseconds; no other transaction begins during it. */
export const batchScriptMsMax = 10_000;
/** Units of script work per millisecond: one is estimated at 10 ns. */
export const scriptWorkPerMs = 100_000;
/**
 * Maximum size of the values that one run of a script creates, including the values it stores, in bytes. Cannot be
 * lifted.
 */
export const scriptBytesMax = 64 * 1024 * 1024;
/** Maximum length of a string that a script creates, in UTF-16 units. */
export const scriptTextLengthMax = 16 * 1024 * 1024;
/** Maximum size of the cached compiled scripts of the process, in bytes. */
export const compiledScriptBytesMax = 64 * 1024 * 1024;
/** Maximum size of the cached texts of queries' scripts that are known to be valid, per process, in bytes. */
export const checkedScriptBytesMax = 8 * 1024 * 1024;
/** Maximum size of the cached syntax trees of a database's queries, in bytes. */
export const queryTreeBytesMax = 16 * 1024 * 1024;
/** Maximum number of automatic indexes of a database: beyond it, the index not queried for longest is deleted. */
export const automaticIndexesMax = 256;
/** Maximum wait of a query for an index that was created for it, in milliseconds. */
export const newIndexWaitMs = 15_000;
/** Maximum number of fields of an automatic index: a query that needs more gets another index. */
export const automaticIndexFieldsMax = 256;
/**
 * Minutes without a query after which an automatic index becomes idle, and hours after which an idle index is deleted,
 * by default.
 */
export const automaticIndexIdleMinutes = 30;
export const automaticIndexDeletionHours = 72;
/** Maximum number of fields of a deployed index, including computed fields of its maps. */
export const indexFieldsMax = 512;
/** Maximum length of all texts of a deployed index together, in UTF-16 units. */
export const indexTextLengthMax = 1024 * 1024;
/** Maximum number of entries that a deployed index produces for one document. */
export const indexEntriesPerDocumentMax = 32_768;
/**
 * Maximum length of an object's text by which a deployed index finds it, in bytes; for a longer text only its presence
 * is indexed.
 */
export const objectTermBytesMax = 16 * 1024;
/** Maximum size of an indexed or searched vector, in bytes. */
export const vectorBytesMax = 64 * 1024;
/** Maximum work of a query, in units: terms, entries and expression steps. A million take some 10 milliseconds. */
export const queryWorkMax = 1_000_000_000;
/** Maximum memory of a query for intermediate results, in bytes. */
export const queryBytesMax = 128 * 1024 * 1024;
/** Maximum length of a query's text, in UTF-16 units. */
export const queryTextLengthMax = 256 * 1024;
/** Maximum length of a word or phrase in a full-text search, in UTF-16 units. */
export const searchPhraseLengthMax = 32 * 1024;
/** Maximum number of conditions in a query's text; it may have four words, values and operators for each. */
export const queryClausesMax = 4_096;
/** Maximum number of items of a `select`, `order by`, `group by`, `load` or `include`. */
export const queryItemsMax = 2_048;
/** Maximum number of terms of a `suggest()`. */
export const suggestedTermsMax = 256;
/** Maximum number of terms of the base of a `moreLikeThis()` that are searched, regardless of its options. */
export const likenessTermsMax = 1_024;
/** Maximum size of a document that describes facets or lists stop words, in bytes: it is parsed synchronously. */
export const namedDocumentBytesMax = 256 * 1024;
/** Maximum number of functions declared in a query. */
export const queryDeclarationsMax = 256;
/** Maximum size of a query request, including parameters, in bytes. */
export const queryRequestBytesMax = 2 * 1024 * 1024;
/**
 * Maximum number of points of a shape, in a document or a query: it is parsed synchronously, in some ten milliseconds.
 */
export const shapePlacesMax = 16_384;
/** Maximum length of the well-known text of a shape, in characters. */
export const shapeTextLengthMax = 2 * 1024 * 1024;
/** Maximum nesting depth of lists and objects in a query's parameters. */
export const queryParametersDepthMax = 512;
/** Maximum number of reduce output documents that are stored or deleted in one transaction. */
export const outputDocumentsPerWrite = 1_024;
/** Maximum size of attachment content that the map of one document may read, in bytes. */
export const indexedContentBytesMax = 32 * 1024 * 1024;
/** Maximum number of values of a key that are reduced in one call; more are first reduced in pages. */
export const reducePageValuesMax = 16;
/** Maximum number of errors recorded per index. */
export const indexErrorsMax = 500;
/** Number of definitions in an index's history, by default. */
export const indexRevisionsDefault = 10;
/** Maximum length of all definitions in an index's history together, in UTF-16 units. */
export const indexHistoryLengthMax = 4 * indexTextLengthMax;
/** Maximum number of deployed indexes of a database. */
export const staticIndexesMax = 1_024;
/**
 * Maximum speed at which background work (compaction, index snapshots, scrubs) reads and writes, in bytes per second.
 */
export const backgroundBytesPerSecond = 64 * 1024 * 1024;
/** Maximum number of values of one entry of a time series. */
export const seriesValuesMax = 32;
/** Maximum length of a tag of a time series, in UTF-8 bytes. */
export const seriesTagBytesMax = 255;
/** Maximum number of times and values together in one segment of a time series: 512 entries of one value. */
export const seriesSegmentNumbersMax = 1024;
/** Interval between scans for documents that expire or are due for refresh, in milliseconds, by default. */
export const dueDocumentsIntervalMs = 60_000;
/** Seconds between deletions of compare-exchange values that have expired. */
export const compareExchangeExpirySeconds = 60;
/** Minutes for which revisions of deleted documents are retained, and seconds between scans for them, by default. */
export const revisionBinMinutes = 30 * 24 * 60;
export const revisionBinIntervalSeconds = 300;
/**
 * Maximum lead of the time of the last change over the clock with which every later change still gets a later time, in
 * microseconds. A greater lead means that the clock was set back, or that a dump contained the time: later changes then
 * have the time of the clock again.
 */
export const clockLeadMicrosMax = 60 * 1_000_000;
/** Maximum number of documents that background work changes in one transaction. */
export const documentsPerTask = 256;
/** Length of a time slice: work yields to the event loop after it, in milliseconds. */
export const sliceMs = 5;
/** The same for background work that no request waits for. */
export const backgroundSliceMs = 0.1;
/** Maximum number of finished operations of a database that can still be queried. */
export const finishedOperationsMax = 256;
/** Maximum number of operations of a database that can be undone, and days for which they can. */
export const undoOperationsMax = 16;
export const undoDaysMax = 7;
/** Maximum length of all fragments of `highlight()` for a query, in UTF-16 units: they are written synchronously. */
export const highlightedLengthMax = 16 * 1024 * 1024;
/** Maximum length of a row's texts that `highlight()` scans, over all searched texts, in UTF-16 units. */
export const highlightScanMax = 4 * 1024 * 1024;
/**
 * Size of the commands that a bulk insert commits in one transaction, and may buffer while a commit is in progress; in
 * bytes.
 */
export const bulkInsertBatchBytes = 16 * 1024 * 1024;
/** Maximum number of commands that a bulk insert commits in one transaction. */
export const bulkInsertBatchCommands = 8192;
/** Maximum size of one item of a dump, without the raw bytes that follow it. */
export const dumpItemBytesMax = documentBytesMax + 1024 * 1024;
/** Maximum number of items of a dump that an import commits in one transaction. */
export const importBatchItems = 1024;
/** Maximum size of the items that an import commits in one transaction, in bytes. */
export const importBatchBytes = 8 * 1024 * 1024;
/** Maximum number of transactions of an import that are being written to disk while the next one is collected. */
export const importsInFlightMax = 4;
/** Maximum number of messages in the result of an export or import; messages in the middle are dropped. */
export const smugglerMessagesMax = 200;
/** Maximum ratio of decompressed to compressed bytes of a dump, above `dumpUnfoldedBytesFree`. */
export const dumpUnfoldFactorMax = 256;
/** Number of decompressed bytes allowed for any dump, however small. */
export const dumpUnfoldedBytesFree = 256 * 1024 * 1024;
/** Interval between two tombstone purges, in milliseconds. */
export const tombstoneCleanupIntervalMs = 300_000;
/** Number of new tombstones that triggers an immediate purge: each uses some 600 bytes of memory. */
export const tombstonesDueCount = 8192;
/**
 * Delay before the next purge if as many tombstones had to remain because an index has not passed them, in
 * milliseconds.
 */
export const tombstonesRetryMs = 1000;
/** Minimum number of removable tombstones with which a purge continues. */
export const tombstonesPerPurge = 1000;
/** Number of tombstones removed between two readings of the clock: about half a millisecond. */
export const tombstonesPerStep = 64;
/** Interval between two checks whether a database that was written to is at rest, in milliseconds. */
export const restLookMs = 5_000;
/** Bytes of new log between two of these checks up to which it counts as at rest. */
export const restLogBytes = 256 * 1024;
/**
 * Bytes of new log after which an index snapshot is written, so that opening replays little more than that; more if
 * snapshots are large (maintenance.ts).
 */
export const snapshotLogBytes = 512 * 1024 * 1024;
/** Delay of the next index snapshot after the first change since the last snapshot, in milliseconds. */
export const snapshotIntervalMs = 600_000;
/** Time without a new document before new ids are sorted, in milliseconds. */
export const settleOrderDelayMs = 100;
/** Interval between two scrubs of a database, in milliseconds. */
export const scrubIntervalMs = 24 * 3_600_000;
/** Maximum speed at which a background scrub reads, in bytes per second. */
export const scrubBytesPerSecond = 8 * 1024 * 1024;
/** Maximum number of subscription tasks of a database. */
export const subscriptionCountMax = 1024;
/** Maximum length of a subscription's query, in characters. */
export const subscriptionQueryLengthMax = 65_536;
/** Maximum number of documents in one batch of a subscription, regardless of its worker's request. */
export const subscriptionBatchDocumentsMax = 65_536;
/** Size of documents at which a batch of a subscription is full, in bytes. */
export const subscriptionBatchBytes = 8 * 1024 * 1024;
/** Search time after which a batch that has some documents is sent, in milliseconds. */
export const subscriptionBatchMs = 5_000;
/** Number of documents skipped by a subscription's query after which its position is written. */
export const subscriptionPassedMax = 4096;
/** Interval between two writes of a position for skipped documents, in milliseconds. */
export const subscriptionPassedMs = 1_000;
/** Maximum number of revisions that a subscription looks up in one call. */
export const subscriptionRevisionsMax = 65_536;
/** Maximum number of workers of a subscription, including workers waiting for it. */
export const subscriptionWorkersMax = 256;
/** Maximum number of changes of documents that wait for a program's loop over them. */
export const changesWaitingMax = 100_000;
/** Maximum number of rows of a query that wait for a program's loop over them. */
export const rowsWaitingMax = 256;
/** Maximum size of these rows, in bytes: beyond it, one row waits at a time. */
export const rowBytesWaitingMax = 1024 * 1024;
/** Maximum number of damaged records that a database lists. */
export const damagedListMax = 1000;

/**
 * Default of the maximum number of commands in a batch: they are one transaction, which becomes visible in one tick of
 * the event loop.
 */
export const batchCommandsMax = 25_000;
/** Maximum wait of a large reply or body for memory before it is refused, in milliseconds. */
export const roomWaitMs = 10_000;
/** Maximum number of large replies or bodies that wait for memory; more are refused immediately. */
export const roomWaitersMax = 1_024;
/**
 * Time for which a peer may neither read its reply nor send its body while others wait for the memory that it holds, in
 * milliseconds.
 */
export const pressedStallMs = 5_000;
/**
 * Size of a document's record above which a reply streams it in chunks instead of composing it as a whole, in bytes.
 */
export const largeRecordBytes = 128 * 1024;
/**
 * Size of a document's record from which on each load of it is recorded, in bytes, and maximum number of recorded
 * loads: as in RavenDB 7.2.7.
 */
export const hugeRecordBytes = 5 * 1024 * 1024;
export const hugeLoadsMax = 100;
/** Maximum size of the texts of patches whose runs are counted, in bytes. */
export const knownPatchBytesMax = 256 * 1024;

assert(documentBytesMax < transactionBytesMax, "a document fits into one transaction");
assert(2 * (1 + seriesValuesMax) <= seriesSegmentNumbersMax, "a segment of a series has room");
assert(segmentBytesMin <= segmentBytesMax, "segments grow");
assert(replicaStallMs < replicaMissingMs, "a leader that cannot go on follows before it stops");
assert(backgroundSliceMs <= sliceMs, "background slices are no longer than other slices");
assert(transactionBytesMax < 2 ** 31, "offsets inside a segment are 31 bits");
