/** Names and settings of streams. */
import { expect, test } from "vitest";
import {
  differences,
  streamIdOf,
  streamNameOf,
  streamSettings,
  streamSubjectOf,
} from "../../../../server/cluster/nats/stream-settings.ts";

const id = { databaseId: "5e1f00", generation: 12 };
const wanted = streamSettings(id, 3);

test("the name of a stream consists of its database and generation, and can be parsed", () => {
  expect(streamNameOf(id)).toBe("JD_5e1f00_12");
  expect(streamSubjectOf(id)).toBe("jd.5e1f00.12.f");
  expect(streamIdOf("JD_5e1f00_12")).toEqual(id);
  for (const name of ["JD_5E_1", "JD__1", "JD_5e", "KV_jackdaw", "JD_5e_-1", "JD_5e_1_1"]) {
    expect(streamIdOf(name)).toBeNull();
  }
  expect(() => streamNameOf({ databaseId: "a.b", generation: 1 })).toThrow("hexadecimal");
});

test("settings that a server adds, or omits when off, do not count as different", () => {
  const { sealed, deny_purge, max_age, ...rest } = wanted;
  expect([sealed, deny_purge, max_age]).toEqual([false, false, 0]);
  const shown = { ...rest, duplicate_window: 120_000_000_000, metadata: { a: "b" }, sources: [] };
  expect(differences(shown, wanted)).toEqual([]);
});

test.each([
  [{ num_replicas: 1 }, "num_replicas is 1 and must be 3"],
  [{ discard: "old" }, 'discard is "old" and must be "new"'],
  [{ max_age: 5 }, "max_age is 5 and must be 0"],
  [{ max_bytes: 1 }, "max_bytes is 1 and must be -1"],
  [{ deny_delete: undefined }, "deny_delete is undefined and must be true"],
  [{ allow_direct: true }, "allow_direct is true and must be false"],
  [{ storage: "memory" }, 'storage is "memory" and must be "file"'],
  [{ subjects: ["jd.>"] }, 'subjects is ["jd.>"] and must be ["jd.5e1f00.12.f"]'],
  [{ mirror: { name: "x" } }, 'mirror is {"name":"x"} and must not be set'],
  [{ sources: [{ name: "x" }] }, 'sources is [{"name":"x"}] and must not be set'],
  [{ persist_mode: "async" }, 'persist_mode is "async" and must not be set'],
])("%j differs", (changed, reported) => {
  expect(differences({ ...wanted, ...changed }, wanted)).toEqual([reported]);
});

test("anything but an object has no settings", () => {
  expect(differences(null, wanted)).toEqual(["it has no settings"]);
});
