/** The log of a server process: standard error, and a file where the settings name a folder. */
import type { LogSettings } from "../settings/log-settings.ts";
import { StartError } from "../settings/start-error.ts";
import { Log } from "./log.ts";
import { LogFile, type LogFileOptions } from "./log-file.ts";
import { type LogStream, StreamSink } from "./stream-sink.ts";

/** @throws StartError setting-invalid if the folder is not usable */
export async function openProcessLog(settings: LogSettings, stream: LogStream): Promise<Log> {
  const { folder, archives, minLevel } = settings;
  const shown = new StreamSink(stream, settings.format);
  if (folder === undefined) return new Log(minLevel, [shown]);
  const onlyShown = new Log(minLevel, [shown]);
  const failed = (error: unknown): void => {
    onlyShown.write(
      "Error",
      `The log in ${folder} cannot be written, and its lines are lost. Check the disk and the folder's owner.`,
      { event: "log-failed" },
      error,
    );
  };
  const file = await openLogFile("Logs.Path", {
    folder,
    name: "server",
    archives,
    isSynced: false,
    failed,
  });
  return new Log(minLevel, [shown, file]);
}

/** As `LogFile.open`. `setting` is the name of the folder's setting. @throws StartError setting-invalid */
export async function openLogFile(setting: string, options: LogFileOptions): Promise<LogFile> {
  try {
    return await LogFile.open(options);
  } catch (error) {
    throw new StartError(
      "setting-invalid",
      `The log cannot be written in ${options.folder} (${(error as Error).message}); make the folder writable, or set ${setting} ` +
        "to another",
      { cause: error },
    );
  }
}
