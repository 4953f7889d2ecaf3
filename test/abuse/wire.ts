/** Abuse of connections, bodies and replies. See `run-abuse.ts` for how a case is written. */
import assert from "node:assert/strict";
import { constants } from "node:http2";
import { setTimeout as sleep } from "node:timers/promises";
import type { AbuseCase } from "./abuse-case.ts";
import type { AbuseServer } from "./abuse-server.ts";

const megabyte = 1024 * 1024;

/** A document of about `bytes`, as text: many small members. */
export function documentText(bytes: number): string {
  const row = '{"Name":"a name of some length","Number":12345.678,"Tags":["one","two","three"]}';
  const rows = new Array<string>(Math.ceil(bytes / (row.length + 1))).fill(row);
  return `{"Rows":[${rows.join(",")}],"@metadata":{"@collection":"Larges"}}`;
}

async function putLarge(server: AbuseServer, bytes: number): Promise<void> {
  await server.ask(`${server.database}/docs?id=large`, {
    method: "PUT",
    body: documentText(bytes),
  });
}

const largeBytes = 20 * megabyte;

export const wireCases: readonly AbuseCase[] = [
  {
    name: "300 GETs of 20 MB that are reset at once",
    area: "wire",
    who: "reader",
    setUp: (server) => putLarge(server, largeBytes),
    async attack(server) {
      const session = server.session();
      for (let n = 0; n < 300; n++) {
        const stream = session.request({ ":path": `${server.database}/docs?id=large` });
        stream.on("error", () => undefined);
        stream.close(constants.NGHTTP2_CANCEL);
      }
      await sleep(1000);
      return [await server.request(`${server.database}/docs?id=none`)];
    },
    check: ([reply]) => assert.equal(reply?.status, 404),
  },
];
