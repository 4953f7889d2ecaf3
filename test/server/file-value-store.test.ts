/** The server's own durable values. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { FileValueStore } from "../../server/file-value-store.ts";

const root = mkdtempSync(join(tmpdir(), "jackdaw-values-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

describe.each(["file", "memory"])("values in %s", (kind) => {
  const path = kind === "file" ? join(root, "values.json") : undefined;

  test("are put, replaced, deleted and listed by prefix in order", async () => {
    const store = await FileValueStore.open(path);
    await Promise.all([
      store.put("b/2", '"two"'),
      store.put("b/1", '"one"'),
      store.put("a", "{}"),
      store.put("b/2", '"zwei"'),
    ]);
    expect([...store.entries("b/")]).toEqual([
      ["b/1", '"one"'],
      ["b/2", '"zwei"'],
    ]);
    await store.delete("b/1");
    await store.delete("never");
    expect(store.get("b/1")).toBeUndefined();
    expect(store.get("a")).toBe("{}");
  });
});

describe("values in a file", () => {
  test("are there after opening again, as soon as put has resolved", async () => {
    const path = join(root, "again.json");
    const store = await FileValueStore.open(path);
    for (let i = 0; i < 20; i++) {
      await store.put(`k${i}`, String(i));
      const other = await FileValueStore.open(path);
      expect(other.get(`k${i}`)).toBe(String(i));
    }
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(readdirSync(root).filter((name) => name.includes("partial"))).toEqual([]);
  });

  test("that cannot be written fail that change, not the next", async () => {
    const folder = join(root, "gone");
    const store = await FileValueStore.open(join(folder, "x.json"));
    await expect(store.put("a", "1")).rejects.toThrow();
    expect(store.get("a")).toBeUndefined();
    const { mkdirSync } = await import("node:fs");
    mkdirSync(folder);
    await store.put("b", "2");
    expect(JSON.parse(readFileSync(join(folder, "x.json"), "utf8"))).toEqual({ b: "2" });
  });

  test("that are damaged are not taken for an empty store", async () => {
    const path = join(root, "damaged.json");
    writeFileSync(path, '{"certificates/AB": "{');
    await expect(FileValueStore.open(path)).rejects.toThrow(/damaged/);
  });
});
