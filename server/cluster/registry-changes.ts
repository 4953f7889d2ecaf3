/**
 * The changes of shared values that add and remove nodes, copies and databases. Each is computed from the registry and
 * expects that what it changes is still as the registry has it.
 *
 * `index`: of the newest change of the shared values.
 */
import { foldedName } from "../../engine/base/case-folding.ts";
import { EngineError } from "../../engine/engine.ts";
import type { ClusterDatabase, ClusterMember, ValueChange } from "./cluster-view.ts";
import { databaseKey, deletedKey, memberKey, type Registry, removedKey } from "./registry.ts";

/** @throws EngineError database-missing */
export function registeredDatabase({ databases }: Registry, name: string): ClusterDatabase {
  const found = databases.get(foldedName(name));
  if (found === undefined) {
    throw new EngineError("database-missing", `Database '${name}' does not exist.`);
  }
  return found;
}

/** `member`: the node, if it sends heartbeats. @throws EngineError invalid-argument */
export function addingMember(
  { members }: Registry,
  tag: string,
  member: ClusterMember | undefined,
): ValueChange[] {
  if (members.has(tag)) {
    throw new EngineError("invalid-argument", `The node ${tag} is in the cluster already.`);
  }
  if (member === undefined) {
    throw new EngineError(
      "invalid-argument",
      `Node ${tag} sends no heartbeats. Start it with --Cluster.NodeTag=${tag} and the NATS servers of this node.`,
    );
  }
  return [
    { key: removedKey(tag), value: null },
    { key: memberKey(tag), expected: null, value: JSON.stringify(member) },
  ];
}

/** @throws EngineError invalid-argument, invalid-operation if a database would lose its last copy */
export function removingMember(registry: Registry, tag: string, index: number): ValueChange[] {
  const member = requireMember(registry, tag);
  const changes: ValueChange[] = [
    { key: memberKey(tag), expected: JSON.stringify(member), value: null },
    { key: removedKey(tag), value: JSON.stringify(new Date().toISOString()) },
  ];
  for (const registered of registry.databases.values()) {
    if (registered.members.includes(tag)) changes.push(withoutCopy(registered, tag, index));
  }
  return changes;
}

/** @throws EngineError database-missing, invalid-argument, invalid-operation */
export function addingCopy(
  registry: Registry,
  name: string,
  tag: string,
  index: number,
): ValueChange[] {
  const registered = registeredDatabase(registry, name);
  requireMember(registry, tag);
  if (registered.members.includes(tag)) {
    throw new EngineError(
      "invalid-operation",
      `The node ${tag} has a copy of '${registered.name}'.`,
    );
  }
  return [withMembers(registered, [...registered.members, tag], index)];
}

/** @throws EngineError database-missing, invalid-operation */
export function removingCopy(
  registry: Registry,
  name: string,
  tag: string,
  index: number,
): ValueChange[] {
  const registered = registeredDatabase(registry, name);
  if (!registered.members.includes(tag)) {
    throw new EngineError(
      "invalid-operation",
      `The node ${tag} has no copy of '${registered.name}'.`,
    );
  }
  return [withoutCopy(registered, tag, index)];
}

export function deletingDatabase(registered: ClusterDatabase): ValueChange[] {
  const { name, id, generation } = registered;
  return [
    { key: databaseKey(name), expected: JSON.stringify(registered), value: null },
    { key: deletedKey(id), value: JSON.stringify({ name, generation }) },
  ];
}

/** @throws EngineError invalid-argument */
function requireMember({ members }: Registry, tag: string): ClusterMember {
  const member = members.get(tag);
  if (member === undefined) {
    throw new EngineError("invalid-argument", `The node ${tag} does not exist in the cluster.`);
  }
  return member;
}

function withMembers(
  registered: ClusterDatabase,
  members: readonly string[],
  index: number,
): ValueChange {
  const changed = { ...registered, members, index: Math.max(registered.index, index) + 1 };
  return {
    key: databaseKey(registered.name),
    expected: JSON.stringify(registered),
    value: JSON.stringify(changed),
  };
}

/** @throws EngineError invalid-operation */
function withoutCopy(registered: ClusterDatabase, tag: string, index: number): ValueChange {
  const members = registered.members.filter((one) => one !== tag);
  if (members.length === 0) {
    throw new EngineError(
      "invalid-operation",
      `The node ${tag} has the only copy of '${registered.name}': delete the database, or add a copy elsewhere first.`,
    );
  }
  return withMembers(registered, members, index);
}
