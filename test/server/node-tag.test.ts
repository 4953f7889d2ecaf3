/** The node tag set by the operator is used wherever the node is identified. */
import { afterAll, expect, test } from "vitest";
import { startEndpointClient } from "../support/endpoint-client.ts";
import { stopTestServers } from "../support/start-test-server.ts";

afterAll(stopTestServers);

test("Cluster.NodeTag is in change vectors, ids, counter values, topologies and replies", async () => {
  const client = await startEndpointClient(["--Cluster.NodeTag=WEST"]);
  const put = (await client.json("PUT docs?id=users%2F1", { a: 1 })) as { ChangeVector: string };
  const hash = put.ChangeVector.slice("WEST:1-".length);
  expect(put.ChangeVector).toBe(`WEST:1-${hash}`);
  expect((await client.send("GET docs?id=users%2F1")).text).toContain(
    `"@change-vector":"${put.ChangeVector}"`,
  );
  const created = (await client.json("PUT docs?id=users%2F", { a: 1 })) as { Id: string };
  expect(created.Id).toBe("users/0000000000000000002-WEST");

  const increment = { Type: "Increment", CounterName: "n", Delta: 1 };
  await client.send("POST counters", {
    Documents: [{ DocumentId: "users/1", Operations: [increment] }],
  });
  expect((await client.send("GET counters?docId=users%2F1&full=true")).text).toContain(
    `"CounterValues":{"WEST-${hash}":1}`,
  );

  const queried = await client.send("GET queries?query=from%20Users");
  expect(queried.text).toContain('"NodeTag":"WEST"');
  const topologies = await Promise.all(
    [
      "GET /cluster/topology",
      "GET /topology?name=db",
      "GET /databases",
      "GET /cluster/node-info",
    ].map((path) => client.send(path)),
  );
  for (const { text } of topologies) {
    expect(text).toContain("WEST");
    expect(text).not.toMatch(/"A"/);
  }
});

test("an invalid tag is rejected when the server starts", async () => {
  await expect(startEndpointClient(["--Cluster.NodeTag=west"])).rejects.toThrow(
    "Cluster.NodeTag: The node tag 'west' is not one to four letters from A to Z",
  );
});
