/** The metadata of a document: times at which the server acts on it, which can be edited, and all members as a tree. */
import { ServerError } from "../../base/client.ts";
import { ago, moment, until } from "../../base/format.ts";
import { may } from "../../base/identity.ts";
import { useResource } from "../../base/resource.ts";
import { DateTime } from "../../components/date-time.tsx";
import { JsonTree } from "../../components/json-tree.tsx";
import type { JsonMembers } from "../../json/json-source.ts";
import type { Version } from "./version.ts";

/** Changed times of the metadata by name; null for a time that is removed. */
export type Times = ReadonlyMap<string, string | null>;

export const noTimes: Times = new Map();

const kinds = [
  { name: "@expires", label: "Expires", feature: "expiration", title: "Expiration" },
  { name: "@refresh", label: "Refresh", feature: "refresh", title: "Refresh" },
  { name: "@archive-at", label: "Archive", feature: "data-archival", title: "Archival" },
] as const;

/** Returns a version with changed times. */
export function withTimes(version: Version, times: Times): Version {
  const metadata: JsonMembers = new Map(version.metadata);
  for (const [name, time] of times) {
    if (time === null) metadata.delete(name);
    else metadata.set(name, time);
  }
  return { ...version, metadata };
}

export function Metadata({
  id,
  base,
  version,
  times,
  round,
  change,
}: {
  id: string;
  base: string;
  version: Version;
  times: Times;
  /** Incremented when the fields must show the stored times again. */
  round: number;
  change: (times: Times) => void;
}) {
  const set = (name: string, timeMs: number | null) => {
    const stored = version.metadata.get(name);
    const text = timeMs === null ? null : serverText(timeMs);
    const next = new Map(times);
    const isStored = text === null ? stored === undefined : msOf(stored) === timeMs;
    if (isStored) next.delete(name);
    else next.set(name, text);
    change(next);
  };
  return (
    <div class="scroll grow stack">
      {may("write") && (
        <fieldset class="plain times" aria-label="Times">
          {kinds.map((kind) => (
            <TimeField
              key={`${kind.name} ${version.changeVector} ${round}`}
              base={base}
              kind={kind}
              present={
                times.has(kind.name) ? times.get(kind.name) : version.metadata.get(kind.name)
              }
              change={(timeMs) => set(kind.name, timeMs)}
            />
          ))}
        </fieldset>
      )}
      <JsonTree label={`Metadata of ${id}`} node={version.wholeMetadata} />
    </div>
  );
}

function TimeField({
  base,
  kind: { label, feature, title },
  present,
  change,
}: {
  base: string;
  kind: (typeof kinds)[number];
  present: unknown;
  change: (timeMs: number | null) => void;
}) {
  const config = useResource<{ readonly Disabled?: boolean }>(`${base}/${feature}/config`);
  const isUnset = config.error instanceof ServerError && config.error.status === 404;
  const isOff = isUnset || config.body?.Disabled === true;
  const timeMs = msOf(present);
  const nowMs = Date.now();
  const hint =
    timeMs === null
      ? "Not set."
      : `${timeMs > nowMs ? until(timeMs, nowMs) : ago(timeMs, nowMs)}, ${moment(timeMs)}.`;
  return (
    <DateTime
      label={label}
      initial={timeMs}
      hint={`${hint}${isOff ? ` ${title} is disabled in this database.` : ""}`}
      change={change}
    />
  );
}

/** Returns a time of the metadata in milliseconds, or null. */
function msOf(time: unknown): number | null {
  const timeMs = typeof time === "string" ? Date.parse(time) : Number.NaN;
  return Number.isNaN(timeMs) ? null : timeMs;
}

/** Formats a time as the server does, in UTC: `2026-11-28T07:30:00.0000000Z`. */
function serverText(timeMs: number): string {
  return new Date(timeMs).toISOString().replace("Z", "0000Z");
}
