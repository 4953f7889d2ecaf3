/**
 * The wire format of changes, and the facts that watches filter on. Both are computed once per change, however many
 * connections watch. The shapes and the order of keys are those of RavenDB 7.2.7.
 */
import { foldedName, lowerCased } from "../../engine/base/case-folding.ts";
import type {
  CounterChange,
  DocumentChange,
  IndexChange,
  OperationInfo,
  TimeSeriesChange,
} from "../../engine/engine.ts";
import { operationStateReply } from "../databases/operation-reply.ts";

/** The first message of every connection: the commands that the server supports besides the oldest ones. */
export const greeting = '{"TopologyChange":true,"AggressiveCachingChange":true}';

/** Notifies clients that cache replies until something changes. */
export const cacheMessage = '{"Type":"AggressiveCacheChange"}';

/** Facts that watches filter document changes on. */
export interface DocumentFacts {
  readonly lowerId: string;
  readonly lowerCollection: string;
}

/** Facts that watches filter changes of counters and time series on. `lowerId` is that of the document. */
export interface PartFacts {
  readonly lowerId: string;
  readonly lowerName: string;
}

/** The facts and the message of a change. */
interface EncodedChange<Facts> {
  readonly facts: Facts;
  /** JSON text of an object. */
  readonly message: string;
}

/** Returns the acknowledgment of the command with that id. */
export function confirmation(commandId: number): string {
  return `{"CommandId":${commandId},"Type":"Confirm"}`;
}

export function documentMessage(change: DocumentChange): EncodedChange<DocumentFacts> {
  const { collection, id } = change;
  const value = JSON.stringify({
    Type: change.type,
    Id: id,
    CollectionName: collection,
    ChangeVector: change.changeVector,
  });
  return {
    facts: { lowerId: lowerCased(id), lowerCollection: foldedName(collection) },
    message: `{"Type":"DocumentChange","Value":${value}}`,
  };
}

export function counterMessage(change: CounterChange): EncodedChange<PartFacts> {
  const rest = JSON.stringify({
    DocumentId: change.documentId,
    CollectionName: change.collection,
    ChangeVector: change.changeVector,
    Type: change.type,
  });
  // Values have 64 bits, so all their digits are sent.
  const value = `{"Name":${JSON.stringify(change.name)},"Value":${change.value},${rest.slice(1)}`;
  return { facts: partOf(change), message: `{"Type":"CounterChange","Value":${value}}` };
}

export function timeSeriesMessage(change: TimeSeriesChange): EncodedChange<PartFacts> {
  const value = JSON.stringify({
    Name: change.name,
    From: change.from,
    To: change.to,
    DocumentId: change.documentId,
    ChangeVector: change.changeVector,
    Type: change.type,
    CollectionName: change.collection,
  });
  return { facts: partOf(change), message: `{"Type":"TimeSeriesChange","Value":${value}}` };
}

export function indexMessage({ name, type }: IndexChange): string {
  return `{"Type":"IndexChange","Value":${JSON.stringify({ Name: name, Type: type })}}`;
}

export function operationMessage(info: OperationInfo): string {
  const value = JSON.stringify({ OperationId: info.id, State: operationStateReply(info) });
  return `{"Type":"OperationStatusChange","Value":${value}}`;
}

function partOf(change: CounterChange | TimeSeriesChange): PartFacts {
  return { lowerId: lowerCased(change.documentId), lowerName: lowerCased(change.name) };
}
