/** Checks who may run scripts beyond the usual limits. */

import type { Exchange } from "../http/exchange.ts";
import { forbidden } from "../http/request-error.ts";
import { isAllowed, refusalMessage, requirements } from "../security/access.ts";

/**
 * Refuses to lift the step limit of a script without the right to administer the database, because a script with more
 * steps takes time from other clients. In RavenDB 7.2.7 anyone who may run a script may lift it.
 *
 *
 * @param option the option that lifts the limit. @throws RequestError
 */
export function refuseLifting({ identity, databaseName }: Exchange, option: string): void {
  if (isAllowed(identity, requirements["database-admin"], databaseName)) return;
  throw forbidden(
    `${refusalMessage(identity, "database-admin", databaseName)} This right is needed to lift the step limit of a script with ` +
      `'${option}'. Without that option the script can be run.`,
  );
}
