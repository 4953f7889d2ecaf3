/** The configuration text of nats-server, and its output. */
import { expect, test } from "vitest";
import {
  findOwnRoute,
  isRecent,
  type ServerOptions,
  serverConfiguration,
  serverLine,
  versionIn,
} from "../../../../server/cluster/nats/server-configuration.ts";

const options: ServerOptions = {
  name: "jackdaw-A",
  storeFolder: '/data/a "b" \\ c/store',
  pidPath: "/data/nats-server.pid",
  clientPort: 4222,
  monitoringPort: 8222,
  user: "jackdaw",
  password: "secret",
  systemUser: "system",
  systemPassword: "other",
  routes: ["10.0.0.1:6222", "10.0.0.2:6222", "[::3]:6222"],
  ownRoute: "10.0.0.2:6222",
  tls: { certificatePath: "/c.crt", keyPath: "/c.key", authorityPath: "/ca.crt" },
};

test("every append is on disk before it is acknowledged, and clients connect only through loopback", () => {
  expect(JSON.parse(serverConfiguration(options))).toEqual({
    server_name: "jackdaw-A",
    listen: "127.0.0.1:4222",
    http: "127.0.0.1:8222",
    pid_file: "/data/nats-server.pid",
    logtime: false,
    max_payload: 8_388_608,
    max_pending: 67_108_864,
    jetstream: {
      store_dir: '/data/a "b" \\ c/store',
      sync_interval: "always",
      max_memory_store: 268_435_456,
    },
    accounts: {
      JACKDAW: { jetstream: "enabled", users: [{ user: "jackdaw", password: "secret" }] },
      SYS: { users: [{ user: "system", password: "other" }] },
    },
    system_account: "SYS",
    cluster: {
      name: "jackdaw",
      listen: "10.0.0.2:6222",
      no_advertise: true,
      routes: ["nats://10.0.0.1:6222", "nats://[::3]:6222"],
      tls: {
        cert_file: "/c.crt",
        key_file: "/c.key",
        ca_file: "/ca.crt",
        verify: true,
        timeout: 5,
      },
    },
  });
});

test("a single node has no cluster section, and routes on loopback need no certificates", () => {
  const alone = JSON.parse(serverConfiguration({ ...options, routes: ["10.0.0.2:6222"] }));
  expect(alone).not.toHaveProperty("cluster");
  const plain = JSON.parse(serverConfiguration({ ...options, tls: undefined }));
  expect(plain.cluster).not.toHaveProperty("tls");
});

test("finds this machine's route by its addresses, unless several or none match", async () => {
  const addresses: Readonly<Record<string, string[]>> = {
    "a.example": ["10.0.0.1"],
    "b.example": ["10.0.0.2", "fe80::2"],
    "10.0.0.3": ["10.0.0.3"],
  };
  const find = (routes: string[], own: string[]) =>
    findOwnRoute(routes, own, async (host) => addresses[host] ?? []);
  const routes = ["a.example:6222", "b.example:6222", "10.0.0.3:6222", "gone.example:6222"];
  expect(await find(routes, ["127.0.0.1", "fe80::2"])).toBe("b.example:6222");
  expect(await find(routes, ["10.0.0.3"])).toBe("10.0.0.3:6222");
  expect(await find(routes, ["10.0.0.4"])).toBeUndefined();
  expect(await find(routes, ["10.0.0.1", "10.0.0.2"])).toBeUndefined();
  expect(await find(["127.0.0.1:1", "127.0.0.1:2"], ["127.0.0.1"])).toBeUndefined();
});

test("versions are compared by number", () => {
  expect(versionIn("nats-server: v2.15.1\n")).toBe("2.15.1");
  expect(versionIn("bash 5")).toBeNull();
  const versions = ["2.9.10", "2.15.0", "2.15.1", "2.15.2", "2.15.1-RC.1", "2.100.0", "3.0.0"];
  expect(versions.filter(isRecent)).toEqual([
    "2.15.1",
    "2.15.2",
    "2.15.1-RC.1",
    "2.100.0",
    "3.0.0",
  ]);
});

test("classifies output lines by level, and unknown lines as errors", () => {
  expect(serverLine("[12] [WRN] Healthcheck failed")).toEqual({
    level: "Warn",
    text: "Healthcheck failed",
  });
  expect(serverLine("[12] 2026/11/23 10:00:00.123456 [ERR] full")).toEqual({
    level: "Error",
    text: "full",
  });
  expect(serverLine("[12] [FTL] bind: in use").level).toBe("Error");
  expect(serverLine("[12] [INF] Server is ready").level).toBe("Info");
  expect(serverLine("[12] [WRN] Plaintext passwords detected, use nkeys").level).toBe("Info");
  expect(serverLine("[12] [ERR] Error trying to connect to route (attempt 1): x").level).toBe(
    "Warn",
  );
  expect(serverLine("panic: out of memory")).toEqual({
    level: "Error",
    text: "panic: out of memory",
  });
});
