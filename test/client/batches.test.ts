/** All command types of the official client in one batch, and the progress of operations. */
import {
  BatchPatchCommandData,
  CopyAttachmentCommandData,
  CounterOperation,
  CountersBatchCommandData,
  DeleteAttachmentCommandData,
  DeleteCommandData,
  DeleteCompareExchangeCommandData,
  type DocumentStore,
  GetClusterTopologyCommand,
  GetOperationStateOperation,
  IndexQuery,
  MoveAttachmentCommandData,
  type OperationStatusChange,
  PatchByQueryOperation,
  PatchCommandData,
  PatchRequest,
  PutAttachmentCommandData,
  PutCommandDataBase,
  PutCompareExchangeCommandData,
} from "ravendb";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { closeStores, openStore, startServer, ways } from "../support/client-store.ts";

afterAll(closeStores);

/** Required by the client's types; its constructors treat it as "none". */
const none = null as never;

describe.each(ways)("a batch $name", (way) => {
  let store: DocumentStore;
  beforeAll(async () => {
    store = await openStore(await startServer(way));
  });

  const put = (id: string, document: object) =>
    new PutCommandDataBase(id, none, none, {
      ...document,
      "@metadata": { "@collection": "Notes" },
    });

  test("executes everything or nothing", async () => {
    const session = store.openSession();
    const first = PatchRequest.forScript("this.n += args.by");
    first.values = { by: 5 };
    session.advanced.defer(
      put("notes/1", { n: 1 }),
      put("notes/2", { n: 2 }),
      put("notes/gone", {}),
      new PatchCommandData("notes/1", none, first),
      new BatchPatchCommandData(
        PatchRequest.forScript("this.seen = true"),
        none,
        "notes/1",
        "notes/2",
      ),
      new DeleteCommandData("notes/gone"),
      new PutAttachmentCommandData("notes/1", "a", Buffer.from("hello"), "text/plain", none),
      new PutAttachmentCommandData("notes/1", "b", Buffer.from("b"), none, none),
      new CopyAttachmentCommandData("notes/1", "a", "notes/2", "copied", none),
      new MoveAttachmentCommandData("notes/1", "b", "notes/2", "moved", none),
      new DeleteAttachmentCommandData("notes/1", "none", none),
      new CountersBatchCommandData("notes/1", CounterOperation.create("likes", "Increment", 3)),
    );
    await session.saveChanges();
    const reader = store.openSession();
    const notes = await reader.load<{ n: number; seen: boolean }>(["notes/1", "notes/2"]);
    expect(notes["notes/1"]).toMatchObject({ n: 6, seen: true });
    expect(notes["notes/2"]).toMatchObject({ n: 2, seen: true });
    const named = (id: string) =>
      reader.advanced.attachments.getNames(notes[id] as object).map(({ name }) => name);
    expect([named("notes/1"), named("notes/2")]).toEqual([["a"], ["copied", "moved"]]);
    expect(await reader.countersFor("notes/1").get("likes")).toBe(3);
    expect(await reader.advanced.exists("notes/gone")).toBe(false);

    const failing = store.openSession();
    failing.advanced.defer(
      put("notes/3", {}),
      new DeleteCommandData("notes/1", "A:1-AAAAAAAAAAAAAAAAAAAAAA"),
    );
    await expect(failing.saveChanges()).rejects.toMatchObject({ name: "ConcurrencyException" });
    expect(await store.openSession().advanced.exists("notes/3")).toBe(false);
  });

  test("exchanges values if it is cluster-wide", async () => {
    const open = () => store.openSession({ transactionMode: "ClusterWide" });
    const session = open();
    session.advanced.defer(
      put("notes/wide", {}),
      new PutCompareExchangeCommandData("keys/1", { Object: 1 } as never, 0),
    );
    await session.saveChanges();
    const kept = await open().advanced.clusterTransaction.getCompareExchangeValue<number>("keys/1");
    expect(kept?.value).toBe(1);
    const deleting = open();
    deleting.advanced.defer(new DeleteCompareExchangeCommandData("keys/1", kept?.index ?? 0));
    await deleting.saveChanges();
    const gone = await open().advanced.clusterTransaction.getCompareExchangeValue("keys/1");
    expect(gone).toBeNull();
  });

  test("of a query reports its progress to listeners", async () => {
    const insert = store.bulkInsert();
    for (let i = 0; i < 3000; i++) await insert.store({ n: i }, `many/${i}`);
    await insert.finish();
    const changes = store.changes();
    const seen: OperationStatusChange[] = [];
    const all = changes.forAllOperations();
    all.on("data", (change) => seen.push(change));
    await all.ensureSubscribedNow();
    const query = new IndexQuery(
      "from @all_docs where startsWith(id(), 'many/') update { this.n++; }",
    );
    const operation = await store.operations.send(new PatchByQueryOperation(query));
    await operation.waitForCompletion();
    const ofOperation = () => seen.filter(({ operationId }) => operationId === operation.id);
    const last = () => ofOperation().at(-1)?.state;
    await expect.poll(() => last()?.status).toBe("Completed");
    expect(ofOperation().length).toBeGreaterThan(1);
    const state = await store.maintenance.send(new GetOperationStateOperation(operation.id));
    expect(state).toMatchObject({ status: "Completed", result: { total: 3000 } });
    changes.dispose();
  });

  test("is sent to the node in the topology", async () => {
    const command = new GetClusterTopologyCommand();
    await store.getRequestExecutor().execute(command);
    expect(command.result).toMatchObject({ leader: "A", nodeTag: "A" });
    expect(Object.keys(command.result.topology.members)).toEqual(["A"]);
    const [node] = store.getRequestExecutor().getTopologyNodes();
    expect(node).toMatchObject({ clusterTag: "A", database: store.database });
  });
});
