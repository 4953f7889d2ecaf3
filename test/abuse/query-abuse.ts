/** What the cases of abuse by queries share. */
import { assertRefused } from "./abuse-case.ts";
import type { AbuseServer, Reply } from "./abuse-server.ts";

export function ask(
  server: AbuseServer,
  Query: string,
  QueryParameters: object = {},
  more: object = {},
): Promise<Reply> {
  const body = JSON.stringify({ Query, QueryParameters, ...more });
  return server.request(`${server.database}/queries`, { method: "POST", body });
}

export function list<Item>(count: number, item: (n: number) => Item): Item[] {
  return Array.from({ length: count }, (_, n) => item(n));
}

/** It was answered, or refused by a limit that its message names. */
export function assertAnsweredOrRefused(
  replies: readonly Reply[],
  limit = /limit|Query\.|memory|too (?:complex|long|large|deep)|nested/i,
): void {
  for (const reply of replies) {
    if (reply.status === 200) continue;
    assertRefused(reply, [400, 413, 500, 503], limit);
  }
}
