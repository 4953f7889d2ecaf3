/** Replaces the files of a database by those of another node's copy of it. */

import { BlobStore, hashOfContentName } from "../../storage/log/blob-store.ts";
import { LogRestore } from "../../storage/shipping/log-restore.ts";
import type { DatabaseCatalog } from "../database/database-catalog.ts";
import type { OpenDatabase } from "../database/open-database.ts";

/**
 * The bytes of a content that the old files of a database have, by its name. @throws (while iterating) EngineError
 * record-damaged when they have it not, or damaged; read-failed
 */
export type OldContent = (name: string) => AsyncGenerator<Buffer>;

/** Adds a base, and the contents of attachments that belong to it. */
export type AddFiles = (restore: LogRestore, old: OldContent) => Promise<void>;

/**
 * Replaces the files of a database by shipped files of another node's copy of the same database. After a crash or a
 * failure, either the old or the new files are complete. The old files are used until all new files are there.
 * @throws EngineError database-missing, not-supported for databases in memory, backup-damaged, and the errors of `add`
 */
export function replaceFiles(
  catalog: DatabaseCatalog,
  name: string,
  add: AddFiles,
): Promise<OpenDatabase> {
  return catalog.replaceFiles(name, async (environment, folder, old) => {
    const contents = new BlobStore(environment, `${old}/blobs`);
    const restore = new LogRestore(environment, folder, Number.POSITIVE_INFINITY);
    try {
      await add(restore, (content) => contents.bytes(hashOfContentName(content)));
      await restore.finish();
    } catch (error) {
      await restore.abandon();
      throw error;
    }
  });
}
