/**
 * Every limit of the engine, with its unit. Limits that depend on each other are asserted at the end.
 * A limit that an operator may change is a default here and a setting in server/config.ts.
 */
import { assert } from "./assert.ts";

/** UTF-8 bytes of a document id, collection, attachment, counter or compare-exchange name. */
export const nameBytesMax = 512;
/** UTF-8 bytes of the key of an entry, names of several parts together: its length has 16 bits on the disk. */
export const entryKeyBytesMax = 65_535;
/** Bytes of a change vector: its length has 16 bits on the disk. */
export const changeVectorBytesMax = 65_535;
/** Characters of a database name. */
export const databaseNameLengthMax = 128;
/** Times in an hour that a database which has stopped is opened again by itself. */
export const reopeningsMax = 3;
export const reopeningWindowMs = 3_600_000;
/** Milliseconds that a database which has stopped waits for what is at work in it before it is opened again. */
export const endingWaitMs = 1_000;
/** UTF-8 bytes of one document's text. */
export const documentBytesMax = 256 * 1024 * 1024;
/** Objects and arrays inside each other in one document. */
export const documentDepthMax = 10_000;
/**
 * Bytes of a document's text from which on it is parsed and copied in slices before its transaction, which is made in one
 * turn of the event loop.
 */
export const preparedBytesMin = 256 * 1024;
/** Bytes of one transaction in the log. */
export const transactionBytesMax = 512 * 1024 * 1024;
/** Bytes at which a segment of the log is full and the next begins (a larger transaction gets one of its size). */
export const segmentBytesMax = 64 * 1024 * 1024;
/** Bytes of a new database's first segment; each next one is twice as large, up to `segmentBytesMax`. */
export const segmentBytesMin = 256 * 1024;
/** Of the budget of memory, the part that a new segment takes at most: its image is in memory while it is written. */
export const segmentShareOfMemory = 1 / 16;
/** Bytes handed to the disk but not yet synced, above which a writer must wait. */
export const unsyncedBytesMax = 64 * 1024 * 1024;
/** The same as a part of the budget of memory, where that is less. */
export const unsyncedShareOfMemory = 1 / 8;
/** Milliseconds without a heartbeat of the owner of a folder after which another process may take it. */
export const folderSilenceMs = 10_000;
/** The least that a setting may make of it: heartbeats come ten times as often. */
export const folderSilenceMsMin = 500;
/** Numbers of segments and snapshots that are left out for an owner before us that may be about to use them. */
export const rivalNumbers = 64;
/** Free bytes on the disk below which a database takes no writes but deletes. */
export const diskReserveBytes = 16 * 1024 * 1024;
/** Collections of one database: the row has 16 bits for it. */
export const collectionCountMax = 65_535;
/** Distinct top-level property lists ("shapes") of one database that get a field table. */
export const shapeCountMax = 16_384;
/** Properties of one shape; a document with more has no field table. */
export const shapeFieldCountMax = 512;
/** Bytes of memory for the shapes of one database, by a rough count; what comes later has no shape. */
export const shapeMemoryBytesMax = 32 * 1024 * 1024;
/** Compressed bytes of an export that are gathered before its reply is begun: what fails before is answered as an error. */
export const exportHeldBytesMax = 1024 * 1024;
/** Statements of one run of a script when its limits are not lifted. */
export const scriptStepsMax = 10_000;
/** Milliseconds of processor time of one run of a script: nothing else is served meanwhile. Nobody lifts it. */
export const scriptMsMax = 25;
/** Milliseconds of processor time of all scripts of one batch: nobody else writes to the database meanwhile. */
export const batchScriptMsMax = 10_000;
/** Units of work of scripts in a millisecond: what one is thought to cost is about 10 ns. */
export const scriptWorkPerMs = 100_000;
/** Bytes of values that one run of a script makes, and of what it stores. Nobody lifts it. */
export const scriptBytesMax = 64 * 1024 * 1024;
/** UTF-16 units of a string that a script makes. */
export const scriptTextLengthMax = 16 * 1024 * 1024;
/** Compiled scripts that are kept. */
export const compiledScriptsMax = 2_048;
/** Automatic indexes of one database: for one more, the one that was not queried for longest goes. */
export const automaticIndexesMax = 256;
/** Fields of an automatic index: a query that needs more beside them gets another one. */
export const automaticIndexFieldsMax = 256;
/** Minutes without a query after which an automatic index is idle, and hours after which an idle one goes, by default. */
export const automaticIndexIdleMinutes = 30;
export const automaticIndexDeletionHours = 72;
/** Fields of one deployed index, those that its maps compute included. */
export const indexFieldsMax = 512;
/** UTF-16 units of all texts of one deployed index together. */
export const indexTextLengthMax = 1024 * 1024;
/** Entries that a deployed index makes of one document. */
export const indexEntriesPerDocumentMax = 32_768;
/** Bytes of an object's text that a deployed index finds it by; a longer one is only known to be there. */
export const objectTermBytesMax = 16 * 1024;
/** Units of work of one query: terms, entries, steps of an expression looked at. A million take some 10 milliseconds. */
export const queryWorkMax = 1_000_000_000;
/** Bytes that one query may hold for what it gathers. */
export const queryBytesMax = 128 * 1024 * 1024;
/** UTF-16 units of a query's text. */
export const queryTextLengthMax = 256 * 1024;
/** UTF-16 units of one word or phrase that is sought in full text. */
export const searchPhraseLengthMax = 32 * 1024;
/** Conditions of one query's text; it may have four words, values and signs for each. */
export const queryClausesMax = 4_096;
/** Items of one `select`, `order by`, `group by`, `load` or `include`. */
export const queryItemsMax = 2_048;
/** Functions that one query declares. */
export const queryDeclarationsMax = 256;
/** Bytes of a request that asks a query, parameters included. */
export const queryRequestBytesMax = 2 * 1024 * 1024;
/** Lists and objects inside each other in a query's parameters. */
export const queryParametersDepthMax = 512;
/** Documents of reduced objects that are stored or deleted in one transaction. */
export const outputDocumentsPerWrite = 1_024;
/** Bytes of attachments that the map of one document may look at. */
export const indexedContentBytesMax = 32 * 1024 * 1024;
/** Values of one key that are reduced at once; more are reduced in pages first. */
export const reducePageValuesMax = 1_024;
/** Errors that an index keeps. */
export const indexErrorsMax = 500;
/** Definitions of an index that its history keeps when no setting says how many. */
export const indexRevisionsDefault = 10;
/** UTF-16 units of all definitions of an index's history together. */
export const indexHistoryLengthMax = 4 * indexTextLengthMax;
/** Deployed indexes of one database. */
export const staticIndexesMax = 1_024;
/** Bytes a second that background work (compaction, index snapshots, scrubs) reads and writes at most. */
export const backgroundBytesPerSecond = 64 * 1024 * 1024;
/** Values of one entry of a time series. */
export const seriesValuesMax = 32;
/** UTF-8 bytes of a tag of a time series. */
export const seriesTagBytesMax = 255;
/** Times and values together that one segment of a time series holds: 512 entries of one value. */
export const seriesSegmentNumbersMax = 1024;
/** Milliseconds between looks for documents that expire or are to be refreshed, when nothing else is configured. */
export const dueDocumentsIntervalMs = 60_000;
/** Minutes that revisions of deleted documents stay, and seconds between looks for them, when nothing else is configured. */
export const revisionBinMinutes = 30 * 24 * 60;
export const revisionBinIntervalSeconds = 300;
/**
 * Microseconds that the time of a record may be ahead of the clock when a database is opened and still be before the time
 * of every write from then on: clocks are set back, but not by more than a day.
 */
export const clockLeadMicrosMax = 24 * 3_600 * 1_000_000;
/** Documents that background work of many documents changes in one transaction. */
export const documentsPerTask = 256;
/** Milliseconds of work that may hold the event loop before it is given back. */
export const sliceMs = 5;
/** The same for work in the background that nobody waits for. */
export const backgroundSliceMs = 0.1;
/** Ended operations of one database that can still be asked for. */
export const finishedOperationsMax = 256;
/** Bytes of commands that a bulk insert commits at once, and may hold while a commit is under way. */
export const bulkInsertBatchBytes = 16 * 1024 * 1024;
/** Commands that a bulk insert commits at once. */
export const bulkInsertBatchCommands = 8192;
/** Bytes of one item of a dump, the raw bytes behind it left out. */
export const dumpItemBytesMax = documentBytesMax + 1024 * 1024;
/** Items of a dump that an import commits at once. */
export const importBatchItems = 1024;
/** Bytes of items that an import commits at once. */
export const importBatchBytes = 8 * 1024 * 1024;
/** Transactions of an import that are on their way to the disk while the next gathers. */
export const importsInFlightMax = 4;
/** Messages that the result of an export or import keeps; those in the middle go. */
export const smugglerMessagesMax = 200;
/** Bytes that a compressed dump may unfold to for each byte that came, above `dumpUnfoldedBytesFree`. */
export const dumpUnfoldFactorMax = 256;
/** Bytes that a compressed dump may unfold to, however small it is. */
export const dumpUnfoldedBytesFree = 256 * 1024 * 1024;
/** Milliseconds between the runs of the task that removes deleted documents' markers. */
export const tombstoneCleanupIntervalMs = 300_000;
/** New tombstones after which that task runs at once: each takes some 600 bytes of memory. */
export const tombstonesDueCount = 8192;
/** Milliseconds until it runs again when as many had to stay, as an index has not passed them. */
export const tombstonesRetryMs = 1000;
/** That task goes on while at least this many can be removed. */
export const tombstonesPerPurge = 1000;
/** Tombstones that are removed between two looks at the clock: about half a millisecond. */
export const tombstonesPerStep = 64;
/** Milliseconds between two looks whether a database that was written to is at rest. */
export const restLookMs = 5_000;
/** Bytes of new log between these looks up to which it is. */
export const restLogBytes = 256 * 1024;
/**
 * Bytes of new log after which an index snapshot is written, so that opening replays at most about that much; more where
 * snapshots are large (maintenance.ts).
 */
export const snapshotLogBytes = 512 * 1024 * 1024;
/** Milliseconds after the first change since the last index snapshot until the next is written. */
export const snapshotIntervalMs = 600_000;
/** Milliseconds without a new document before new ids are put in order. */
export const settleOrderDelayMs = 100;
/** Milliseconds between two scrubs of a database. */
export const scrubIntervalMs = 24 * 3_600_000;
/** Bytes a second that a scrub in the background reads at most. */
export const scrubBytesPerSecond = 8 * 1024 * 1024;
/** Subscription tasks of one database. */
export const subscriptionCountMax = 1024;
/** Characters of a subscription's query. */
export const subscriptionQueryLengthMax = 65_536;
/** Documents of one batch of a subscription, whatever its worker asks for. */
export const subscriptionBatchDocumentsMax = 65_536;
/** Bytes of documents at which a batch of a subscription is full. */
export const subscriptionBatchBytes = 8 * 1024 * 1024;
/** Milliseconds of looking for documents after which a batch that has some is sent. */
export const subscriptionBatchMs = 5_000;
/** Documents that a query of a subscription passed over, after which its position is written. */
export const subscriptionPassedMax = 4096;
/** Milliseconds between two writes of a position for documents that were passed over. */
export const subscriptionPassedMs = 1_000;
/** Revisions that a subscription looks up at once. */
export const subscriptionRevisionsMax = 65_536;
/** Workers of one subscription, with those that wait for it. */
export const subscriptionWorkersMax = 256;
/** Damaged records that a database lists. */
export const damagedListMax = 1000;

/** Commands of one batch when no setting says otherwise: they are one transaction, which becomes visible in one turn. */
export const batchCommandsMax = 25_000;
/** Milliseconds that a large reply or body waits for room before it is refused. */
export const roomWaitMs = 10_000;
/** Large replies or bodies that wait for room; more are refused at once. */
export const roomWaitersMax = 1_024;
/** Milliseconds that a peer may leave what it is sent, or owes, as it is while others wait for the room that it holds. */
export const pressedStallMs = 5_000;
/** Bytes of a document's record above which it is not composed for a reply, but written piece by piece as it is taken. */
export const largeRecordBytes = 128 * 1024;

assert(documentBytesMax < transactionBytesMax, "a document fits into one transaction");
assert(2 * (1 + seriesValuesMax) <= seriesSegmentNumbersMax, "a segment of a series has room");
assert(segmentBytesMin <= segmentBytesMax, "segments grow");
assert(backgroundSliceMs <= sliceMs, "what nobody waits for holds nobody up");
assert(transactionBytesMax < 2 ** 31, "offsets inside a segment are 31 bits");
