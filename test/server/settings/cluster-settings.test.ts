/** The settings of a cluster. */
import { describe, expect, test } from "vitest";
import { readCluster } from "../../../server/settings/cluster-settings.ts";

const read = (given: Readonly<Record<string, string>>) => readCluster((name) => given[`${name}`]);
const certificates = {
  "Cluster.Nats.CertificatePath": "c.crt",
  "Cluster.Nats.KeyPath": "c.key",
  "Cluster.Nats.CaPath": "ca.crt",
};

describe("settings of a cluster", () => {
  test("are absent on a single node", () => {
    expect(read({})).toBeUndefined();
    expect(read({ "Cluster.Nats.Path": "/nats-server", ...certificates })).toBeUndefined();
  });

  test("are routes, and one may be marked as this node's route", () => {
    expect(
      read({
        "Cluster.Routes": "127.0.0.1:1, 127.0.0.1:2;[::1]:3",
        "Cluster.Nats.Route": "[::1]:3",
        "Cluster.Nats.Path": "/nats-server",
      }),
    ).toMatchObject({
      urls: [],
      routes: ["127.0.0.1:1", "127.0.0.1:2", "[::1]:3"],
      ownRoute: "[::1]:3",
      natsPath: "/nats-server",
      tls: undefined,
    });
    const far = { "Cluster.Routes": "a.example:1,b.example:2,c.example:3", ...certificates };
    expect(read(far)?.tls).toEqual({
      certificatePath: "c.crt",
      keyPath: "c.key",
      authorityPath: "ca.crt",
    });
  });

  test("or addresses of running servers, with their own credentials", () => {
    const settings = read({
      "Cluster.Nats.Url": "nats://localhost:4222,127.0.0.1,tls://nats.example:4223",
      "Cluster.Nats.User": "u",
      "Cluster.Nats.Password": "p",
    });
    expect(settings?.urls.map((url) => url.host)).toEqual([
      "localhost:4222",
      "127.0.0.1",
      "nats.example:4223",
    ]);
    expect(settings).toMatchObject({ user: "u", password: "p", systemUser: undefined, routes: [] });
    expect(read({ "Cluster.Nats.Url": "nats://nats.example", ...certificates })).toBeDefined();
  });

  test.each<[Readonly<Record<string, string>>, string]>([
    [{ "Cluster.Nats.Url": "127.0.0.1", "Cluster.Routes": "127.0.0.1:1" }, "are both set"],
    [{ "Cluster.Nats.Url": "http://127.0.0.1" }, "has the scheme 'http:': use nats:// or tls://"],
    [{ "Cluster.Nats.Url": "nats://" }, "'nats://' "],
    [{ "Cluster.Nats.Url": "nats://u:p@127.0.0.1" }, "127.0.0.1 contains credentials"],
    [{ "Cluster.Nats.Url": "nats://nats.example" }, "nats.example is not on this machine"],
    [{ "Cluster.Routes": "127.0.0.1" }, "'127.0.0.1' is not host:port, e.g. 10.0.0.1:6222"],
    [{ "Cluster.Routes": "127.0.0.1:70000" }, "is not host:port"],
    [{ "Cluster.Routes": "u:p@127.0.0.1:1" }, "is not host:port"],
    [
      { "Cluster.Routes": "127.0.0.1:1,127.0.0.1:2" },
      "a cluster of two stops when either node fails",
    ],
    [{ "Cluster.Routes": "127.0.0.1:1", "Cluster.Nats.Route": "127.0.0.1:2" }, "is not one of"],
    [{ "Cluster.Routes": "10.0.0.1:1" }, "must authenticate each other with certificates"],
    [
      { ...certificates, "Cluster.Routes": "10.0.0.1:1", "Cluster.Nats.CaPath": "" },
      "must authenticate each other with certificates",
    ],
    [
      { "Cluster.Routes": "127.0.0.1:1", "Cluster.Nats.KeyPath": "c.key" },
      "Cluster.Nats.CertificatePath and Cluster.Nats.KeyPath must be set together",
    ],
  ])("%j is rejected", (given, reported) => {
    expect(() => read(given)).toThrow(reported);
  });
});
