/**
 * What is to be done about what a scrub has found, and by whom. Pure.
 *
 * A damaged replica is wiped, and comes back from the others: by the node whose nats-server has it, one at a time over all
 * servers, and only while two others are clean and up to date. Until then, and where servers run by themselves, a clean one
 * leads. When too few are clean, nothing can be wiped; but what all nodes have in their own logs need not be in the stream,
 * and the holes go with it.
 *
 * Invariants:
 * - Nothing is wiped or removed for what a single look has shown: a replica that has just started fills up by itself.
 * - While a server does not answer, or a replica anywhere is not up to date, none is stopped to be wiped.
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

/** What one scrub has seen. */
export interface ScrubLook {
  readonly views: readonly ServerView[];
  /** Of the look before; empty: there was none. */
  readonly earlier: readonly ServerView[];
  readonly problems: readonly StreamProblem[];
}

export type Remedy =
  /** Let this server lead the stream: the one that does is damaged. */
  | { readonly kind: "lead"; readonly stream: string; readonly server: string }
  /** Wipe the replica of this server. */
  | { readonly kind: "wipe"; readonly stream: string; readonly server: string }
  /** Remove from the stream what the nodes have in their own logs. */
  | { readonly kind: "purge"; readonly stream: string }
  /** Nothing yet. */
  | { readonly kind: "wait"; readonly stream: string; readonly reason: string };

/** @param previous problems of the scrub before: only what lasts is acted on */
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
      remedies.push({ kind: "wait", stream: stream.name, reason: "it may pass by itself" });
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

/** Are all replicas there and up to date, and so many of them damaged that none can be wiped? */
function isPurgeable(stream: ScrubbedStream, before: ScrubbedStream | undefined): boolean {
  const { replicas, replicaCount, current, leader } = stream;
  if (leader === undefined || replicas.length < replicaCount) return false;
  if (replicas.some(({ server }) => !current.has(server))) return false;
  const damaged = replicas.filter((one) => damageOf(one, stream, before) !== null);
  return damaged.length > 0 && replicas.length - damaged.length < 2;
}

/** Is it the same problem? Its words have figures, which change. */
function keyOf({ stream, server, kind }: StreamProblem): string {
  return `${kind} ${server} ${stream}`;
}
