/** Duties of the node that leads the shared values: it registers available nodes, and removes the streams of deleted databases. */
import { randomUUID } from "node:crypto";
import { openBootstrap } from "./cluster-bootstrap.ts";
import type { ClusterMember, ValueChange } from "./cluster-view.ts";
import {
  type BootstrapRecord,
  bootstrapKey,
  deletedKey,
  isSameMember,
  memberKey,
  type Registry,
  topologyIdKey,
} from "./registry.ts";

interface RegistrarOptions {
  readonly change: (changes: readonly ValueChange[]) => Promise<unknown>;
  readonly removeStream: (id: string, generation: number) => Promise<unknown>;
}

export class Registrar {
  readonly #options: RegistrarOptions;

  constructor(options: RegistrarOptions) {
    this.#options = options;
  }

  /** `present` contains this node and the nodes with recent heartbeats. @throws EngineError not-leader, … */
  async work(registry: Registry, present: readonly ClusterMember[]): Promise<void> {
    const { change, removeStream } = this.#options;
    const { topologyId, members, removed, deleted, bootstrap, databases } = registry;
    if (topologyId === null) {
      const value = JSON.stringify(randomUUID());
      await change([
        { key: topologyIdKey, expected: null, value },
        { key: bootstrapKey, expected: null, value: JSON.stringify(openBootstrap) },
      ]);
    } else if (bootstrap?.isOpen === true && databases.size > 0) {
      const closed: BootstrapRecord = { ...bootstrap, isOpen: false };
      const expected = JSON.stringify(bootstrap);
      await change([{ key: bootstrapKey, expected, value: JSON.stringify(closed) }]);
    }
    for (const member of present) {
      const known = members.get(member.tag);
      if (known === undefined ? removed.has(member.tag) : isSameMember(known, member)) continue;
      await change([
        {
          key: memberKey(member.tag),
          expected: known === undefined ? null : JSON.stringify(known),
          value: JSON.stringify(member),
        },
      ]);
    }
    // The removal of a stream is recorded, so that later leaders do not repeat it.
    for (const [id, known] of deleted) {
      if (known.isTidied) continue;
      await removeStream(id, known.generation);
      const tidied = { ...known, isTidied: true };
      const expected = JSON.stringify(known);
      await change([{ key: deletedKey(id), expected, value: JSON.stringify(tidied) }]);
    }
  }
}
