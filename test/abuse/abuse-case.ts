/** The shape of an abuse case: what an attacker does, and what is measured meanwhile. `run-abuse.ts` runs the cases. */
import assert from "node:assert/strict";
import type { AbuseServer, Reply } from "./abuse-server.ts";

/** Who is able to do it. */
type Attacker = "anybody let in" | "reader" | "writer" | "administrator";

export interface AbuseCase {
  /** A sentence without "and": what is done. Unique. */
  readonly name: string;
  readonly area: "wire" | "channels" | "batches" | "scripts" | "queries";
  readonly who: Attacker;
  /** Settings of the server, as flags. */
  readonly flags?: readonly string[];
  /** With TLS and certificates; the attacker has the administrator's. */
  readonly isSecure?: boolean;
  /** Is it left out of the short form? For what takes more than some seconds even with smaller counts. */
  readonly isLong?: boolean;
  /** Why it is known not to keep to the limits yet: the short form leaves it out, and the whole one shows it failing. */
  readonly gap?: string;
  /** Milliseconds that the GET of another database may wait, when it is not `waitMsMax`. Say why. */
  readonly waitMsMax?: number;
  /** Bytes by which the process may grow, when it is not `growthBytesMax`. Say why. */
  readonly growthBytesMax?: number;
  /** Once, before anything is measured: `server.database` is there and empty. */
  readonly setUp?: (server: AbuseServer) => Promise<void>;
  /** The abuse; may be done up to three times on one server. What it gives goes to `check`. */
  readonly attack: (server: AbuseServer) => Promise<readonly Reply[]>;
  /** After each attack: throws (node:assert) when the answers are not what they should be. */
  readonly check?: (replies: readonly Reply[], server: AbuseServer) => Promise<void> | void;
}

/** A refusal says what to do: it has one of `statuses`, is JSON, and its message has what `message` looks for. */
export function assertRefused(
  reply: Reply | undefined,
  statuses: readonly number[],
  message: RegExp,
): void {
  assert(reply !== undefined, "there is an answer");
  assert(
    statuses.includes(reply.status),
    `${reply.status} instead of ${statuses.join(" or ")}: ${reply.text.slice(0, 300)}`,
  );
  const told = JSON.parse(reply.text) as { Message?: unknown };
  assert.match(String(told.Message), message);
}

/** PUTs of one document at once, all with this body in gzip. */
export function putZipped(server: AbuseServer, count: number, body: Buffer): Promise<Reply[]> {
  const headers = { "Content-Encoding": "gzip" };
  const path = `${server.database}/docs?id=a`;
  return Promise.all(
    Array.from({ length: count }, () => server.request(path, { method: "PUT", headers, body })),
  );
}
