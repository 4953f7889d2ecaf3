import { expect, test } from "vitest";
import { OpenDatabase } from "../../../../engine/api/database/open-database.ts";
import { salvageDatabase } from "../../../../engine/api/database/salvage-database.ts";
import { describeDatabase } from "../../../support/database-picture.ts";
import { databaseScenarios, put } from "../../../support/database-scenarios.ts";
import {
  databaseFolder,
  History,
  logOptions,
  SimulatedDatabase,
  simulatedEnvironment,
} from "../../../support/simulated-database.ts";
import { SimulatedFileSystem } from "../../../support/simulated-file-system.ts";

const target = "/data/rescued";

async function createShop(): Promise<SimulatedDatabase> {
  const shop = await SimulatedDatabase.open(new SimulatedFileSystem());
  for (let index = 0; index < 12; index++) {
    const id = `things/${index}`;
    await shop.write([
      { kind: "put", id, body: `{"field${index % 3}":"${"x".repeat(200)}"}` },
      { kind: "increment", id, name: "n", by: index },
      { kind: "attach", id, name: "file", content: `content ${index % 2}` },
    ]);
  }
  await shop.database.putSettings({ Revisions: { Default: { MinimumRevisionsToKeep: 2 } } });
  for (let round = 0; round < 4; round++) {
    await shop.write([
      { kind: "put", id: "things/4", body: `{"round":${round}}` },
      { kind: "append", id: "things/5", name: "Heart", from: round * 100, count: 40, value: 1 },
    ]);
  }
  await shop.write([put("people/1", "Ann", "People"), { kind: "identity", name: "invoices" }]);
  await shop.write([{ kind: "delete", id: "things/3" }]);
  await shop.database.close();
  return shop;
}

function bodiesEverWritten(history: SimulatedDatabase["history"]): Set<string> {
  const written = new Set<string>();
  for (const { documents } of history.states) {
    for (const { id, body } of documents.values()) written.add(`${id} ${body}`);
  }
  return written;
}

async function open(files: SimulatedFileSystem): Promise<OpenDatabase> {
  return await OpenDatabase.open(simulatedEnvironment(files), "shop", target, logOptions());
}

test("copies a database without a manifest, with its etags and change vectors", async () => {
  const { files, history } = await createShop();
  const before = await SimulatedDatabase.open(files.restart(), history);
  const vector = (await before.database.get("things/5"))?.["@metadata"];
  const { lastEtag } = before.database.state;
  files.remove(`${databaseFolder}/MANIFEST`);
  const report = await salvageDatabase(simulatedEnvironment(files), databaseFolder, target);
  expect(report).toMatchObject({
    documents: 12,
    revisions: 7,
    losses: [],
    orphans: [],
    lostContents: [],
    renamedCollections: [],
  });
  const copy = await open(files);
  const { salvaged: _, ...found } = JSON.parse(await describeDatabase(copy));
  found.values = found.values.filter(([key]: [string]) => key !== "salvaged");
  expect(found).toEqual(JSON.parse(history.newest.text()));
  expect((await copy.get("things/5"))?.["@metadata"]).toEqual(vector);
  const stored = await copy.put("new", { a: 1 });
  expect(stored.changeVector).toBe(copy.state.changeVectorAt(lastEtag + 1));
  copy.checkInvariants();
  await copy.close();
});

test("names damaged items, which are missing or older; all other items are unchanged", async () => {
  const { files, history } = await createShop();
  const segments = files.paths().filter((path) => path.endsWith(".seg"));
  const hit = segments[1] as string;
  files.damage(hit, (bytes) => bytes.fill(0x55, 300, 800));
  const blob = files.paths().find((path) => path.includes("/blobs/")) as string;
  files.damage(blob, (bytes) => bytes.fill(0x55));
  await expect(
    OpenDatabase.open(simulatedEnvironment(files), "shop", databaseFolder, logOptions()).then(
      async (database) => {
        await database.scrub();
        const { damaged } = database;
        await database.abandon();
        if (damaged.length > 0) throw new Error("damaged");
      },
    ),
  ).rejects.toThrow();
  const report = await salvageDatabase(simulatedEnvironment(files), databaseFolder, target);
  expect(report.losses.some(({ file }) => file === hit)).toBe(true);
  expect(report.lostContents.length).toBeGreaterThan(0);
  const copy = await open(files);
  const written = bodiesEverWritten(history);
  const { documents } = copy.state;
  expect(documents.documentCount).toBe(report.documents);
  expect(documents.documentCount).toBeGreaterThan(4);
  for (let document = 0; document < documents.docCount; document++) {
    if (documents.etagOf(document) === 0) continue;
    const id = documents.lowerIdOf(document);
    if (id === "people/1") continue;
    expect(written).toContain(`${id} ${await copy.bodyText(id)}`);
  }
  copy.checkInvariants();
  await copy.close();
});

test("with any one segment lost, the copy opens and contains only written data", async () => {
  const { files, history } = await createShop();
  const written = bodiesEverWritten(history);
  const segments = files.paths().filter((path) => path.endsWith(".seg"));
  for (const segment of segments) {
    const damaged = files.restart();
    damaged.remove(segment);
    const report = await salvageDatabase(simulatedEnvironment(damaged), databaseFolder, target);
    const copy = await open(damaged);
    expect(copy.state.documents.documentCount).toBe(report.documents);
    for (const { id } of history.newest.documents.values()) {
      const text = await copy.bodyText(id);
      if (text !== null && id !== "people/1") expect(written).toContain(`${id} ${text}`);
    }
    await copy.put("new", { field0: 1, field1: 2 });
    copy.checkInvariants();
    await copy.close();
  }
});

test("refuses to write to a folder that is not empty", async () => {
  const { files } = await createShop();
  await expect(
    salvageDatabase(simulatedEnvironment(files), databaseFolder, databaseFolder),
  ).rejects.toMatchObject({ code: "database-exists" });
});

test.each(Object.entries(databaseScenarios))(
  "copies everything without a manifest: %s",
  async (_, scenario) => {
    const files = new SimulatedFileSystem();
    const history = new History();
    await scenario(files, history);
    const before = await SimulatedDatabase.open(files.restart(), history);
    files.remove(`${databaseFolder}/MANIFEST`);
    const report = await salvageDatabase(simulatedEnvironment(files), databaseFolder, target);
    expect(report).toMatchObject({ losses: [], orphans: [], lostContents: [] });
    const copy = await open(files);
    copy.checkInvariants();
    expect(copy.state.keyspaces.revisions.count).toBe(
      before.database.state.keyspaces.revisions.count,
    );
    const found = JSON.parse(await describeDatabase(copy));
    found.values = found.values.filter(([key]: [string]) => key !== "salvaged");
    expect(found).toEqual(JSON.parse(await describeDatabase(before.database)));
    expect(copy.blobs.count).toBe(before.database.blobs.count);
    await copy.close();
    await before.database.close();
  },
);
