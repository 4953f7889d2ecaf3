import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type EndpointClient, startEndpointClient } from "../../../support/endpoint-client.ts";
import { stopTestServers } from "../../../support/start-test-server.ts";

let client: EndpointClient;
beforeAll(async () => {
  client = await startEndpointClient();
});
afterAll(stopTestServers);

type Json = Record<string, unknown>;

const raven = {
  Type: "Raven",
  Name: "to",
  Database: "target",
  TopologyDiscoveryUrls: ["http://a"],
};
const sql = { Type: "Sql", Name: "warehouse", ConnectionString: "x", FactoryName: "y" };

describe("connection strings", () => {
  test("are stored by type and name", async () => {
    for (const one of [raven, sql]) {
      expect((await client.send("PUT admin/connection-strings", one)).status).toBe(201);
    }
    const all = (await client.json("GET admin/connection-strings")) as Json;
    expect(all).toMatchObject({
      RavenConnectionStrings: { to: { Name: "to", Database: "target", UsedBy: [] } },
      SqlConnectionStrings: { warehouse: { ConnectionString: "x" } },
      OlapConnectionStrings: {},
    });
    const one = await client.json(
      "GET admin/connection-strings?connectionStringName=to&type=Raven",
    );
    expect(one).toMatchObject({
      RavenConnectionStrings: { to: { Database: "target" } },
      SqlConnectionStrings: null,
    });
    await client.send("DELETE admin/connection-strings?connectionString=warehouse&type=Sql");
    const left = (await client.json("GET admin/connection-strings")) as Json;
    expect(left["SqlConnectionStrings"]).toEqual({});
  });

  test("are rejected without a valid destination", async () => {
    const put = (body: object) => client.send("PUT admin/connection-strings", body);
    expect((await put({ Type: "Raven", Name: "r" })).text).toContain("Database cannot be empty");
    expect((await put({ Name: "r" })).text).toContain("ConnectionStringType");
    expect((await put({ Type: "Foo", Name: "r" })).text).toContain(
      "Unknown Connection string type",
    );
  });
});

describe("a definition of ETL", () => {
  const etl = {
    EtlType: "Raven",
    Name: "copy",
    ConnectionStringName: "to",
    Transforms: [{ Name: "t", Collections: ["Users"], Script: null }],
  };

  test("is stored, changed, disabled and deleted, and reports that it is not executed", async () => {
    const put = await client.send("PUT admin/etl", etl);
    expect(put.status).toBe(201);
    const { TaskId } = put.json as { TaskId: number };
    const info = (await client.json(`GET task?key=${TaskId}&type=RavenEtl`)) as Json;
    expect(info).toMatchObject({
      TaskId,
      TaskType: "RavenEtl",
      TaskState: "Enabled",
      TaskConnectionStatus: "NotActive",
      TaskName: "copy",
      DestinationDatabase: "target",
      Configuration: { Transforms: etl.Transforms },
    });
    expect(info["Error"]).toContain("not supported");
    const record = (await client.json("GET /admin/databases?name=db")) as Json;
    expect(record["RavenEtls"]).toMatchObject([{ TaskId, Name: "copy" }]);
    const inUse = "DELETE admin/connection-strings?connectionString=to&type=Raven";
    expect((await client.send(inUse)).text).toContain("It is used by task: copy");

    const changed = await client.json(`PUT admin/etl?id=${TaskId}`, { ...etl, Name: "renamed" });
    const next = (changed as { TaskId: number }).TaskId;
    expect(next).toBeGreaterThan(TaskId);
    await client.send(`POST admin/tasks/state?key=${next}&type=RavenEtl&disable=true`);
    const named = await client.json("GET task?taskName=renamed&type=RavenEtl");
    expect(named).toMatchObject({ TaskId: next, TaskState: "Disabled" });
    const { OngoingTasks } = (await client.json("GET tasks")) as { OngoingTasks: Json[] };
    expect(OngoingTasks.map(({ TaskName }) => TaskName)).toEqual(["renamed"]);
    await client.send(`DELETE admin/tasks?id=${next}&type=RavenEtl`);
    expect((await client.send(`GET task?key=${next}&type=RavenEtl`)).status).toBe(404);
  });

  test("is rejected without its connection string, or with a name in use", async () => {
    const put = (body: object) => client.send("PUT admin/etl", body);
    const lost = await put({ ...etl, ConnectionStringName: "none" });
    expect(lost.text).toContain("Could not find connection string named 'none'");
    expect((await put({ ...etl, EtlType: "Foo" })).text).toContain("Unknown ETL");
    expect((await put(etl)).status).toBe(201);
    expect((await put(etl)).text).toContain("there is already a task with that name");
    const reset = "RESET admin/etl?configurationName=copy&transformationName=t";
    expect((await client.send(reset, {})).status).toBe(200);
  });
});

describe("a definition of a queue sink", () => {
  const script = { Name: "all", Queues: ["users"], Script: "put(this.Id, this)" };
  const sink = {
    Name: "sink",
    ConnectionStringName: "broker",
    BrokerType: "RabbitMq",
    Disabled: true,
    Scripts: [script],
  };
  const put = (body: object) => client.send("PUT admin/queue-sink", body);

  test("is stored, replaced and deleted, and shows no password", async () => {
    expect((await put(sink)).text).toContain("Could not find connection string named 'broker'");
    await client.send("PUT admin/connection-strings", {
      Type: "Queue",
      Name: "broker",
      BrokerType: "RabbitMq",
      RabbitMqConnectionSettings: { ConnectionString: "amqp://me:secret@localhost:9050/" },
    });
    const { TaskId } = (await put(sink)).json as { TaskId: number };
    const info = (await client.json(`GET task?key=${TaskId}&type=QueueSink`)) as Json;
    expect(info).toMatchObject({
      TaskId,
      TaskType: "QueueSink",
      TaskState: "Disabled",
      TaskName: "sink",
      BrokerType: "RabbitMq",
      ConnectionStringName: "broker",
      Url: "localhost:9050/",
      Configuration: { ...sink, TaskId },
    });
    expect(info["Error"]).toContain("not supported");
    const inUse = "DELETE admin/connection-strings?connectionString=broker&type=Queue";
    expect((await client.send(inUse)).text).toContain("It is used by task: sink");

    const kafka = { ...sink, Name: "next", Disabled: false };
    const replaced = (await client.json(`PUT admin/queue-sink?id=${TaskId}`, kafka)) as Json;
    const record = (await client.json("GET /admin/databases?name=db")) as Json;
    expect(record["QueueSinks"]).toEqual([{ ...kafka, TaskId: replaced["TaskId"] }]);
    await client.send(`DELETE admin/tasks?id=${replaced["TaskId"]}&type=QueueSink`);
    expect((await client.send("GET task?taskName=next&type=QueueSink")).status).toBe(404);
  });

  test("is rejected without scripts, with empty scripts, or with duplicate names", async () => {
    expect((await put({ ...sink, Scripts: [] })).text).toContain("list cannot be empty");
    expect((await put({ ...sink, Scripts: [{ ...script, Script: "" }] })).text).toContain(
      "Script 'all' must not be empty",
    );
    expect((await put({ ...sink, Scripts: [null] })).text).toContain("must not be empty");
    expect((await put({ ...sink, Scripts: [script, script] })).text).toContain(
      "Script name 'all' name is already defined",
    );
  });
});
