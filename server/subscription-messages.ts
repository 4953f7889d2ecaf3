/** Messages of the subscription protocol that the server sends: their JSON texts. Shapes are those of RavenDB 7.2.7. */
import { EngineError } from "../engine/errors.ts";
import type {
  SubscriptionIncludes,
  SubscriptionItem,
} from "../engine/subscriptions/subscription-query.ts";
import { errorStatus } from "./error-status.ts";
import { counterIncludesText } from "./query-reply.ts";
import type { Database } from "./services.ts";

/** One document of a batch. */
export function dataMessage({ text, error }: SubscriptionItem): (Buffer | string)[] {
  const tail = error === null ? "}" : `,"Exception":${JSON.stringify(exceptionText(error))}}`;
  return ['{"Type":"Data","Data":', text, tail];
}

/** The documents that go along, as a member `"Includes":{…}`; null: there are none. */
export function includesMember({ documents }: SubscriptionIncludes): string | null {
  if (documents.length === 0) return null;
  const members = documents.map(({ id, text }) => `${JSON.stringify(id)}:${text.toString()}`);
  return `"Includes":{${members.join(",")}}`;
}

/** The messages that follow the documents of a batch. */
export function includeMessages(database: Database, includes: SubscriptionIncludes): string[] {
  const messages: string[] = [];
  const documents = includesMember(includes);
  if (documents !== null) messages.push(`{"Type":"Includes",${documents}}`);
  const { counters } = includes;
  if (counters !== null) {
    messages.push(`{"Type":"CounterIncludes",${counterIncludesText(database, counters)}}`);
  }
  return messages;
}

/** `Type: message`, as .NET writes an exception; an error of the server itself tells nothing of it. */
export function exceptionText(error: unknown): string {
  if (!(error instanceof EngineError)) return "System.InvalidOperationException: Internal error.";
  return `${errorStatus[error.code].type}: ${error.message}`;
}
