/**
 * Decides which problems found by a scrub are repaired, how, and by which node. Pure.
 *
 * A damaged replica is wiped, and then copied from the others, by the node that runs its nats-server: one at a time over
 * all servers, and only while two other replicas are clean and up to date. Until then, and with external servers, a clean
 * replica must lead. If too few are clean, nothing can be wiped. But messages that the logs of all nodes contain are not
 * needed in the stream, so they are purged together with the holes.
 *
 * Invariants:
 * - Nothing is wiped or removed after a single check: a replica that has just started fills up by itself.
 * - While a server does not reply, or any replica is not up to date, no server is stopped for a wipe.
 */
import {
  cleanServers,
  damageOf,
  joinViews,
  planRepair,
  type ScrubbedStream,
  type ServerView,
  type StreamProblem,
} from "./replica-scrub.ts";

/** The result of one scrub. */
export interface ScrubLook {
  readonly views: readonly ServerView[];
  /** Reports of the previous check, or empty. */
  readonly earlier: readonly ServerView[];
  readonly problems: readonly StreamProblem[];
}

export type Remedy =
  /** Let this server lead the stream, because the leading replica is damaged. */
  | { readonly kind: "lead"; readonly stream: string; readonly server: string }
  /** Wipe the replica of this server. */
  | { readonly kind: "wipe"; readonly stream: string; readonly server: string }
  /** Remove from the stream the messages that the logs of the nodes contain. */
  | { readonly kind: "purge"; readonly stream: string }
  /** Nothing yet. */
  | { readonly kind: "wait"; readonly stream: string; readonly reason: string };

/** @param previous problems of the previous scrub: only persistent problems are acted on */
export function remediesOf(look: ScrubLook, previous: readonly StreamProblem[]): Remedy[] {
  const { views, earlier, problems } = look;
  const lasting = new Set(previous.map(keyOf));
  const before = joinViews(earlier);
  const remedies: Remedy[] = [];
  const damaged = problems.filter(({ kind }) => kind === "hole" || kind === "differs");
  const names = [...new Set(damaged.map(({ stream }) => stream))].sort();
  let isWiping = false;
  for (const stream of joinViews(views).filter(({ name }) => names.includes(name))) {
    const found = before.find(({ name }) => name === stream.name);
    const clean = cleanServers(stream, found);
    const [best] = clean;
    if (stream.leader !== undefined && best !== undefined && !clean.includes(stream.leader)) {
      remedies.push({ kind: "lead", stream: stream.name, server: best });
    }
    const own = damaged.filter((one) => one.stream === stream.name && lasting.has(keyOf(one)));
    const servers = own.map(({ server }) => server).sort();
    if (servers.length === 0) {
      remedies.push({ kind: "wait", stream: stream.name, reason: "it may resolve by itself" });
      continue;
    }
    const remedy = remedyOf(look, stream, found, servers);
    if (remedy.kind === "wipe" && isWiping) continue;
    isWiping ||= remedy.kind === "wipe";
    remedies.push(remedy);
  }
  return remedies;
}

function remedyOf(
  { views, earlier, problems }: ScrubLook,
  stream: ScrubbedStream,
  before: ScrubbedStream | undefined,
  servers: readonly string[],
): Remedy {
  const { name } = stream;
  const reasons: string[] = [];
  for (const server of servers) {
    const plan = planRepair(views, name, server, earlier);
    if (typeof plan === "string") {
      reasons.push(plan);
      continue;
    }
    const other = problems.find(
      (one) => (one.kind === "missing" || one.kind === "behind") && one.server !== server,
    );
    if (other === undefined) return { kind: "wipe", stream: name, server };
    const what = [other.server, other.stream].filter((one) => one !== "").join(", ");
    reasons.push(
      `${server} is not stopped while ${what === "" ? "" : `${what}: `}${other.problem}`,
    );
  }
  if (isPurgeable(stream, before)) return { kind: "purge", stream: name };
  return { kind: "wait", stream: name, reason: reasons[0] ?? "" };
}

/** Returns whether all replicas exist and are up to date, and so many are damaged that none can be wiped. */
function isPurgeable(stream: ScrubbedStream, before: ScrubbedStream | undefined): boolean {
  const { replicas, replicaCount, current, leader } = stream;
  if (leader === undefined || replicas.length < replicaCount) return false;
  if (replicas.some(({ server }) => !current.has(server))) return false;
  const damaged = replicas.filter((one) => damageOf(one, stream, before) !== null);
  return damaged.length > 0 && replicas.length - damaged.length < 2;
}

/** Identifies a problem without its text, which contains changing numbers. */
function keyOf({ stream, server, kind }: StreamProblem): string {
  return `${kind} ${server} ${stream}`;
}
