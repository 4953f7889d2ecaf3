/** Checks the name of a database that is to be made, while it is typed. */
import { useResource } from "./resource.ts";

interface NameCheck {
  readonly IsValid: boolean;
  readonly ErrorMessage: string | null;
}

/** Why there can be no new database of this name, in the server's words; null: there can, or it is not known yet. */
export function useDatabaseName(name: string): string | null {
  const check = useResource<NameCheck>(
    name === ""
      ? null
      : `/studio-tasks/is-valid-name?type=Database&name=${encodeURIComponent(name)}`,
  );
  const known = useResource<{ Databases: readonly string[] }>("/databases?namesOnly=true");
  if (check.body?.IsValid === false) return check.body.ErrorMessage;
  const isTaken = known.body?.Databases.some((one) => one.toLowerCase() === name.toLowerCase());
  return isTaken === true ? `A database named ${name} already exists.` : null;
}
