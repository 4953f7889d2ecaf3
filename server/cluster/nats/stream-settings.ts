/**
 * The stream of one database: its name and its required settings. Pure.
 *
 *     JD_<database id, hex>_<generation>     subject jd.<database id>.<generation>.f
 *
 * Invariants:
 * - A full stream refuses new messages (`discard: new`). No message is dropped by age, size, or number.
 * - No single message can be deleted, and none is read from a replica other than the leader.
 */
import { assert } from "../../../engine/base/assert.ts";
import { isObject } from "./stream-answers.ts";

export interface StreamId {
  /** Lowercase hexadecimal digits. */
  readonly databaseId: string;
  readonly generation: number;
}

export function streamNameOf({ databaseId, generation }: StreamId): string {
  assert(/^[0-9a-f]{1,64}$/.test(databaseId), "the id of a replicated database is hexadecimal");
  assert(Number.isSafeInteger(generation) && generation >= 0, "a generation is a whole number");
  return `JD_${databaseId}_${generation}`;
}

export function streamSubjectOf({ databaseId, generation }: StreamId): string {
  return `jd.${databaseId}.${generation}.f`;
}

/** Parses the name of a stream. Returns null if it is not the stream of a database. */
export function streamIdOf(name: string): StreamId | null {
  const [, databaseId, generation] = /^JD_([0-9a-f]{1,64})_(\d{1,15})$/.exec(name) ?? [];
  if (databaseId === undefined) return null;
  return { databaseId, generation: Number(generation) };
}

/** The required settings of a stream, in the format of JetStream. */
export function streamSettings(id: StreamId, replicas: number): Readonly<Record<string, unknown>> {
  return {
    name: streamNameOf(id),
    subjects: [streamSubjectOf(id)],
    retention: "limits",
    storage: "file",
    num_replicas: replicas,
    discard: "new",
    max_consumers: -1,
    max_msgs: -1,
    max_msgs_per_subject: -1,
    max_bytes: -1,
    max_age: 0,
    max_msg_size: -1,
    compression: "none",
    no_ack: false,
    sealed: false,
    deny_delete: true,
    deny_purge: false,
    allow_direct: false,
    mirror_direct: false,
    allow_rollup_hdrs: false,
    allow_msg_ttl: false,
    allow_msg_counter: false,
    allow_atomic: false,
    allow_msg_schedules: false,
  };
}

/** Settings that must not be present, because they change the type of the stream. */
const mustBeAbsent = [
  "mirror",
  "sources",
  "republish",
  "subject_transform",
  "template_owner",
  "placement",
  "persist_mode",
  "subject_delete_marker_ttl",
];

/** Returns the differences between `found` and the required settings, as sentences. */
export function differences(
  found: unknown,
  wanted: Readonly<Record<string, unknown>>,
): readonly string[] {
  if (!isObject(found)) return ["it has no settings"];
  const wrong: string[] = [];
  for (const [name, value] of Object.entries(wanted)) {
    // Settings that are off or 0 may be omitted.
    const other = found[name] ?? (value === false || value === 0 ? value : undefined);
    if (JSON.stringify(other) === JSON.stringify(value)) continue;
    wrong.push(`${name} is ${JSON.stringify(other)} and must be ${JSON.stringify(value)}`);
  }
  for (const name of mustBeAbsent) {
    const value = found[name];
    if (value === undefined || value === null || value === 0 || value === "default") continue;
    if (Array.isArray(value) && value.length === 0) continue;
    wrong.push(`${name} is ${JSON.stringify(value)} and must not be set`);
  }
  return wrong;
}
