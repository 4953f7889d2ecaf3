/** Watching the log over a web socket: separate levels, requests, and the limit on watchers. */
import { EventEmitter } from "node:events";
import { afterAll, expect, test } from "vitest";
import { WebSocket } from "ws";
import { Log } from "../../../server/logging/log.ts";
import { type LogSocket, LogWatch, logWatchersMax } from "../../../server/logging/log-watch.ts";
import { startEndpointClient } from "../../support/endpoint-client.ts";
import { stopTestServers } from "../../support/start-test-server.ts";

afterAll(stopTestServers);

class Socket extends EventEmitter {
  readonly sent: string[] = [];
  bufferedAmount = 0;
  send(text: string): void {
    this.sent.push(text);
  }
}

test("sends lines in RavenDB's format from the watchers' level on, independent of the log's level", () => {
  const log = new Log("Off", [], () => Date.UTC(2026, 10, 24, 16));
  const socket = new Socket();
  log.info("nobody hears this");
  expect(log.watch.add(socket, "B")).toBe(true);
  log.info("A write was slow", { event: "slow-write", database: "shop", ms: 12 });
  log.watch.minLevel = "Warn";
  log.info("not this");
  log.warn("but this");
  socket.bufferedAmount = 2 * 1024 * 1024;
  log.warn("he does not read");
  socket.bufferedAmount = 0;
  socket.emit("close");
  log.warn("he is gone");
  expect(socket.sent.map((line) => JSON.parse(line) as unknown)).toEqual([
    {
      Date: "2026-11-24 16:00:00.0000",
      NodeTag: "B",
      Level: "INFO",
      ThreadID: "1",
      Resource: "shop",
      Logger: "slow-write",
      Message: "A write was slow event=slow-write database=shop ms=12",
    },
    expect.objectContaining({ Level: "WARN", Message: "but this", Resource: "Server" }),
  ]);
});

test("at most 32 watchers", () => {
  const watch = new LogWatch();
  const add = () => watch.add(new Socket() as LogSocket, "A");
  expect(Array.from({ length: logWatchersMax }, add)).not.toContain(false);
  expect(add()).toBe(false);
});

test("watchers receive requests, by route pattern, and can set the level", async () => {
  const { server, send, json } = await startEndpointClient();
  const socket = new WebSocket(`${server.url.replace("http", "ws")}/admin/logs/watch`);
  const lines: { Message: string; Level: string; Resource: string }[] = [];
  socket.on("message", (data) => lines.push(JSON.parse(String(data)) as (typeof lines)[number]));
  await new Promise((resolve) => socket.once("open", resolve));
  await send("PUT docs?id=secret/1", {});
  await expect
    .poll(() => lines.find(({ Message }) => Message.startsWith("PUT")))
    .toMatchObject({
      Level: "DEBUG",
      Resource: "db",
      Message: expect.stringMatching(/^PUT \/databases\/:database\/docs - 201 - \d+ ms/),
    });
  expect(JSON.stringify(lines)).not.toContain("secret/1");
  const configured = { AdminLogs: { MinLevel: "Info" } };
  expect((await send("POST /admin/logs/configuration", configured)).status).toBe(204);
  expect(await json("GET /admin/logs/configuration")).toMatchObject({
    AdminLogs: { CurrentMinLevel: "Info" },
    Logs: { CurrentMinLevel: "Off" },
  });
  const { length } = lines;
  await send("GET docs?id=secret/1");
  expect(lines.length).toBe(length);
  socket.close();
});
