/**
 * Every limit of the engine, with its unit. Limits that depend on each other are asserted at the end.
 * A limit that an operator may change is a default here and a setting in server/settings/config.ts.
 */
import { assert } from "./assert.ts";

/** UTF-8 bytes of a document id, collection, attachment, counter or compare-exchange name. */
export const nameBytesMax = 512;
/** UTF-8 bytes of the key of an entry, all its parts together: its length has 16 bits on disk. */
export const entryKeyBytesMax = 65_535;
/** Bytes of a change vector: its length has 16 bits on disk. */
export const changeVectorBytesMax = 65_535;
/** Characters of a database name. */
export const databaseNameLengthMax = 128;
/** Times per hour that a stopped database is reopened automatically. */
export const reopeningsMax = 3;
export const reopeningWindowMs = 3_600_000;
/** Milliseconds that a stopped database waits for the work in progress before it is reopened. */
export const endingWaitMs = 1_000;
/** UTF-8 bytes of one document's text. */
export const documentBytesMax = 256 * 1024 * 1024;
/** Nesting depth of objects and arrays in one document. */
export const documentDepthMax = 10_000;
/**
 * Bytes of a document's text from which on it is parsed and copied in slices before its transaction, which runs in one
 * turn of the event loop.
 */
export const preparedBytesMin = 256 * 1024;
/** Bytes of one transaction in the log. */
export const transactionBytesMax = 512 * 1024 * 1024;
/** Bytes at which a segment of the log is full and the next begins (a larger transaction gets one of its size). */
export const segmentBytesMax = 64 * 1024 * 1024;
/** Bytes of a new database's first segment; each next one is twice as large, up to `segmentBytesMax`. */
export const segmentBytesMin = 256 * 1024;
/** Largest part of the memory budget for a new segment: its image is in memory while it is written. */
export const segmentShareOfMemory = 1 / 16;
/** Bytes written but not yet synced, above which writers must wait. */
export const unsyncedBytesMax = 64 * 1024 * 1024;
/** The same limit as a part of the memory budget, where that is less. */
export const unsyncedShareOfMemory = 1 / 8;
/** Bytes of a group commit that one frame of a replicated log carries; a larger one takes several. */
export const framePartBytesMax = 1024 * 1024;
/** Bytes of an attachment's content in one frame of a replicated log. */
export const contentChunkBytesMax = framePartBytesMax;
/** Bytes of the payload of one frame of a replicated log: a chunk of content says what it is of. */
export const framePayloadBytesMax = framePartBytesMax + 64;
/** Bytes of a group commit that is replicated: what is unsynced, and a transaction of the largest size. */
export const replicatedGroupBytesMax = unsyncedBytesMax + transactionBytesMax;
/** Frames that a leader may have appended without knowing the outcome. Nodes that share a stream must agree on it. */
export const framesInFlightMax = 8;
/** Bytes that a follower may have been given and not made durable: it stops following beyond that. */
export const unappliedBytesMax = 64 * 1024 * 1024;
/** Milliseconds after which an open append is repeated for the first time; each next time twice as long, up to 16 times. */
export const replicaRetryMs = 100;
/** Milliseconds between comparisons of a node's last frame with the stream's. */
export const replicaProbeMs = 5_000;
/** Milliseconds that a leader trusts the stream to have its last frame still: less than others wait before they stand. */
export const replicaVerifiedMs = 1_000;
/**
 * Milliseconds that a frame of the own log must be missing in the stream before the stream is believed to have lost it. More
 * than `replicaStallMs`: a leader behind which the stream was trimmed follows again, and finds that out.
 */
export const replicaMissingMs = 30_000;
/** Milliseconds without progress, while others are known to have more, after which a follower follows again, then asks. */
export const replicaBehindMs = 2_000;
/** Milliseconds without progress after which a leader stops leading, and says what is open that it is unknown. */
export const replicaStallMs = 20_000;
/** Milliseconds without a heartbeat of the owner of a folder after which another process may take it. */
export const folderSilenceMs = 10_000;
/** The lowest value that a setting may give it: heartbeats are ten times as frequent. */
export const folderSilenceMsMin = 500;
/** Segment and snapshot numbers that are skipped, because a previous owner may be about to use them. */
export const rivalNumbers = 64;
/** Free bytes on the disk below which a database accepts only deletes. */
export const diskReserveBytes = 16 * 1024 * 1024;
/**
 * Bytes of files that a database keeps only because a continuous backup has not taken them yet: with more it goes on
 * with a new base instead.
 */
export const followedBytesMin = 256 * 1024 * 1024;
/** The same limit as a part of the live bytes, where that is more. */
export const followedShare = 1 / 4;
/** Contents of attachments that a continuous backup may be behind with, beyond those that its base has. */
export const followedContentsMax = 1_000_000;
/** Collections of one database: a row has 16 bits for the number. */
export const collectionCountMax = 65_535;
/** Distinct top-level property lists ("shapes") of one database that get a field table. */
export const shapeCountMax = 16_384;
/** Properties of one shape; a document with more has no field table. */
export const shapeFieldCountMax = 512;
/** Bytes of memory for the shapes of one database, by a rough count; further documents get no shape. */
export const shapeMemoryBytesMax = 32 * 1024 * 1024;
/**
 * Compressed bytes of an export that are held before its reply begins: an error up to there is answered as an error.
 */
export const exportHeldBytesMax = 1024 * 1024;
/** Statements in one run of a script, unless its limits are lifted. */
export const scriptStepsMax = 10_000;
/** Milliseconds of processor time for one run of a script, which blocks everything else. Cannot be lifted. */
export const scriptMsMax = 25;
/** Milliseconds of processor time of all scripts of one batch, during which no other transaction begins. */
export const batchScriptMsMax = 10_000;
/** Units of script work in a millisecond: one is estimated at 10 ns. */
export const scriptWorkPerMs = 100_000;
/** Bytes of values that one run of a script creates, including what it stores. Cannot be lifted. */
export const scriptBytesMax = 64 * 1024 * 1024;
/** UTF-16 units of a string that a script creates. */
export const scriptTextLengthMax = 16 * 1024 * 1024;
/** Bytes of the compiled scripts that are cached, in the process. */
export const compiledScriptBytesMax = 64 * 1024 * 1024;
/** Bytes of the texts of queries' scripts whose syntax was found valid, in the process. */
export const checkedScriptBytesMax = 8 * 1024 * 1024;
/** Bytes of the syntax trees of queries that are cached, in one database. */
export const queryTreeBytesMax = 16 * 1024 * 1024;
/** Automatic indexes of one database: beyond that, the one not queried for longest is deleted. */
export const automaticIndexesMax = 256;
/** Milliseconds that a query waits for an index that was created for it. */
export const newIndexWaitMs = 15_000;
/** Fields of an automatic index: a query that needs more besides these gets another index. */
export const automaticIndexFieldsMax = 256;
/**
 * Minutes without a query after which an automatic index becomes idle, and hours after which an idle one is deleted, by
 * default.
 */
export const automaticIndexIdleMinutes = 30;
export const automaticIndexDeletionHours = 72;
/** Fields of one deployed index, including those that its maps compute. */
export const indexFieldsMax = 512;
/** UTF-16 units of all texts of one deployed index together. */
export const indexTextLengthMax = 1024 * 1024;
/** Entries that a deployed index produces for one document. */
export const indexEntriesPerDocumentMax = 32_768;
/** Bytes of an object's text by which a deployed index finds it; of a longer one only its presence is indexed. */
export const objectTermBytesMax = 16 * 1024;
/** Bytes of a vector that is indexed or sought. */
export const vectorBytesMax = 64 * 1024;
/** Units of work of one query: terms, entries and expression steps. A million take some 10 milliseconds. */
export const queryWorkMax = 1_000_000_000;
/** Bytes that one query may hold for intermediate results. */
export const queryBytesMax = 128 * 1024 * 1024;
/** UTF-16 units of a query's text. */
export const queryTextLengthMax = 256 * 1024;
/** UTF-16 units of one word or phrase in a full-text search. */
export const searchPhraseLengthMax = 32 * 1024;
/** Conditions in one query's text; it may have four words, values and operators for each. */
export const queryClausesMax = 4_096;
/** Items of one `select`, `order by`, `group by`, `load` or `include`. */
export const queryItemsMax = 2_048;
/** Terms of one `suggest()`. */
export const suggestedTermsMax = 256;
/** Terms of the base of one `moreLikeThis()` that are looked for, whatever its options say. */
export const likenessTermsMax = 1_024;
/** Bytes of a document that describes facets or lists stop words: it is parsed at once. */
export const namedDocumentBytesMax = 256 * 1024;
/** Functions declared in one query. */
export const queryDeclarationsMax = 256;
/** Bytes of a query request, including parameters. */
export const queryRequestBytesMax = 2 * 1024 * 1024;
/** Places of one shape, in a document or a query: it is parsed at once, in some ten milliseconds. */
export const shapePlacesMax = 16_384;
/** Characters of the well-known text of a shape. */
export const shapeTextLengthMax = 2 * 1024 * 1024;
/** Nesting depth of lists and objects in a query's parameters. */
export const queryParametersDepthMax = 512;
/** Reduce output documents that are stored or deleted in one transaction. */
export const outputDocumentsPerWrite = 1_024;
/** Bytes of attachment content that the map of one document may read. */
export const indexedContentBytesMax = 32 * 1024 * 1024;
/** Values of one key that are reduced at once; more are first reduced in pages. */
export const reducePageValuesMax = 16;
/** Errors that an index keeps. */
export const indexErrorsMax = 500;
/** Definitions that an index's history keeps by default. */
export const indexRevisionsDefault = 10;
/** UTF-16 units of all definitions in an index's history together. */
export const indexHistoryLengthMax = 4 * indexTextLengthMax;
/** Deployed indexes of one database. */
export const staticIndexesMax = 1_024;
/** Bytes per second that background work (compaction, index snapshots, scrubs) reads and writes at most. */
export const backgroundBytesPerSecond = 64 * 1024 * 1024;
/** Values of one entry of a time series. */
export const seriesValuesMax = 32;
/** UTF-8 bytes of a tag of a time series. */
export const seriesTagBytesMax = 255;
/** Times and values together that one segment of a time series holds: 512 entries of one value. */
export const seriesSegmentNumbersMax = 1024;
/** Milliseconds between scans for documents that expire or are due for refresh, by default. */
export const dueDocumentsIntervalMs = 60_000;
/** Seconds between deletions of compare-exchange values that have expired. */
export const compareExchangeExpirySeconds = 60;
/** Minutes that revisions of deleted documents are kept, and seconds between scans for them, by default. */
export const revisionBinMinutes = 30 * 24 * 60;
export const revisionBinIntervalSeconds = 300;
/**
 * Microseconds that the time of the last change may be ahead of the clock and still precede every later change. A
 * greater lead means that the clock was set back, or that a dump contained the time: then later changes have the time
 * of the clock again.
 */
export const clockLeadMicrosMax = 60 * 1_000_000;
/** Documents that background work changes in one transaction. */
export const documentsPerTask = 256;
/** Milliseconds of work before it yields to the event loop. */
export const sliceMs = 5;
/** The same for background work that no request waits for. */
export const backgroundSliceMs = 0.1;
/** Finished operations of one database that can still be queried. */
export const finishedOperationsMax = 256;
/** Operations of one database that can be undone, and days for which they can. */
export const undoOperationsMax = 16;
export const undoDaysMax = 7;
/** UTF-16 units of all fragments that `highlight()` makes for a query: they are written in one turn. */
export const highlightedLengthMax = 16 * 1024 * 1024;
/** UTF-16 units of a row's texts that `highlight()` scans, over all that it looks for. */
export const highlightScanMax = 4 * 1024 * 1024;
/** Bytes of commands that a bulk insert commits at once, and may buffer while a commit is in progress. */
export const bulkInsertBatchBytes = 16 * 1024 * 1024;
/** Commands that a bulk insert commits at once. */
export const bulkInsertBatchCommands = 8192;
/** Bytes of one item of a dump, without the raw bytes that follow it. */
export const dumpItemBytesMax = documentBytesMax + 1024 * 1024;
/** Items of a dump that an import commits at once. */
export const importBatchItems = 1024;
/** Bytes of items that an import commits at once. */
export const importBatchBytes = 8 * 1024 * 1024;
/** Transactions of an import that are being written to disk while the next one is gathered. */
export const importsInFlightMax = 4;
/** Messages that the result of an export or import keeps; those in the middle are dropped. */
export const smugglerMessagesMax = 200;
/** Decompressed bytes allowed per compressed byte of a dump, above `dumpUnfoldedBytesFree`. */
export const dumpUnfoldFactorMax = 256;
/** Decompressed bytes allowed for any dump, however small. */
export const dumpUnfoldedBytesFree = 256 * 1024 * 1024;
/** Milliseconds between two tombstone purges. */
export const tombstoneCleanupIntervalMs = 300_000;
/** New tombstones that trigger a purge at once: each takes some 600 bytes of memory. */
export const tombstonesDueCount = 8192;
/** Milliseconds until the next purge when as many had to stay because an index has not passed them. */
export const tombstonesRetryMs = 1000;
/** A purge goes on while at least this many can be removed. */
export const tombstonesPerPurge = 1000;
/** Tombstones removed between two readings of the clock: about half a millisecond. */
export const tombstonesPerStep = 64;
/** Milliseconds between two checks whether a database that was written to is at rest. */
export const restLookMs = 5_000;
/** Bytes of new log between two of these checks up to which it counts as at rest. */
export const restLogBytes = 256 * 1024;
/**
 * Bytes of new log after which an index snapshot is written, so that opening replays little more than that; more where
 * snapshots are large (maintenance.ts).
 */
export const snapshotLogBytes = 512 * 1024 * 1024;
/** Milliseconds after the first change since the last index snapshot until the next is written. */
export const snapshotIntervalMs = 600_000;
/** Milliseconds without a new document before new ids are sorted. */
export const settleOrderDelayMs = 100;
/** Milliseconds between two scrubs of a database. */
export const scrubIntervalMs = 24 * 3_600_000;
/** Bytes per second that a background scrub reads at most. */
export const scrubBytesPerSecond = 8 * 1024 * 1024;
/** Subscription tasks of one database. */
export const subscriptionCountMax = 1024;
/** Characters of a subscription's query. */
export const subscriptionQueryLengthMax = 65_536;
/** Documents in one batch of a subscription, whatever its worker requests. */
export const subscriptionBatchDocumentsMax = 65_536;
/** Bytes of documents at which a batch of a subscription is full. */
export const subscriptionBatchBytes = 8 * 1024 * 1024;
/** Milliseconds of searching after which a batch that has some documents is sent. */
export const subscriptionBatchMs = 5_000;
/** Documents skipped by a subscription's query after which its position is written. */
export const subscriptionPassedMax = 4096;
/** Milliseconds between two writes of a position for skipped documents. */
export const subscriptionPassedMs = 1_000;
/** Revisions that a subscription looks up at once. */
export const subscriptionRevisionsMax = 65_536;
/** Workers of one subscription, including those waiting for it. */
export const subscriptionWorkersMax = 256;
/** Changes of documents that wait for a program's loop over them. */
export const changesWaitingMax = 100_000;
/** Rows of a query that wait for a program's loop over them. */
export const rowsWaitingMax = 256;
/** Bytes of such rows: beyond that, one waits at a time. */
export const rowBytesWaitingMax = 1024 * 1024;
/** Damaged records that a database lists. */
export const damagedListMax = 1000;

/** Commands of one batch when no setting says otherwise: they are one transaction, which becomes visible in one turn. */
export const batchCommandsMax = 25_000;
/** Milliseconds that a large reply or body waits for memory before it is refused. */
export const roomWaitMs = 10_000;
/** Large replies or bodies that wait for memory; more are refused at once. */
export const roomWaitersMax = 1_024;
/**
 * Milliseconds that a peer may neither read its reply nor send its body while others wait for the memory that it holds.
 */
export const pressedStallMs = 5_000;
/** Bytes of a document's record above which a reply streams it in pieces instead of composing it as a whole. */
export const largeRecordBytes = 128 * 1024;
/** Bytes of a document's record from which each load of it is kept to be shown, and how many loads: as in RavenDB 7.2.7. */
export const hugeRecordBytes = 5 * 1024 * 1024;
export const hugeLoadsMax = 100;
/** Bytes of the texts of patches of which it is known how often they ran. */
export const knownPatchBytesMax = 256 * 1024;

assert(documentBytesMax < transactionBytesMax, "a document fits into one transaction");
assert(2 * (1 + seriesValuesMax) <= seriesSegmentNumbersMax, "a segment of a series has room");
assert(segmentBytesMin <= segmentBytesMax, "segments grow");
assert(replicaStallMs < replicaMissingMs, "a leader that cannot go on follows before it stops");
assert(backgroundSliceMs <= sliceMs, "what nobody waits for holds nobody up");
assert(transactionBytesMax < 2 ** 31, "offsets inside a segment are 31 bits");
