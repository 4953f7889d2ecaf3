/**
 * Opening a database: its log, its index snapshot, the records after it; and what goes into such a snapshot.
 */
import type { BlobStore } from "./blob-store.ts";
import { databaseHash } from "./change-vector.ts";
import { ChangeFeed } from "./changes.ts";
import type { DatabaseOptions } from "./database.ts";
import type { DatabaseState } from "./database-state.ts";
import type { Environment } from "./environment.ts";
import { EngineError } from "./errors.ts";
import { DocumentParser } from "./json/json-parser.ts";
import { DocumentTable } from "./keyspaces/document-table.ts";
import { KeyspaceTable } from "./keyspaces/keyspace-table.ts";
import { ShapeTable } from "./keyspaces/shapes.ts";
import { type FileLog, openLog } from "./log/file-log.ts";
import type { LogListener, SnapshotSection } from "./log/log.ts";
import { DatabaseRecords } from "./record-owner.ts";

/** What a database is made of. */
export interface DatabaseParts {
  name: string;
  environment: Environment;
  log: FileLog;
  state: DatabaseState;
  blobs: BlobStore;
  isInMemory: boolean;
}

const shapesSection = "shapes";
const stateSection = "state";
