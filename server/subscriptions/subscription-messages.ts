/** JSON texts of the subscription protocol's server messages. Shapes are those of RavenDB 7.2.7. */

import { EngineError, type ErrorCode } from "../../engine/base/errors.ts";
import type { JsonText } from "../../engine/base/json/json-text.ts";
import type { Database, SubscriptionIncludes, SubscriptionItem } from "../../engine/engine.ts";
import { errorStatus } from "../http/error-status.ts";
import { RequestError } from "../http/request-error.ts";
import { counterIncludesText, seriesText } from "../replies/query-reply.ts";

/** Appends the message for one document of a batch. */
export function addDataMessage(target: JsonText, { text, error }: SubscriptionItem): void {
  target.addText('{"Type":"Data","Data":').addBytes(text);
  if (error !== null) target.addText(`,"Exception":${JSON.stringify(exceptionText(error))}`);
  target.addText("}");
}

/** Returns the included documents as a member `"Includes":{…}`, or null. */
export function includesMember({ documents }: SubscriptionIncludes): string | null {
  if (documents.length === 0) return null;
  const members = documents.map(({ id, text }) => `${JSON.stringify(id)}:${text.toString()}`);
  return `"Includes":{${members.join(",")}}`;
}

/** The messages after the documents of a batch. */
export function includeMessages(database: Database, includes: SubscriptionIncludes): string[] {
  const messages: string[] = [];
  const documents = includesMember(includes);
  if (documents !== null) messages.push(`{"Type":"Includes",${documents}}`);
  const { counters } = includes;
  if (counters !== null) {
    messages.push(`{"Type":"CounterIncludes",${counterIncludesText(database, counters)}}`);
  }
  const { series } = includes;
  if (series !== null) {
    messages.push(
      `{"Type":"TimeSeriesIncludes","TimeSeriesIncludes":${seriesText(database, series)}}`,
    );
  }
  return messages;
}

export const endOfBatchMessage = '{"Type":"EndOfBatch"}';
export const confirmMessage = '{"Type":"Confirm"}';
export const acceptedMessage = '{"Type":"ConnectionStatus","Status":"Accepted"}';

/** The protocol's names for the end of a connection, by error. Other errors do not concern the subscription. */
const statusNames: Partial<Record<ErrorCode, string>> = {
  "subscription-in-use": "InUse",
  "subscription-missing": "NotFound",
  "subscription-closed": "Closed",
  "subscription-invalid": "Invalid",
  "subscription-changed": "ConcurrencyReconnect",
};

/** The message that ends a connection. */
export function endMessage(error: unknown): string {
  const status = error instanceof EngineError ? statusNames[error.code] : undefined;
  const data = status === "Closed" ? (error as EngineError).details : undefined;
  return JSON.stringify({
    Type: status === undefined ? "Error" : "ConnectionStatus",
    Status: status ?? "None",
    Message: messageText(error),
    Exception: exceptionText(error),
    ...(status === "Closed" ? { Data: data ?? { CanReconnect: false } } : {}),
  });
}

/** Returns the message that redirects a worker to another node; null if the worker must find the leader itself. */
export function redirectMessage(currentTag: string, leaderTag: string | null): string {
  const reason =
    leaderTag === null
      ? "No node leads the database at the moment."
      : `Node ${leaderTag} leads the database, and serves its subscriptions.`;
  return JSON.stringify({
    Type: "ConnectionStatus",
    Status: "Redirect",
    Message: reason,
    Exception: null,
    Data: { CurrentTag: currentTag, RedirectedTag: leaderTag, Reasons: [{ [currentTag]: reason }] },
  });
}

/** The message that refuses a connection before a version was agreed on. */
export function refusalMessage(error: unknown): string {
  return JSON.stringify({
    Type: "Error",
    Exception: exceptionText(error),
    Message: messageText(error),
  });
}

function messageText(error: unknown): string {
  return isForClient(error) ? error.message : "Internal error.";
}

function isForClient(error: unknown): error is EngineError | RequestError {
  return error instanceof EngineError || error instanceof RequestError;
}

/** `Type: message`, as .NET formats an exception; internal errors reveal no details. */
function exceptionText(error: unknown): string {
  if (!isForClient(error)) return "System.InvalidOperationException: Internal error.";
  const type = error instanceof RequestError ? error.type : errorStatus[error.code].type;
  return `${type}: ${error.message}`;
}
