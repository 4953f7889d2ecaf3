/** Subscription tasks over HTTP. Formats and statuses as measured on RavenDB 7.2.7. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type EndpointClient, startEndpointClient } from "../../../support/endpoint-client.ts";
import { stopTestServers } from "../../../support/start-test-server.ts";

let client: EndpointClient;
beforeAll(async () => {
  client = await startEndpointClient();
  for (const a of [1, 2, 3]) {
    await client.send(`PUT docs?id=b%2F${a}`, { a, "@metadata": { "@collection": "Bs" } });
  }
});
afterAll(stopTestServers);

interface Failure {
  readonly Type: string;
  readonly Message: string;
}

/** Status, last segment of the type, and message of a rejection. */
async function refusal(what: string, body?: object | string): Promise<string> {
  const { status, json } = await client.send(what, body);
  const { Type, Message } = json as Failure;
  return `${status} ${Type.split(".").at(-1)}: ${Message}`;
}

const put = (body: object, query = "") => client.send(`PUT subscriptions${query}`, body);
const state = (name: string) => client.json(`GET subscriptions/state?name=${name}`);

test("a task is defined, read, listed and removed", async () => {
  const created = await put({ Name: "One", Query: "from Bs" });
  expect(created.status).toBe(201);
  expect(created.json).toEqual({ Name: "One", RaftCommandIndex: expect.any(Number) });
  expect(await state("ONE")).toEqual({
    Query: "from Bs",
    ChangeVectorForNextBatchStartingPoint: null,
    SubscriptionId: expect.any(Number),
    SubscriptionName: "One",
    MentorNode: null,
    PinToMentorNode: false,
    NodeTag: null,
    LastBatchAckTime: null,
    LastClientConnectionTime: null,
    Disabled: false,
    ArchivedDataProcessingBehavior: "ExcludeArchived",
    RaftCommandIndex: expect.any(Number),
  });
  await put({ Query: "from Bs", ChangeVector: "LastDocument", Disabled: true, MentorNode: "A" });
  const { Results } = (await client.json("GET subscriptions")) as { Results: object[] };
  expect(Results).toMatchObject([
    { ChangeVectorForNextBatchStartingPoint: expect.stringMatching(/^A:3-/), Disabled: true },
    { SubscriptionName: "One", Connections: [], CurrentPendingConnections: [] },
  ]);
  const page = (await client.json("GET subscriptions?start=1&pageSize=5")) as typeof Results;
  expect(page).toMatchObject({ Results: [{ SubscriptionName: "One" }] });
  expect(await client.json("GET subscriptions?running=true")).toMatchObject({ Results: [] });
  expect((await client.send("DELETE subscriptions?taskName=one")).status).toBe(204);
  expect((await client.send("DELETE subscriptions?taskName=one")).status).toBe(204);
  expect(await refusal("GET subscriptions/state?name=One")).toBe(
    "400 SubscriptionDoesNotExistException: Subscription with name 'One' was not found in server store",
  );
});

test("a task is changed, or reported as unchanged", async () => {
  await put({ Name: "U", Query: "from Bs" }, "?id=4711");
  const update = async (body: object) =>
    (await client.send("POST subscriptions/update", body)).status;
  expect(await update({ Name: "U" })).toBe(304);
  expect(await update({ Name: "u", Query: "from Bs where a > 1" })).toBe(201);
  expect(await update({ Id: 4711, Query: "from Bs where a > 1" })).toBe(304);
  expect(await update({ Id: 4711, ChangeVector: "LastDocument", Disabled: true })).toBe(201);
  expect(await state("U")).toMatchObject({
    SubscriptionId: 4711,
    Query: "from Bs where a > 1",
    ChangeVectorForNextBatchStartingPoint: expect.stringMatching(/^A:3-/),
    Disabled: true,
  });
  // As observed on RavenDB 7.2.7.
  const archived = { Id: 4711, ArchivedDataProcessingBehavior: "IncludeArchived" };
  expect(await update(archived)).toBe(304);
  expect(await update({ ...archived, Disabled: false })).toBe(201);
  const { ArchivedDataProcessingBehavior } = (await state("U")) as Record<string, unknown>;
  expect(ArchivedDataProcessingBehavior).toBe("ExcludeArchived");
  expect(await update({ Name: "New", Query: "from Bs", CreateNew: true })).toBe(201);
  expect(await update({ Name: "New", Query: "from Bs", CreateNew: true })).toBe(304);
  expect(await refusal("POST subscriptions/update", { Id: 1e6 })).toBe(
    "400 SubscriptionDoesNotExistException: Subscription with id '1000000' was not found in server store",
  );
});

describe("rejects invalid tasks", () => {
  test.each([
    [{ Name: "x", Query: "from" }, "400 QueryParser+ParseException"],
    [{}, "400 QueryParser+ParseException"],
    [{ Name: "x", Query: "from index 'a'" }, "400 NotSupportedException"],
    [{ Name: "x", Query: "from Bs", ChangeVector: "zzz" }, "400 RachisApplyException"],
    [{ Name: "x", Query: "from Bs", ChangeVector: "DoNotChange" }, "400 RachisApplyException"],
    [{ Name: "x".repeat(513), Query: "from Bs" }, "400 SubscriptionNameException"],
    [{ Name: "x", Query: "from Bs", ArchivedDataProcessingBehavior: "?" }, "400 FormatException"],
  ])("%j", async (body, expected) => {
    expect(await refusal("PUT subscriptions", body)).toMatch(expected);
  });

  test.each([
    ["DELETE subscriptions", "400 ArgumentException"],
    ["POST subscriptions/drop", "400 ArgumentNullException"],
    ["POST subscriptions/drop?name=none", "400 SubscriptionDoesNotExistException"],
    ["POST subscriptions/drop?id=x", "400 ArgumentException"],
    ["GET subscriptions?name=none", "400 SubscriptionDoesNotExistException"],
    ["GET subscriptions/connection-details", "400 ArgumentException"],
    ["GET task?type=Subscription", "400 ArgumentException"],
    ["GET task?key=5", "400 ArgumentException"],
    ["GET task?taskName=none&type=Subscription", "400 SubscriptionDoesNotExistException"],
    ["POST admin/tasks/state", "400 ArgumentException"],
    ["POST admin/tasks/state?key=0&type=Subscription&disable=true", "400 RachisApplyException"],
    [
      "POST admin/tasks/state?key=0&type=Subscription&disable=true&taskName=none",
      "400 SubscriptionDoesNotExistException",
    ],
    ["POST admin/tasks/state?key=0&type=Zz&disable=true&taskName=none", "400 ArgumentException"],
    ["DELETE admin/tasks?id=0&type=Subscription", "400 RachisApplyException"],
  ])("%s", async (what, expected) => {
    expect(await refusal(what)).toMatch(expected);
  });

  test("a state without a name", async () => {
    expect((await client.send("GET subscriptions/state")).status).toBe(400);
  });
});

test("a query is tried", async () => {
  const results = async (Query: string, rest = {}) =>
    (await client.json("POST subscriptions/try?pageSize=2", { Query, ...rest })) as {
      Results: object[];
      Includes?: object;
    };
  expect(await results("from Bs as b where b.a > 1 select { twice: b.a * 2 }")).toMatchObject({
    Results: [{ twice: 4, "@metadata": { "@projection": true, "@id": "b/2" } }, { twice: 6 }],
  });
  expect(await results("from Bs", { ChangeVector: "LastDocument" })).toEqual({ Results: [] });
  expect(await results("from Bs include ref")).not.toHaveProperty("Includes");
  await client.send("PUT docs?id=c%2F1", { ref: "b/1", "@metadata": { "@collection": "Cs" } });
  expect(await results("from Cs include ref")).toMatchObject({ Includes: { "b/1": { a: 1 } } });
  expect(await refusal("POST subscriptions/try", { Query: "from Bs" })).toMatch("pageSize");
});

test("lists a task among the ongoing tasks, which disable and enable it", async () => {
  await put({ Name: "T", Query: "from Bs" }, "?id=815");
  const task = { TaskId: 815, TaskType: "Subscription", TaskName: "T", TaskState: "Enabled" };
  expect(await client.json("GET task?key=815&type=Subscription")).toMatchObject(task);
  expect(await client.json("GET task?taskName=t&type=Subscription")).toMatchObject(task);
  expect((await client.send("GET task?key=815&type=Backup")).status).toBe(404);
  const off = "POST admin/tasks/state?key=0&type=Subscription&disable=true&taskName=T";
  expect(await client.json(off)).toEqual({ RaftCommandIndex: expect.any(Number), TaskId: 0 });
  expect(await state("T")).toMatchObject({ Disabled: true });
  const on = "POST admin/tasks/state?key=815&type=Subscription&disable=false";
  expect(await client.json(on)).toMatchObject({ TaskId: 815 });
  const all = (await client.json("GET tasks")) as { OngoingTasks: object[] };
  expect(all.OngoingTasks).toContainEqual(expect.objectContaining(task));
  const gone = await client.json("DELETE admin/tasks?id=815&type=Subscription");
  expect(gone).toMatchObject({ TaskId: 815 });
  expect(await refusal("GET subscriptions/state?name=T")).toMatch("SubscriptionDoesNotExist");
});

test("returns the node that serves a task of an existing database", async () => {
  const path = "/info/remote-task/tcp?remote-task=x&verify-database=true&database";
  expect((await client.send(`GET ${path}=db`)).status).toBe(200);
  expect(await refusal(`GET ${path}=none`)).toMatch("400 DatabaseDoesNotExistException");
});
