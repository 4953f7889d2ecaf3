/** The members of the results of backups and restores besides the counts of their dumps. Keys and order are those of RavenDB 7.2.7. */
import type { JsonObject } from "../http/json-body.ts";

const remoteNames = ["S3Backup", "AzureBackup", "GoogleCloudBackup", "GlacierBackup", "FtpBackup"];

/** Returns the destinations of a backup. Arguments are null until a file was written. */
export function backupStorages(directory: string | null, fileName: string | null): JsonObject {
  const remotes = remoteNames.map((name) => [name, { ...noTimes, Skipped: true, UploadProgress }]);
  return {
    SnapshotBackup: skippedSnapshot(false),
    ...Object.fromEntries(remotes),
    LocalBackup: {
      ...noTimes,
      BackupDirectory: directory,
      FileName: fileName,
      TempFolderUsed: false,
    },
  };
}

/** Returns the files of a restore. @param current counted from 1 */
export function restoredFiles(
  isDone: boolean,
  fileName: string | null,
  current: number,
  count: number,
): JsonObject {
  return {
    DataDirectory: null,
    JournalStoragePath: null,
    SnapshotRestore: skippedSnapshot(isDone),
    Files: { CurrentFileName: fileName, CurrentFile: current, FileCount: count },
  };
}

const noTimes = {
  LastFullBackup: null,
  LastIncrementalBackup: null,
  FullBackupDurationInMs: null,
  IncrementalBackupDurationInMs: null,
  Exception: null,
};

const UploadProgress = {
  $type: "Raven.Client.Documents.Operations.Backups.UploadProgress, Raven.Client",
  UploadType: "Regular",
  UploadState: "PendingUpload",
  UploadedInBytes: 0,
  TotalInBytes: 0,
  BytesPutsPerSec: 0,
  UploadTimeInMs: 0,
};

function skippedSnapshot(isDone: boolean): JsonObject {
  return {
    StartTime: null,
    Processed: isDone,
    ReadCount: 0,
    Skipped: true,
    ErroredCount: 0,
    SizeInBytes: 0,
  };
}
