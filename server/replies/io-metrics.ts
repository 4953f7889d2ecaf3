/** The newest writes to the files of a log, in the shape of RavenDB 7.2.7. */
import { formatTimestamp } from "../../engine/base/timestamp.ts";
import type { DiskWrite, DiskWriteKind } from "../../engine/engine.ts";
import { humaneSize } from "../http/dates.ts";
import type { JsonObject } from "../http/json-body.ts";

const types: Readonly<Record<DiskWriteKind, string>> = {
  append: "JournalWrite",
  sync: "DataSync",
  rewrite: "DataFlush",
};

/** `path` is the folder of the files, `type` is Documents or System. */
export function ioMetrics(path: string, type: string, writes: readonly DiskWrite[]): JsonObject {
  const byFile = new Map<string, JsonObject[]>();
  for (const write of writes) {
    const rows = byFile.get(write.file) ?? [];
    rows.push(rowOf(write));
    byFile.set(write.file, rows);
  }
  const files = [...byFile].map(([File, Recent]) => ({
    File,
    Status: "InUse",
    Recent,
    History: [],
  }));
  const environments = files.length === 0 ? [] : [{ Path: path, Type: type, Files: files }];
  return { Environments: environments, Performances: [] };
}

/** Returns the durations of the last commits, under RavenDB's name. */
export function commitTimes(writes: readonly DiskWrite[]): JsonObject[] {
  const Recent = writes
    .filter(({ kind }) => kind === "append")
    .map((write) => {
      const { Start, Duration } = rowOf(write);
      return { Start, Duration, Type: "Transaction" };
    });
  return Recent.length === 0 ? [] : [{ MetricType: "Transaction", Recent, History: [] }];
}

function rowOf({ kind, bytes, fileBytes, endedAtMicros, durationMs }: DiskWrite): JsonObject {
  return {
    Start: formatTimestamp(endedAtMicros - Math.round(durationMs * 1000)),
    Size: bytes,
    HumaneSize: humaneSize(bytes),
    FileSize: fileBytes,
    HumaneFileSize: humaneSize(fileBytes),
    Duration: Math.round(durationMs * 100) / 100,
    Type: types[kind],
  };
}
