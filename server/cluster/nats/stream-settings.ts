/**
 * The stream of one database: its name, and the settings that it is made with and must have. Pure.
 *
 *     JD_<database id, hex>_<generation>     subject jd.<database id>.<generation>.f
 *
 * Invariants:
 * - A full stream refuses what is new (`discard: new`) and drops nothing; nothing is dropped by age, size or number.
 * - No message can be deleted alone, and none is read from a replica that is not the leader.
 */
import { assert } from "../../../engine/base/assert.ts";
import { isObject } from "./stream-answers.ts";

export interface StreamId {
  /** Digits and small letters of hexadecimal. */
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

/** The id of this name; null: it is not of a database. */
export function streamIdOf(name: string): StreamId | null {
  const [, databaseId, generation] = /^JD_([0-9a-f]{1,64})_(\d{1,15})$/.exec(name) ?? [];
  if (databaseId === undefined) return null;
  return { databaseId, generation: Number(generation) };
}

/** How a stream must be, in the words of JetStream. */
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

/** Settings that, when they are there, make it a stream of another kind. */
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

/** How `found` differs from what it must be, in words; empty: not at all. */
export function differences(
  found: unknown,
  wanted: Readonly<Record<string, unknown>>,
): readonly string[] {
  if (!isObject(found)) return ["it has no settings"];
  const wrong: string[] = [];
  for (const [name, value] of Object.entries(wanted)) {
    // What is off or 0 may be left out.
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
