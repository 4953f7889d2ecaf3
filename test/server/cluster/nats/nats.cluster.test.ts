/** Three nodes with a nats-server each, started from their settings: real processes on loopback. */
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  type CertificatePair,
  makeAuthority,
  makeServerCertificate,
} from "../../../../certs/authority.ts";
import type { JetStreamStream } from "../../../../server/cluster/nats/jetstream-stream.ts";
import { type Nats, startNats } from "../../../../server/cluster/nats/nats.ts";
import { NatsLink } from "../../../../server/cluster/nats/nats-link.ts";
import { findNatsServer } from "../../../../server/cluster/nats/nats-server.ts";
import { Log } from "../../../../server/logging/log.ts";
import type { LogEvent } from "../../../../server/logging/log-line.ts";
import {
  type ClusterSettings,
  type NatsTls,
  readCluster,
} from "../../../../server/settings/cluster-settings.ts";
import { freePorts, natsServerPath } from "../../../support/nats-cluster.ts";

const folder = mkdtempSync(join(tmpdir(), "jackdaw-nats-nodes-"));
const tags = ["A", "B", "C"];
const events: LogEvent[] = [];
const log = new Log("Debug", [
  { write: (event) => events.push(event), droppedCount: 0, close: async () => undefined },
]);

function settingsOf(routes: readonly string[], at: number): ClusterSettings {
  const given: Readonly<Record<string, string | undefined>> = {
    "Cluster.Routes": routes.join(","),
    "Cluster.Nats.Route": routes[at],
    "Cluster.Nats.Path": natsServerPath(),
  };
  const settings = readCluster((name) => given[name]);
  if (settings === undefined) throw new Error("these settings have no cluster");
  return settings;
}

/** A certificate and its key, signed by this authority, in files. */
async function certificateOf(authority: CertificatePair, name: string): Promise<NatsTls> {
  const pair = await makeServerCertificate(authority, ["127.0.0.1", "localhost"]);
  const path = (kind: string) => join(folder, `${name}.${kind}`);
  writeFileSync(path("crt"), pair.certificate);
  writeFileSync(path("key"), pair.key);
  writeFileSync(path("ca"), authority.certificate);
  return { certificatePath: path("crt"), keyPath: path("key"), authorityPath: path("ca") };
}

function start(routes: readonly string[], at: number): Promise<Nats> {
  const nodeTag = tags[at] as string;
  const dataFolder = join(folder, nodeTag);
  return startNats({ settings: settingsOf(routes, at), nodeTag, dataFolder, log });
}

function output(pattern: RegExp): boolean {
  return events.some(({ message }) => pattern.test(message));
}

afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("three nodes", () => {
  let routes: string[];
  let nodes: Nats[];

  beforeAll(async () => {
    routes = (await freePorts(3)).map((port) => `127.0.0.1:${port}`);
    nodes = await Promise.all(tags.map((_, at) => start(routes, at)));
  }, 60_000);
  afterAll(() => Promise.all(nodes.map((node) => node.close())));

  const node = (at: number) => nodes[at] as Nats;

  test("share a stream of three replicas, and receive each other's heartbeats", async () => {
    expect(nodes.map(({ replicas }) => replicas)).toEqual([3, 3, 3]);
    expect(nodes.map(({ serverName }) => serverName)).toEqual([
      "jackdaw-A",
      "jackdaw-B",
      "jackdaw-C",
    ]);
    const id = { databaseId: randomBytes(8).toString("hex"), generation: 1 };
    const stream = await node(0).createStream(id);
    expect(await stream.append(Buffer.from("a"), 0)).toEqual({ kind: "stored", sequence: 1 });
    const other = await node(1).openStream(id);
    expect(await other?.append(Buffer.from("b"), 1)).toEqual({ kind: "stored", sequence: 2 });
    /** Numbers of heartbeats that the third node has received, by tag and status. */
    const heard = new Map<string, number>();
    const beats = nodes.map((one, at) =>
      one.heartbeats(
        () => ({ at }),
        (tag, status) => {
          const key = `${tag} ${status["at"]}`;
          if (at === 2) heard.set(key, (heard.get(key) ?? 0) + 1);
        },
      ),
    );
    await expect.poll(() => [...heard.keys()].sort()).toEqual(["A 0", "B 1"]);
    const count = heard.get("B 1") ?? 0;
    await expect.poll(() => heard.get("B 1")).toBeGreaterThan(count);
    beats[1]?.stop();
    await pause(100);
    const last = heard.get("B 1");
    await pause(1200);
    expect(heard.get("B 1")).toBe(last);
    for (const beat of beats) beat.stop();
    expect(await node(2).removeStream(id)).toBe(true);
    expect(await node(2).openStream(id)).toBeNull();
  });

  test("reject clients without their password", async () => {
    const text = readFileSync(join(folder, "A/nats/nats-server.conf"), "utf8");
    const { listen } = JSON.parse(text) as { listen: string };
    const options = { servers: [listen], name: "x", tls: undefined, connectMs: 500 };
    const report = () => undefined;
    for (const password of [undefined, "wrong"]) {
      const user = password === undefined ? undefined : "jackdaw";
      await expect(NatsLink.connect({ ...options, user, password, report })).rejects.toThrow(
        /authorization/i,
      );
    }
  });

  test("restart a killed nats-server and reconnect", async () => {
    const pid = node(1).server?.pid as number;
    process.kill(pid, "SIGKILL");
    await expect.poll(() => node(1).isConnected).toBe(false);
    await expect.poll(() => node(1).isConnected).toBe(true);
    expect(node(1).server?.restartCount).toBe(1);
    expect(node(1).server?.pid).not.toBe(pid);
    expect(output(/^nats-server exited \(SIGKILL\) and restarts in 250 ms$/)).toBe(true);
  });

  test("detect the hole left by a flipped byte, and refill it", {
    timeout: 120_000,
  }, async () => {
    const id = { databaseId: randomBytes(8).toString("hex"), generation: 1 };
    const stream = await node(0).createStream(id);
    await fill(stream, 40);
    await expect.poll(() => node(0).scrub(), { timeout: 30_000 }).toEqual([]);
    const victim = node(2);
    await victim.server?.stop();
    flip(join(folder, "C/nats/store/jetstream/JACKDAW/streams", stream.name, "msgs"));
    await victim.server?.resume();
    const isHole = async () => {
      const problems = await node(0)
        .scrub()
        .catch(() => []);
      return problems.filter(({ kind }) => kind === "hole");
    };
    await expect
      .poll(isHole, { timeout: 30_000 })
      .toMatchObject([{ stream: stream.name, server: "jackdaw-C", kind: "hole" }]);
    expect(await node(0).repair("JD_0_0")).toEqual({
      kind: "refused",
      reason: "jackdaw-A has no replica of JD_0_0",
    });
    // A clean replica may not be wiped while another one is damaged.
    expect(await node(0).repair(stream.name)).toMatchObject({
      kind: "refused",
      reason: expect.stringMatching(/^only 1 other replicas of JD_\w+ are clean and up to date/),
    });
    await expect.poll(() => victim.isConnected).toBe(true);
    expect(await victim.repair(stream.name)).toEqual({ kind: "repaired" });
    await expect.poll(() => node(0).scrub(), { timeout: 30_000 }).toEqual([]);
    for (let sequence = 1; sequence <= 40; sequence++) {
      expect((await stream.read(sequence))?.readUInt32LE(0)).toBe(sequence);
    }
  });
});

async function fill(stream: JetStreamStream, count: number): Promise<void> {
  for (let last = 0; last < count; last++) {
    const message = randomBytes(512 * 1024);
    message.writeUInt32LE(last + 1, 0);
    expect(await stream.append(message, last)).toEqual({ kind: "stored", sequence: last + 1 });
  }
}

/**
 * Damages a byte in the middle of the first block. The server's cached block state is from before.
 */
function flip(messages: string): void {
  const [block] = readdirSync(messages)
    .filter((name) => name.endsWith(".blk"))
    .sort();
  const path = join(messages, block as string);
  const bytes = readFileSync(path);
  bytes[bytes.length >> 1] = (bytes[bytes.length >> 1] as number) ^ 0xff;
  writeFileSync(path, bytes);
  for (const name of readdirSync(messages)) {
    if (name === "index.db") rmSync(join(messages, name));
  }
}

describe("certificates", () => {
  test("let nodes of one authority connect, and reject nodes of another", {
    timeout: 90_000,
  }, async () => {
    const routes = (await freePorts(3)).map((port) => `127.0.0.1:${port}`);
    const [ours, foreign] = [await makeAuthority("ours"), await makeAuthority("foreign")];
    const authorities = [ours, ours, foreign];
    const nodes = await Promise.all(
      authorities.map(async (authority, at) => {
        const nodeTag = `T${tags[at]}`;
        const tls = await certificateOf(authority, nodeTag);
        const settings = { ...settingsOf(routes, at), tls };
        return await startNats({ settings, nodeTag, dataFolder: join(folder, nodeTag), log });
      }),
    );
    /** The nodes that each node has received heartbeats of. */
    const heard = nodes.map(() => new Set<string>());
    const beats = nodes.map((one, at) =>
      one.heartbeats(
        () => ({}),
        (tag) => heard[at]?.add(tag),
      ),
    );
    await expect.poll(() => [...(heard[0] ?? [])]).toEqual(["TB"]);
    await pause(3000);
    expect(heard.map((tags) => [...tags])).toEqual([["TB"], ["TA"], []]);
    expect(await nodes[0]?.scrub()).toMatchObject([
      { kind: "missing", problem: "only 2 of 3 NATS servers replied" },
    ]);
    for (const beat of beats) beat.stop();
    await Promise.all(nodes.map((node) => node.close()));
  });

  test("let a node connect to a standalone server, and reject clients without a certificate", async () => {
    const [port] = await freePorts(1);
    const authority = await makeAuthority("apart");
    const tls = await certificateOf(authority, "apart");
    const path = join(folder, "apart.conf");
    const configuration = {
      listen: `127.0.0.1:${port}`,
      max_payload: 8_388_608,
      jetstream: { store_dir: join(folder, "apart"), sync_interval: "always" },
      tls: {
        cert_file: tls.certificatePath,
        key_file: tls.keyPath,
        ca_file: tls.authorityPath,
        verify: true,
      },
    };
    writeFileSync(path, JSON.stringify(configuration));
    const server = spawn(natsServerPath(), ["--config", path], { stdio: "ignore" });
    try {
      const given: Readonly<Record<string, string | undefined>> = {
        "Cluster.Nats.Url": `tls://127.0.0.1:${port}`,
        "Cluster.Nats.CertificatePath": tls.certificatePath,
        "Cluster.Nats.KeyPath": tls.keyPath,
        "Cluster.Nats.CaPath": tls.authorityPath,
      };
      const settings = readCluster((name) => given[name]) as ClusterSettings;
      const options = { settings, nodeTag: "U", dataFolder: folder, log };
      const node = await startNats(options);
      const stream = await node.createStream({ databaseId: "a", generation: 1 });
      expect(await stream.append(Buffer.from("a"), 0)).toEqual({ kind: "stored", sequence: 1 });
      expect(await node.repair(stream.name)).toMatchObject({ kind: "refused" });
      await expect(node.scrub()).rejects.toThrow(/Cluster\.Nats\.SystemUser/);
      await node.close();
      const link = { servers: [`127.0.0.1:${port}`], name: "x", connectMs: 500 };
      const nobody = { ...link, user: undefined, password: undefined, report: () => undefined };
      const unknown = { ...tls, certificatePath: undefined, keyPath: undefined };
      await expect(NatsLink.connect({ ...nobody, tls: unknown })).rejects.toThrow();
      // Without the authority, the server is not trusted either.
      await expect(
        NatsLink.connect({ ...nobody, tls: { ...tls, authorityPath: undefined } }),
      ).rejects.toThrow();
    } finally {
      server.kill();
    }
  });
});

describe("one node", () => {
  test("has streams of one replica, stops its server with itself, and takes over its files", async () => {
    const [port] = await freePorts(1);
    const routes = [`127.0.0.1:${port}`];
    const nodeTag = "S";
    const dataFolder = join(folder, "single");
    const options = { settings: settingsOf(routes, 0), nodeTag, dataFolder, log };
    const node = await startNats(options);
    const id = { databaseId: "51", generation: 0 };
    const stream = await node.createStream(id);
    expect(node.replicas).toBe(1);
    expect(await stream.append(Buffer.from("kept"), 0)).toEqual({ kind: "stored", sequence: 1 });
    expect(await node.scrub()).toEqual([]);
    expect(await node.repair(stream.name)).toMatchObject({ kind: "refused" });
    const pid = node.server?.pid as number;
    await node.close();
    expect(isRunning(pid)).toBe(false);
    // The files of a killed server.
    const configuration = join(dataFolder, "nats/nats-server.conf");
    const leftOver = spawn(natsServerPath(), ["--config", configuration], { stdio: "ignore" });
    await pause(1000);
    const again = await startNats(options);
    expect(leftOver.signalCode ?? leftOver.exitCode).not.toBeNull();
    expect((await (await again.openStream(id))?.read(1))?.toString()).toBe("kept");
    await again.close();
    // In a cluster, it would remove the data it had alone.
    const cluster = (await freePorts(3)).map((one) => `127.0.0.1:${one}`);
    const joined = await startNats({ ...options, settings: settingsOf(cluster, 0) });
    await pause(500);
    await joined.close();
    const back = await startNats(options);
    expect((await (await back.openStream(id))?.read(1))?.toString()).toBe("kept");
    await back.close();
  });

  test("reports why nats-server cannot be used", async () => {
    const [port] = await freePorts(1);
    const settings = settingsOf([`127.0.0.1:${port}`], 0);
    const common = { nodeTag: "S", dataFolder: join(folder, "unused"), log };
    const script = join(folder, "old-server");
    writeFileSync(script, "#!/bin/sh\necho 'nats-server: v2.9.10'\n");
    chmodSync(script, 0o755);
    await expect(
      startNats({ ...common, settings: { ...settings, natsPath: script } }),
    ).rejects.toMatchObject({
      failure: "nats-unusable",
      message: expect.stringMatching(/old-server has version 2\.9\.10; .*2\.15\.1 or newer/),
    });
    await expect(
      startNats({ ...common, settings: { ...settings, natsPath: "/nowhere/nats-server" } }),
    ).rejects.toThrow(/\/nowhere\/nats-server cannot be run/);
    await expect(findNatsServer(undefined, "/nowhere")).rejects.toThrow(
      "nats-server was not found on the path",
    );
    writeFileSync(join(folder, "a-file"), "");
    const taken = await startNats({ ...common, settings, dataFolder: join(folder, "taken") });
    const [other] = await freePorts(1);
    const busy = settingsOf([`127.0.0.1:${taken.server === undefined ? 0 : other}`], 0);
    await expect(
      startNats({ ...common, settings: busy, dataFolder: join(folder, "a-file") }),
    ).rejects.toThrow(/a-file/);
    await taken.close();
  });
});

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
