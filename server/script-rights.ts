/** Who may run scripts without the usual limits. */
import { isAllowed, refusalMessage, requirements } from "./access.ts";
import type { Exchange } from "./exchange.ts";
import { forbidden } from "./request-error.ts";

/**
 * RavenDB 7.2.7 lets anybody lift the limit of steps who may run the script. Here that takes the right to administer the
 * database: a script that may take more steps takes more of everybody's time.
 *
 * @param option what the caller lifted it with. @throws RequestError
 */
export function refuseLifting({ identity, databaseName }: Exchange, option: string): void {
  if (isAllowed(identity, requirements["database-admin"], databaseName)) return;
  throw forbidden(
    `${refusalMessage(identity, "database-admin", databaseName)} Lifting the limit of a script's steps with ` +
      `'${option}' takes it; without that option the script can be run.`,
  );
}
