/**
 * The rules for database names. RavenDB 7.2.7 allows letters and digits of any script, `_`, `-` and `.` (a dot only
 * between others), at most 128 characters, and refuses the device names of Windows. Here the name of the server's own
 * database is refused too.
 */
import { foldedName } from "./case-folding.ts";
import { EngineError } from "./errors.ts";
import { databaseNameLengthMax } from "./limits.ts";

const allowed = /^[\p{L}\p{N}_.-]+$/u;
const deviceNames = /^(?:con|prn|aux|nul|com[0-9]|lpt[0-9])$/i;

/** The server's own database: see engine.ts. */
export const systemDatabaseName = "System";

/** @throws EngineError database-name-invalid */
export function checkDatabaseName(name: string): void {
  const complaint = complaintAbout(name);
  if (complaint !== null) throw new EngineError("database-name-invalid", complaint);
}

function complaintAbout(name: string): string | null {
  if (name.length === 0 || name.trim() === "") return "Database name cannot be null or empty.";
  if (name.length > databaseNameLengthMax) {
    return `The name '${name}' exceeds '${databaseNameLengthMax}' characters!`;
  }
  if (!allowed.test(name)) {
    return `The name '${name}' is not permitted. Only letters, digits and characters ('_', '-', '.') are allowed.`;
  }
  if (name.startsWith(".") || name.endsWith(".") || name.includes("..")) {
    return `The name '${name}' is not permitted. If a name contains '.' character then it must be surrounded by other allowed characters.`;
  }
  if (foldedName(name) === foldedName(systemDatabaseName)) {
    return `The name '${name}' is forbidden for use: it is that of the server's own database.`;
  }
  if (deviceNames.test(name)) return `The name '${name}' is forbidden for use!`;
  return null;
}
