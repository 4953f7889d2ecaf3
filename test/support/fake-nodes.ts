/**
 * A cluster in the memory of a test, as seen by several servers of one process. Nothing is
 * replicated: each server has the databases that the test creates. Fields may be set at any time;
 * `changed` notifies the servers.
 */
import { setTimeout as pause } from "node:timers/promises";
import { EngineError } from "../../engine/base/errors.ts";
import type {
  ClusterMember,
  ClusterView,
  ReceivedHeartbeat,
  ReplicaRoleName,
  ReplicaState,
} from "../../server/cluster/cluster-view.ts";
import { followNodes } from "../../server/cluster/node-certificates.ts";
import { Peers } from "../../server/cluster/peers.ts";
import { ReplicaPositions } from "../../server/cluster/replica-positions.ts";
import type { TestServer } from "./start-test-server.ts";

/** A database of the cluster. */
export interface FakeDatabase {
  readonly name: string;
  members: readonly string[];
  /** null without a leader. */
  leader: string | null;
  /** Roles that do not follow from `leader`. */
  roles: Readonly<Record<string, ReplicaRoleName | null>>;
  topologyEtag: number;
  /** The visible position of each node's copy; 1 by default. */
  visible: Readonly<Record<string, number>>;
}

/** The id of all databases. */
const databaseId = "0".repeat(32);

export class FakeNodes {
  readonly members = new Map<string, ClusterMember>();
  readonly databases = new Map<string, FakeDatabase>();
  readonly heartbeats = new Map<string, ReceivedHeartbeat>();
  readonly values = new Map<string, string>();
  readonly #listeners = new Set<() => void>();
  readonly #peers: Peers[] = [];
  /** What clients of each node were shown. */
  readonly #shown = new Map<string, ReplicaPositions>();

  changed(): void {
    for (const listener of [...this.#listeners]) listener();
  }

  addDatabase(name: string, members: readonly string[], leader: string | null): FakeDatabase {
    const database = { name, members, leader, roles: {}, topologyEtag: 1, visible: {} };
    this.databases.set(name.toLowerCase(), database);
    this.changed();
    return database;
  }

  /** Configures a server as a node of the cluster, registered or not. */
  join(server: TestServer, tag: string, isMember = true): Peers {
    const { services } = server.running;
    const { presentedCertificate } = services;
    const fingerprint = presentedCertificate?.current.certificate.fingerprint256 ?? null;
    if (isMember) this.members.set(tag, { tag, url: server.url, tcpUrl: null, fingerprint });
    const view = this.viewOf(tag);
    const peers = new Peers(view, presentedCertificate);
    this.#peers.push(peers);
    Object.defineProperty(services, "cluster", { value: view, configurable: true });
    Object.defineProperty(services, "peers", { value: peers, configurable: true });
    followNodes(view, services.certificates);
    this.changed();
    return peers;
  }

  close(): void {
    for (const peers of this.#peers) peers.close();
  }

  /** The cluster view of a node. */
  viewOf(tag: string): ClusterView {
    const refuse = (what: string) => () =>
      Promise.reject(new EngineError("not-supported", `${what} is not in this test`));
    const shown = this.#shown.get(tag) ?? new ReplicaPositions();
    this.#shown.set(tag, shown);
    shown.recordLeader({ id: databaseId, generation: 1 }, 0);
    const stateOf = (database: FakeDatabase): ReplicaState => {
      const usual = database.leader === tag ? "leader" : "follower";
      const role = database.members.includes(tag) ? usual : null;
      return {
        registered: {
          name: database.name,
          id: databaseId,
          generation: 1,
          members: database.members,
          originTag: database.members[0] ?? tag,
          isSeeded: true,
          initialRecord: {},
          index: 1,
        },
        role: tag in database.roles ? (database.roles[tag] ?? null) : role,
        epoch: 1,
        leaderTag: database.leader,
        applied: 1,
        topologyEtag: database.topologyEtag,
        visible: database.visible[tag] ?? 1,
        mustShow: shown.of({ id: databaseId, generation: 1 }),
        isComplete: true,
        trouble: null,
      };
    };
    return {
      tag,
      topologyId: "8f2f4bd8-0c0e-4d2b-9d0d-3f1a1f2b3c4d",
      index: 1,
      leaderTag: "A",
      epoch: 1,
      members: () => [...this.members.values()],
      lastHeartbeat: (other) => this.heartbeats.get(other),
      strangers: () => [],
      find: (name) => {
        const database = this.databases.get(name.toLowerCase());
        return database === undefined ? undefined : stateOf(database);
      },
      databases: () => [...this.databases.values()].map(stateOf),
      answered: (place) => shown.recordReply(place),
      whenVisible: async (name, sequence, ms) => {
        const database = this.databases.get(name.toLowerCase());
        const isVisible = () => (database?.visible[tag] ?? 1) >= sequence;
        for (let waitedMs = 0; waitedMs < ms && !isVisible(); waitedMs += 10) await pause(10);
        return isVisible();
      },
      change: (changes) => {
        for (const { key, value } of changes) {
          if (value === null) this.values.delete(key);
          else this.values.set(key, value);
        }
        this.changed();
        return Promise.resolve();
      },
      changeHere: refuse("changeHere"),
      standFor: () => undefined,
      value: (key) => this.values.get(key),
      values: (prefix) => [...this.values].filter(([key]) => key.startsWith(prefix)),
      onChange: (listener) => {
        this.#listeners.add(listener);
        return () => this.#listeners.delete(listener);
      },
      addMember: refuse("addMember"),
      removeMember: refuse("removeMember"),
      addCopy: refuse("addCopy"),
      removeCopy: refuse("removeCopy"),
      createDatabase: refuse("createDatabase"),
      ownDatabases: () => [],
      adoptDatabase: refuse("adoptDatabase"),
      deleteDatabase: refuse("deleteDatabase"),
      transfer: refuse("transfer"),
      waitForCopies: refuse("waitForCopies"),
    };
  }
}
