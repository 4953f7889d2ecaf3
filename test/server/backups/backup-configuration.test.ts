/** Accepted and rejected backup configurations: destinations, types, frequencies, retention. */
import { expect, test } from "vitest";
import {
  oneTimeFolder,
  periodicBackup,
  periodicBackupsOf,
  periodicFolder,
  retentionMs,
} from "../../../server/backups/backup-configuration.ts";

const now = new Date(Date.UTC(2026, 10, 23, 2, 15, 1));
const local = { FolderPath: "/backups" };
const s3 = {
  BucketName: "bucket",
  AwsRegionName: "us-east-1",
  AwsAccessKey: "a",
  AwsSecretKey: "s",
};
const sent = { Name: "nightly", FullBackupFrequency: "0 2 * * *", LocalSettings: local };

test("a definition has all keys, in RavenDB's order", () => {
  const task = periodicBackup({ ...sent, Junk: 1 }, 640, now);
  expect(JSON.stringify(task)).toBe(
    '{"BackupType":"Backup","BackupUploadMode":"Default","SnapshotSettings":null,"BackupEncryptionSettings":null,"MaxReadOpsPerSecond":null,"LocalSettings":{"Disabled":false,"GetBackupConfigurationScript":null,"FolderPath":"/backups","ShardNumber":null},"S3Settings":null,"GlacierSettings":null,"AzureSettings":null,"GoogleCloudSettings":null,"FtpSettings":null,"Name":"nightly","TaskId":640,"Disabled":false,"MentorNode":null,"PinToMentorNode":false,"FullBackupFrequency":"0 2 * * *","IncrementalBackupFrequency":null,"RetentionPolicy":null,"CreatedAt":"2026-11-23T02:15:01.0000000Z"}',
  );
  expect(periodicFolder(task)).toBe("/backups");
  expect(periodicBackup({ ...sent, Name: "" }, 1, now).Name).toBe("Backup to Local");
});

test.each([
  [{ FullBackupFrequency: null }, "Couldn't parse the cron expressions"],
  [{ IncrementalBackupFrequency: "often" }, "too few parameters"],
  [{ FullBackupFrequency: 5 }, "'FullBackupFrequency' must be text."],
  [{ LocalSettings: null }, "The backup configuration is enabled without target any destinations"],
  [{ LocalSettings: { ...local, Disabled: true } }, "without target any destinations"],
  [{ LocalSettings: { FolderPath: " " } }, "cannot be both null or empty"],
  [{ LocalSettings: { FolderPath: ["/a"] } }, "cannot be both null or empty"],
  [
    { LocalSettings: { ...local, GetBackupConfigurationScript: { Exec: "sh" } } },
    "runs no programs for clients",
  ],
  [{ S3Settings: { ...s3, BucketName: "a/b" } }, "is not a valid bucket name"],
  [{ S3Settings: { ...s3, AwsRegionName: null } }, "AWS Region Name cannot be null or empty"],
  [{ S3Settings: { ...s3, AwsRegionName: "x.evil.example/" } }, "is not a region"],
  [{ S3Settings: { ...s3, CustomServerUrl: "ftp://x" } }, "must be a URL without user"],
  [{ S3Settings: { ...s3, CustomServerUrl: "http://a:b@x" } }, "must be a URL without user"],
  [{ S3Settings: s3 }, "A backup has one destination"],
  [
    { S3Settings: { ...s3, GetBackupConfigurationScript: { Exec: "sh" } } },
    "runs no programs for clients",
  ],
  [{ AzureSettings: { StorageContainer: "c" } }, "Backups to Azure are not supported"],
  [{ FtpSettings: { Url: "ftp://x" } }, "Backups to FTP are not supported"],
  [{ BackupType: "Snapshot" }, "Snapshots are not supported"],
  [{ BackupType: "None" }, "Could not convert 'None' to Raven.Client"],
  [{ BackupEncryptionSettings: { EncryptionMode: "UseDatabaseKey" } }, "Use UseProvidedKey"],
  [{ BackupEncryptionSettings: { EncryptionMode: "Rot13" } }, "Could not convert 'Rot13'"],
  [{ RetentionPolicy: { MinimumBackupAgeToKeep: "01:00:00" } }, "must be bigger than one day"],
  [{ RetentionPolicy: { MinimumBackupAgeToKeep: "-9.00:00:00" } }, "must be bigger than one day"],
  [{ RetentionPolicy: { MinimumBackupAgeToKeep: "a week" } }, "to a time span"],
])("rejects %j", (change, message) => {
  expect(() => periodicBackup({ ...sent, ...change }, 1, now)).toThrow(message);
});

test("accepts disabled and empty settings", () => {
  const task = periodicBackup(
    {
      ...sent,
      LocalSettings: null,
      Disabled: true,
      S3Settings: { Disabled: true },
      BackupEncryptionSettings: { EncryptionMode: "None", Key: null },
      RetentionPolicy: { MinimumBackupAgeToKeep: "2.00:00:00" },
    },
    1,
    now,
  );
  expect(periodicFolder(task)).toBeNull();
  expect(task.Name).toBe("nightly");
  expect(retentionMs(task)).toBe(2 * 86_400_000);
  const off = { RetentionPolicy: { Disabled: true, MinimumBackupAgeToKeep: "2.00:00:00" } };
  expect(retentionMs(periodicBackup({ ...sent, ...off }, 1, now))).toBeNull();
});

test("a one-time backup requires a folder", () => {
  expect(oneTimeFolder({ LocalSettings: local })).toBe("/backups");
  const refused = "The backup configuration target no destinations";
  expect(() => oneTimeFolder({ BackupType: "Backup" })).toThrow(refused);
  expect(() => oneTimeFolder({ LocalSettings: { ...local, Disabled: true } })).toThrow(refused);
});

test("drops tasks of a database record that this server would not have stored", () => {
  const kept = periodicBackup(sent, 7, now);
  const bad = [null, 1, [], {}, { ...kept, TaskId: "x" }, { ...kept, FullBackupFrequency: "x" }];
  expect(periodicBackupsOf({ PeriodicBackups: [...bad, kept] })).toEqual([kept]);
  for (const PeriodicBackups of [undefined, null, {}, "x"]) {
    expect(periodicBackupsOf({ PeriodicBackups })).toEqual([]);
  }
});
