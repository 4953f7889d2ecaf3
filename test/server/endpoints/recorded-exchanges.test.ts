/**
 * Exchanges recorded from RavenDB 7.2.7, in test/cases/exchanges: each value with each operator,
 * each error on each route.
 */
import { readdirSync, readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type EndpointClient, startEndpointClient } from "../../support/endpoint-client.ts";
import { projectRoot } from "../../support/project-root.ts";
import { parseExchanges, shownReply } from "../../support/recorded-exchanges.ts";
import { stopTestServers } from "../../support/start-test-server.ts";

const folder = `${projectRoot}test/cases/exchanges/`;
const files = readdirSync(folder).filter((name) => name.endsWith(".txt"));

afterAll(stopTestServers);

describe.each(files)("%s", (file) => {
  let client: EndpointClient;
  beforeAll(async () => {
    client = await startEndpointClient();
  });

  const exchanges = parseExchanges(readFileSync(folder + file, "utf8"));
  test("has exchanges", () => {
    expect(exchanges.length).toBeGreaterThan(0);
  });
  for (const { about, request, body, expected } of exchanges) {
    test(`${about}: ${request} ${body}`.slice(0, 200), async () => {
      const reply = await client.send(request, body === "" ? undefined : body);
      const isStatusOnly = /^\d+$/.test(expected);
      const shown = shownReply(reply.status, reply.text);
      expect(isStatusOnly ? String(reply.status) : shown).toBe(expected);
    });
  }
});
