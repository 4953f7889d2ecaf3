/** A copy that stopped because of an error in its stream resumes when the error is resolved. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { nodeEnvironment, openEngine, type Replication } from "../../../../engine/engine.ts";
import { MemoryStream, StreamWay } from "../../../support/memory-stream.ts";

/** A data folder with the database `shop`, replicated through a stream. */
async function openShop(stream: MemoryStream) {
  const folder = mkdtempSync(join(tmpdir(), "jackdaw-restart-"));
  const reported: string[] = [];
  const options = {
    databaseId: "0123456789abcdef0123456789abcdef",
    originTag: "A",
    stream: new StreamWay(stream),
    generation: 1,
    tag: "A",
    standAfterMs: 20,
    isSeed: true,
    watcher: {
      roleChanged: () => undefined,
      needSnapshot: () => undefined,
      blocked: (reason: string) => void reported.push(reason),
      fetchRange: async () => [],
    },
  };
  const replication = { of: () => options, cluster: options };
  const engine = await openEngine({ folder, environment: nodeEnvironment(), replication });
  onTestFinished(async () => {
    await engine.close();
    rmSync(folder, { recursive: true, force: true });
  });
  await engine.databases.createCopy("shop");
  const part = () => engine.databases.peek("shop")?.replication as Replication | undefined;
  await expect.poll(() => part()?.role).toBe("leader");
  return { engine, reported, part };
}

test("a stopped copy is reopened and becomes leader again", { timeout: 60_000 }, async () => {
  const stream = new MemoryStream();
  const { engine, reported, part } = await openShop(stream);
  const shop = await engine.databases.find("shop");
  await shop?.documents.put("users/1", Buffer.from("{}"));
  // Reopening has no effect on a running copy.
  part()?.restart();
  expect(part()?.role).toBe("leader");
  const foreign = new MemoryStream();
  const other = await openShop(foreign);
  const otherShop = await other.engine.databases.find("shop");
  await otherShop?.documents.put("users/2", Buffer.from("{}"));
  const last = stream.messages.length - 1;
  const kept = stream.messages[last];
  stream.messages[last] = foreign.messages[last];
  await expect.poll(() => reported, { timeout: 30_000 }).toHaveLength(1);
  expect(reported[0]).toMatch(/^the stream has another frame \d+ than the own log/);
  await expect.poll(() => part()?.role).toBe("stopped");
  stream.messages[last] = kept;
  await expect
    .poll(
      () => {
        if (part()?.role === "stopped") part()?.restart();
        return part()?.role;
      },
      { timeout: 30_000, interval: 500 },
    )
    .toBe("leader");
  const again = await engine.databases.find("shop");
  expect(again?.documents.find("users/1")).not.toBeNull();
  await again?.documents.put("users/3", Buffer.from("{}"));
});
