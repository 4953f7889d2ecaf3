import { afterEach, expect, test } from "vitest";
import { OpenDatabase } from "../../../../engine/api/database/open-database.ts";
import { Database } from "../../../../engine/api/database.ts";
import { simulatedEnvironment } from "../../../support/simulated-database.ts";
import { SimulatedFileSystem } from "../../../support/simulated-file-system.ts";

const open: OpenDatabase[] = [];
afterEach(async () => {
  for (const database of open.splice(0)) await database.abandon().catch(() => undefined);
});

async function openShop(files: SimulatedFileSystem): Promise<OpenDatabase> {
  const database = await OpenDatabase.open(simulatedEnvironment(files), "shop", "/data/shop");
  open.push(database);
  return database;
}

/** Fails all calls on matching paths. */
function failing(files: SimulatedFileSystem, path: RegExp, code: string): void {
  files.onCall = (call) => (path.test(call.path) ? { kind: "error", code } : undefined);
}

test.each(["EROFS", "ENOSPC", "EDQUOT", "EACCES"])(
  "reports why a database cannot be opened because of %s, and opens it later",
  async (code) => {
    const files = new SimulatedFileSystem();
    await (await openShop(files)).put("a", {});
    await open.pop()?.close();
    failing(files, /./, code);
    await expect(openShop(files)).rejects.toMatchObject({
      code: "storage-failed",
      message: expect.stringContaining(code),
    });
    files.onCall = () => undefined;
    expect((await openShop(files)).find("a")).toBeGreaterThanOrEqual(0);
  },
);

test.each(["EMFILE", "EIO"])("opening may be retried after %s", async (code) => {
  const files = new SimulatedFileSystem();
  await (await openShop(files)).put("a", {});
  await open.pop()?.close();
  failing(files, /./, code);
  await expect(openShop(files)).rejects.toMatchObject({ code: "read-failed" });
});

test.each(["EIO", "EROFS", "EMFILE", "ENOENT"])(
  "reports why the content of an attachment cannot be written because of %s",
  async (code) => {
    const files = new SimulatedFileSystem();
    const database = await openShop(files);
    await database.put("a", {});
    const put = () =>
      Database.of(database).attachments.put({ id: "a", name: "n" }, "", [Buffer.from("text")]);
    failing(files, /blobs\/.+/, code);
    await expect(put()).rejects.toMatchObject({ code: "storage-failed" });
    files.onCall = () => undefined;
    expect(await put()).toMatchObject({ name: "n" });
  },
);

test.each(["ENOENT", "EROFS", "EIO", "ENOSPC"])(
  "a database closes without a last snapshot because of %s, and loses nothing",
  async (code) => {
    const files = new SimulatedFileSystem();
    const database = await openShop(files);
    await database.put("a", {});
    failing(files, /snap/, code);
    await open.pop()?.close();
    files.onCall = () => undefined;
    expect((await openShop(files)).find("a")).toBeGreaterThanOrEqual(0);
  },
);

test.each(["EROFS", "EIO"])(
  "a database closes on a device that accepts no more writes (%s)",
  async (code) => {
    const files = new SimulatedFileSystem();
    const database = await openShop(files);
    await database.put("a", {});
    files.onCall = ({ name }) =>
      ["write", "rename", "sync", "makeDirectory"].includes(name)
        ? { kind: "error", code }
        : undefined;
    await open.pop()?.close();
    files.onCall = () => undefined;
    expect((await openShop(files)).find("a")).toBeGreaterThanOrEqual(0);
  },
);
