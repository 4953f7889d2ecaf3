/** Who may run scripts beyond the usual limits. */

import type { Exchange } from "../http/exchange.ts";
import { forbidden } from "../http/request-error.ts";
import { isAllowed, refusalMessage, requirements } from "../security/access.ts";

/**
 * In RavenDB 7.2.7 everybody who may run a script may lift its step limit. Here that requires the right to administer
 * the database: a script with more steps takes time from everybody.
 *
 * @param option the option that lifts the limit. @throws RequestError
 */
export function refuseLifting({ identity, databaseName }: Exchange, option: string): void {
  if (isAllowed(identity, requirements["database-admin"], databaseName)) return;
  throw forbidden(
    `${refusalMessage(identity, "database-admin", databaseName)} Lifting the limit of a script's steps with ` +
      `'${option}' takes it; without that option the script can be run.`,
  );
}
