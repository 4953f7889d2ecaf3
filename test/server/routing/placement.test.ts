/**
 * The node that runs a request: every route of the table compared with a specification, in every
 * state of a database.
 */
import { describe, expect, test } from "vitest";
import type { ClusterView, ReplicaState } from "../../../server/cluster/cluster-view.ts";
import { routes } from "../../../server/endpoints/route-table.ts";
import type { Exchange } from "../../../server/http/exchange.ts";
import { QueryString } from "../../../server/http/request.ts";
import { type Need, needOf, placeOf } from "../../../server/routing/placement.ts";
import { type Copies, databasePrefix, type Route } from "../../../server/routing/route.ts";
import { FakeNodes } from "../../support/fake-nodes.ts";

/**
 * The copy that serves a request. `~` is a database, `*` any rest, `name=` a parameter that
 * contains a database name. The first matching line counts, and every route needs one, so that each
 * new route is considered before a cluster can serve it wrongly.
 *
 * - leader: writes, and reads about the leader's work (operations, tasks, backups, subscriptions).
 * - confirmed: linearizable reads.
 * - here: information about one node, and changes that are not durable.
 * - any: reads of replicated data.
 */
const specification: Readonly<Record<Copies, string>> = {
  confirmed: `
    GET ~/cmpxchg ~/debug/identities`,
  leader: `
    PUT PATCH ~/*
    DELETE ~/docs ~/attachments ~/attachments/bulk ~/queries ~/cmpxchg ~/indexes ~/subscriptions ~/studio/collections/docs
    DELETE ~/admin/*
    RESET ~/admin/etl
    POST ~/bulk_docs ~/bulk_insert ~/counters ~/timeseries ~/timeseries/names/config ~/studio/sample-data
    POST ~/identity/next ~/identity/seed ~/smuggler/export ~/smuggler/import ~/revisions/revert ~/revisions/revert/docs
    POST ~/operations/kill ~/operations/pause ~/operations/resume ~/operations/limit ~/operations/undo
    POST ~/subscriptions/update ~/subscriptions/drop ~/subscriptions/try
    POST ~/indexes/test ~/indexes/try ~/indexes/replace ~/indexes/set-lock ~/indexes/set-priority
    POST ~/admin/indexes/enable ~/admin/indexes/disable ~/admin/tasks/state ~/admin/studio-tasks/folder-path-options ~/admin/tombstones/cleanup
    POST ~/admin/backup ~/admin/backup/database ~/admin/periodic-backup
    POST ~/admin/revisions/* ~/admin/expiration/config ~/admin/refresh/config ~/admin/documents-compression/config
    POST ~/admin/data-archival/config ~/admin/timeseries/config
    GET ~/hilo/next ~/operations ~/operations/next-operation-id ~/operations/state
    GET ~/subscriptions ~/subscriptions/state ~/subscriptions/connection-details
    GET ~/tasks ~/task ~/tasks/errors ~/etl/stats ~/admin/periodic-backup/config ~/info/tcp
    GET database=/info/remote-task/tcp
    POST database=/admin/backup-task/delay
    GET name=/periodic-backup name=/periodic-backup/status name=/periodic-backup/history
    POST name=/admin/databases/enable name=/admin/databases/disable name=/admin/databases/set-lock
    POST name=/admin/databases/unused-ids name=/admin/replication/conflicts/solver`,
  here: `
    DELETE ~/changes ~/indexes/errors
    RESET ~/indexes
    POST ~/admin/indexes/start ~/admin/indexes/stop ~/debug/queries/kill
    POST ~/notification-center/dismiss ~/notification-center/postpone
    GET ~/indexes/stats ~/indexes/status ~/indexes/errors ~/indexes/progress ~/indexes/performance
    GET ~/indexes/total-time ~/indexes/debug ~/indexes/debug/metadata ~/studio/indexes/errors-count
    GET ~/healthcheck ~/changes/debug ~/metrics ~/metrics/* ~/notifications ~/notification-center/watch
    GET ~/debug/* ~/admin/debug/txinfo ~/notification-center/stats ~/admin/tombstones/state ~/indexes/performance/live ~/subscriptions/performance/live
    GET ~/replication/performance/live ~/replication/pulses/live ~/etl/performance/live
    GET ~/queue-sink/performance/live ~/cdc-sink/performance/live
    PUT name=/admin/databases
    GET PUT POST DELETE /*`,
  any: `
    POST ~/docs ~/multi_get ~/queries ~/streams/queries ~/attachments ~/attachments/bulk ~/indexes/has-changed
    POST ~/smuggler/validate-options ~/studio/index-fields ~/studio/index-type
    GET name=/admin/databases
    PUT name=/admin/databases/node
    GET HEAD ~/*`,
};
const order = ["confirmed", "leader", "here", "any"] as const satisfies readonly Copies[];

function specified(name: string): Copies | undefined {
  const [method = "", path = ""] = name.split(" ");
  const fits = (pattern: string) =>
    pattern.endsWith("*") ? path.startsWith(pattern.slice(0, -1)) : path === pattern;
  return order.find((copies) =>
    specification[copies].split("\n").some((line) => {
      const words = line.trim().split(" ");
      return words.includes(method) && words.filter((word) => /[/~]/.test(word)).some(fits);
    }),
  );
}

function nameOf({ method, path, about }: Route): string {
  const of = about === undefined ? "" : `${about}=`;
  return `${method} ${of}${path.replace(databasePrefix, "~/")}`;
}

/** The part of an exchange that is read. */
function exchangeOf(query: string, headers: Readonly<Record<string, string>> = {}): Exchange {
  const header = (name: string) => headers[name];
  return { query: new QueryString(query), header } as unknown as Exchange;
}

function routeOf(name: string): Route {
  const found = routes.find((route) => nameOf(route) === name);
  if (found === undefined) throw new Error(`the database ${name} does not exist`);
  return found;
}

test.each(routes.map((route) => [nameOf(route), route]))(
  "%s runs on the specified node",
  (name, route) => {
    const isOfDatabase = route.path.startsWith(databasePrefix);
    const query = route.about === undefined ? "" : `${route.about}=shop`;
    const need = needOf(exchangeOf(query), route, isOfDatabase ? "shop" : undefined);
    const wanted = specified(name);
    expect(wanted, `${name} is in the specification`).toBeDefined();
    expect(need?.copies ?? "here").toBe(wanted);
    if (need !== undefined) expect(need.database).toBe("shop");
  },
);

describe("the copy required by a request", () => {
  test("for documents in a cluster-wide session must be confirmed", () => {
    for (const name of ["GET ~/docs", "POST ~/docs"]) {
      const route = routeOf(name);
      expect(needOf(exchangeOf("id=a&txMode=ClusterWide"), route, "shop")?.copies).toBe(
        "confirmed",
      );
      expect(needOf(exchangeOf("id=a&txMode=SingleNode"), route, "shop")?.copies).toBe("any");
    }
  });

  test("to replace a record is the leader, and to create a database any node", () => {
    const route = routeOf("PUT name=/admin/databases");
    expect(needOf(exchangeOf("name=shop", { etag: '"12"' }), route, undefined)?.copies).toBe(
      "leader",
    );
    expect(needOf(exchangeOf("name=shop", { etag: "undefined" }), route, undefined)?.copies).toBe(
      "here",
    );
  });

  test("for a server route without a database is this node", () => {
    expect(needOf(exchangeOf(""), routeOf("GET name=/periodic-backup"), undefined)).toBeUndefined();
  });
});

describe("the place", () => {
  const nodes = new FakeNodes();
  for (const tag of ["A", "B", "C"]) {
    nodes.members.set(tag, { tag, url: "http://127.0.0.1:1", tcpUrl: null, fingerprint: null });
  }
  const view = nodes.viewOf("A");
  const database = nodes.addDatabase("shop", ["A", "B", "C"], "B");

  function place(copies: Copies, seen: ClusterView = view, wanted?: string): string {
    const need: Need = { database: "shop", copies, wanted };
    const found = placeOf(need, seen.find("shop") as ReplicaState, seen);
    return typeof found === "string" ? found : found.tag;
  }

  function all(): string {
    return (["any", "here", "leader", "confirmed"] as const)
      .map((copies) => place(copies))
      .join(" ");
  }

  function given(members: string, leader: string | null, roles = {}): void {
    Object.assign(database, { members: [...members], leader, roles });
    nodes.heartbeats.clear();
  }

  test("is the local copy if it suffices, and the leader otherwise", () => {
    given("ABC", "B");
    expect(all()).toBe("here here B B");
    given("ABC", "A");
    expect(all()).toBe("here here here here");
    given("ABC", null);
    expect(all()).toBe("here here nowhere nowhere");
  });

  test("does not exist while this node is registered as leader but does not lead", () => {
    given("ABC", "A", { A: "candidate" });
    expect(all()).toBe("here here nowhere nowhere");
  });

  test("is another node if there is no local copy", () => {
    given("BC", "C");
    expect(all()).toBe("C C C C");
    given("BC", null);
    expect(all()).toBe("B B nowhere nowhere");
    nodes.heartbeats.set("C", { ageMs: 100, version: "", databases: new Map() });
    nodes.heartbeats.set("B", { ageMs: 9_000, version: "", databases: new Map() });
    expect(place("any")).toBe("C");
    given("", null);
    expect(all()).toBe("nowhere nowhere nowhere nowhere");
  });

  test("is only the leader until the position that a copy must have is known", () => {
    const placeUnknown = () => {
      const state = { ...(view.find("shop") as ReplicaState), mustShow: Number.POSITIVE_INFINITY };
      const found = placeOf({ database: "shop", copies: "any", wanted: undefined }, state, view);
      return typeof found === "string" ? found : found.tag;
    };
    given("BC", null);
    expect(placeUnknown()).toBe("nowhere");
    given("BC", "C");
    expect(placeUnknown()).toBe("C");
  });

  test("is another node for a read while the local copy is being reopened, except for this node's own state", () => {
    given("ABC", "B", { A: "stopped" });
    expect(all()).toBe("B here B B");
    given("A", "A", { A: "stopped" });
    expect(all()).toBe("here here nowhere nowhere");
  });

  test("is the node that a request names, if it has a copy and any copy suffices", () => {
    given("ABC", "B");
    const wanted = (copies: Copies, tag: string) => place(copies, view, tag);
    expect(["C", "A", "Z"].map((tag) => wanted("any", tag))).toEqual(["C", "here", "here"]);
    expect(wanted("here", "C")).toBe("C");
    expect(wanted("leader", "C")).toBe("B");
    expect(wanted("confirmed", "A")).toBe("B");
  });
});
