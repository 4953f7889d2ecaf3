/** `jackdaw backup`, `restore` and `compact`: operations of the server that are waited for. */
import { resolve } from "node:path";
import { inDatabase } from "../client.ts";
import type { Surroundings } from "../command.ts";
import { waitForOperation } from "../operations.ts";

interface Started {
  readonly OperationId: number;
}

export async function run(surroundings: Surroundings): Promise<void> {
  const { command, arguments: given, client, database, options, print } = surroundings;
  let isOfDatabase = false;
  let started: Started;
  let done: string;
  if (command.name === "backup") {
    const FolderPath = resolve(given[0] ?? "");
    isOfDatabase = true;
    done = `${database()} was backed up to ${FolderPath}`;
    started = (await client().json(inDatabase(database(), "admin/backup"), {
      method: "POST",
      body: { BackupType: "Backup", LocalSettings: { FolderPath } },
    })) as Started;
  } else if (command.name === "restore") {
    const BackupLocation = resolve(given[0] ?? "");
    const DatabaseName = given[1];
    done = `${DatabaseName} was restored from ${BackupLocation}`;
    started = (await client().json("/admin/restore/database", {
      method: "POST",
      body: { Type: "Local", DatabaseName, BackupLocation, DisableOngoingTasks: true },
    })) as Started;
  } else {
    done = `${database()} was compacted`;
    started = (await client().json("/admin/compact", {
      method: "POST",
      body: { DatabaseName: database(), Documents: true },
    })) as Started;
  }
  const of = isOfDatabase ? database() : undefined;
  const { Result } = await waitForOperation(surroundings, of, started.OperationId);
  print(options.is("json") ? JSON.stringify(Result) : done);
}
