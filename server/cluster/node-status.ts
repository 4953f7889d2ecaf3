/** Encodes this node's status for heartbeats, and decodes the statuses of other nodes. */
import type { ReplicaHeartbeat } from "../../engine/engine.ts";
import type { ClusterMember, ReplicaReport, ReplicaRoleName } from "./cluster-view.ts";
import type { NodeStatus } from "./heartbeats.ts";

/** Abbreviations of roles in heartbeats, which contain a role for each database. */
const roleLetters: Readonly<Record<ReplicaRoleName, string>> = {
  follower: "F",
  candidate: "C",
  leader: "L",
  stopped: "S",
};
const rolesByLetter = new Map(
  Object.entries(roleLetters).map(([role, letter]) => [letter, role as ReplicaRoleName]),
);

export interface StatusOfNode {
  readonly member: ClusterMember;
  readonly version: string;
  /** Reports by database id. */
  readonly databases: ReadonlyMap<string, ReplicaReport>;
  /** Whether the node waits for the progress of other nodes. */
  readonly isWaiting: boolean;
}

export function encodeStatus({ member, version, databases, isWaiting }: StatusOfNode): NodeStatus {
  const { url, tcpUrl, fingerprint } = member;
  const rows: Record<string, readonly unknown[]> = {};
  for (const [id, { role, epoch, applied, mark }] of databases) {
    rows[id] = [roleLetters[role], epoch, applied, mark ?? 0];
  }
  return { url, tcpUrl, fingerprint, version, databases: rows, isWaiting };
}

/** Returns null if the status does not have the format of this version. */
export function decodeStatus(tag: string, status: NodeStatus): StatusOfNode | null {
  const { url, tcpUrl, fingerprint, version, databases } = status;
  if (typeof url !== "string" || typeof version !== "string") return null;
  if (!isTextOrNull(tcpUrl) || !isTextOrNull(fingerprint)) return null;
  if (typeof databases !== "object" || databases === null) return null;
  const reports = new Map<string, ReplicaReport>();
  for (const [id, row] of Object.entries(databases as Readonly<Record<string, unknown>>)) {
    if (!Array.isArray(row)) return null;
    const [letter, epoch, applied, mark = 0] = row as readonly unknown[];
    const role = rolesByLetter.get(String(letter));
    if (role === undefined || !isCount(epoch) || !isCount(applied) || !isCount(mark)) return null;
    reports.set(id, { role, epoch, applied, mark });
  }
  const isWaiting = status["isWaiting"] === true;
  return { member: { tag, url, tcpUrl, fingerprint }, version, databases: reports, isWaiting };
}

export function heartbeatOf(tag: string, report: ReplicaReport): ReplicaHeartbeat {
  return { tag, role: report.role, epoch: report.epoch, applied: report.applied };
}

function isTextOrNull(value: unknown): value is string | null {
  return value === null || typeof value === "string";
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}
