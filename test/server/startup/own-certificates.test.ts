/** Three nodes of a cluster with shared values, each with an administrator that it created. */
import { X509Certificate } from "node:crypto";
import { beforeAll, expect, test } from "vitest";
import { makeAuthority, makeClientCertificate } from "../../../certs/authority.ts";
import { clearanceRank } from "../../../server/security/access.ts";
import { CertificateStore, thumbprintOf } from "../../../server/security/certificate-store.ts";
import type { ValueStore } from "../../../server/settings/value-store.ts";
import { offerAdmin } from "../../../server/startup/own-certificates.ts";

const admins: X509Certificate[] = [];

beforeAll(async () => {
  const authority = await makeAuthority("localhost");
  for (let at = 0; at < 3; at++) {
    const { certificate } = await makeClientCertificate(authority, `admin ${at}`);
    admins.push(new X509Certificate(certificate));
  }
});

class Nodes {
  readonly #shared = new Map<string, string>();
  readonly #listeners: (() => void)[] = [];
  readonly warnings: string[][] = [];
  readonly stores: CertificateStore[] = [];
  leaderTag = "";

  constructor() {
    for (const [at, certificate] of admins.entries()) {
      const store = new CertificateStore(this.#values(), []);
      const warnings: string[] = [];
      const nodes = this;
      const cluster = {
        tag: "ABC"[at] as string,
        get leaderTag() {
          return nodes.leaderTag;
        },
        onChange: (listener: () => void) => {
          this.#listeners.push(listener);
          return () => undefined;
        },
      };
      cluster.onChange(() => store.reload());
      const log = { warn: (text: string) => warnings.push(text) };
      offerAdmin(store, { certificate, name: `admin ${at}` }, cluster, log);
      this.stores.push(store);
      this.warnings.push(warnings);
    }
  }

  #values(): ValueStore {
    const shared = this.#shared;
    return {
      get: (key) => shared.get(key),
      put: async (key, text) => {
        shared.set(key, text);
      },
      delete: async (key) => {
        shared.delete(key);
      },
      entries: (prefix) => [...shared].filter(([key]) => key.startsWith(prefix)),
      diskWrites: () => [],
      logFigures: () => {
        throw new Error("nobody asks");
      },
    };
  }

  async change(): Promise<void> {
    for (const listener of this.#listeners) listener();
    await new Promise((resolve) => setImmediate(resolve));
  }

  /** The administrators, of the three, for a node. */
  admins(node: number): boolean[] {
    const { ClusterAdmin } = clearanceRank;
    return admins.map((one) => this.stores[node]?.identityOf(one).rank === ClusterAdmin);
  }
}

test("the administrator of the first leader applies to all nodes, and the other nodes report that theirs is invalid", async () => {
  const nodes = new Nodes();
  for (const node of [0, 1, 2]) {
    expect(nodes.admins(node)).toEqual([0, 1, 2].map((at) => at === node));
  }
  await nodes.change();
  nodes.leaderTag = "B";
  for (let tick = 0; tick < 3; tick++) await nodes.change();
  for (const node of [0, 1, 2]) {
    expect(nodes.admins(node)).toEqual([false, true, false]);
  }
  expect(nodes.warnings.map(({ length }) => length)).toEqual([1, 0, 1]);
  expect(nodes.warnings[0]?.[0]).toContain("admin 0, which this node has generated, has no rights");
});

test("an administrator registered before is not reported, and a deleted one is not registered again", async () => {
  const nodes = new Nodes();
  const [first, second] = nodes.stores;
  await second?.putFirstAdmin(admins[1] as X509Certificate, "admin 1");
  const terms = { SecurityClearance: "ClusterAdmin", Permissions: {}, Disabled: false } as const;
  await second?.put(admins[0] as X509Certificate, { Name: "admin 0", ...terms });
  nodes.leaderTag = "A";
  await nodes.change();
  expect(nodes.warnings.map(({ length }) => length)).toEqual([0, 0, 1]);
  await first?.delete(thumbprintOf(admins[0] as X509Certificate));
  await nodes.change();
  expect(nodes.admins(0)).toEqual([false, true, false]);
});
