/** Detection of responding cluster nodes, with real listeners on loopback. */
import { createServer as createHttp } from "node:http";
import { createServer as createHttps } from "node:https";
import { type AddressInfo, createServer, type Server } from "node:net";
import { afterEach, expect, test } from "vitest";
import { makeAuthority, makeServerCertificate } from "../../../certs/authority.ts";
import { findRunningNodes, natsAddresses } from "../../../server/cluster/running-nodes.ts";

const listeners: Server[] = [];
const nobody = { own: null, others: [] };

afterEach(() => {
  for (const listener of listeners.splice(0)) listener.close();
});

async function listen(listener: Server): Promise<number> {
  listeners.push(listener);
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  return (listener.address() as AddressInfo).port;
}

/** A port without a listener. */
async function deadPort(): Promise<number> {
  const listener = createServer();
  const port = await listen(listener);
  await new Promise((resolve) => listener.close(resolve));
  return port;
}

test("treats a closed port and a proxy's gateway error as unreachable", async () => {
  const dead = await deadPort();
  const proxy = await listen(createHttp((_, reply) => reply.writeHead(502).end()));
  const members = [
    { tag: "A", url: `http://127.0.0.1:${dead}` },
    { tag: "B", url: `https://127.0.0.1:${dead}` },
    { tag: "C", url: `http://127.0.0.1:${proxy}/` },
  ];
  const nats = { own: `127.0.0.1:${dead}`, others: [`127.0.0.1:${dead}`] };
  expect(await findRunningNodes(members, nats)).toEqual([]);
});

test("treats any other reply as a running node", async () => {
  const plain = await listen(createHttp((_, reply) => reply.writeHead(403).end()));
  expect(await findRunningNodes([{ tag: "B", url: `http://127.0.0.1:${plain}` }], nobody)).toEqual([
    `node B responds at http://127.0.0.1:${plain}`,
  ]);
  const authority = await makeAuthority("x");
  const pair = await makeServerCertificate(authority, ["127.0.0.1"]);
  const options = {
    cert: pair.certificate,
    key: pair.key,
    ca: authority.certificate,
    requestCert: true,
    rejectUnauthorized: true,
  };
  const strict = await listen(createHttps(options, (_, reply) => reply.end()));
  expect(
    await findRunningNodes([{ tag: "C", url: `https://127.0.0.1:${strict}` }], nobody),
  ).toEqual([`node C responds at https://127.0.0.1:${strict}`]);
});

test("recognizes a NATS server by its first message", async () => {
  const nats = await listen(createServer((socket) => socket.end('INFO {"x":1}\r\n')));
  const other = await listen(createServer((socket) => socket.end("220 mail\r\n")));
  const others = [`127.0.0.1:${nats}`, `127.0.0.1:${other}`];
  expect(await findRunningNodes([], { own: null, others })).toEqual([
    `the nats-server of another node responds at 127.0.0.1:${nats}`,
  ]);
  expect(await findRunningNodes([], { own: `127.0.0.1:${nats}`, others: [] })).toEqual([
    `the nats-server of this node still runs at 127.0.0.1:${nats}: stop it`,
  ]);
});

test("the configuration of a nats-server names the other nodes", () => {
  expect(natsAddresses(null)).toEqual({ own: null, others: [] });
  const cluster = { routes: ["nats://10.0.0.2:6222", "nats://[::1]:6222"] };
  expect(natsAddresses(JSON.stringify({ listen: "127.0.0.1:4222", cluster }))).toEqual({
    own: "127.0.0.1:4222",
    others: ["10.0.0.2:6222", "[::1]:6222"],
  });
  expect(natsAddresses("{}")).toEqual({ own: null, others: [] });
});
