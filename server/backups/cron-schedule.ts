/**
 * Cron schedules of backups: expressions of five fields, in the local time of the server, as in RavenDB 7.2.7. A time must
 * match all fields: a day of the month and a day of the week are not alternatives.
 */
import { Cron } from "croner";
import { RequestError } from "../http/request-error.ts";

const fieldNames = ["Minute", "Hour", "Day", "Month", "DayOfWeek"] as const;
/** Maximum length of an expression, in characters. */
const expressionLengthMax = 256;

export class CronSchedule {
  readonly #cron: Cron;

  /** @throws RequestError with RavenDB's type if the expression is invalid or matches no time */
  constructor(expression: string) {
    const fields = expression.trim().split(/\s+/);
    if (expression.length > expressionLengthMax || fields.length > fieldNames.length) {
      throw unreadable(`The provided cron string <${shown(expression)}> has too many parameters`);
    }
    if (fields.length < fieldNames.length) {
      throw unreadable(`The provided cron string <${expression}> has too few parameters`);
    }
    // "?" means any value; the library reads it as the start time.
    const plain = fields.map((field) => (field === "?" ? "*" : field));
    for (const [at, field] of plain.entries()) {
      const alone = plain.map((_, other) => (other === at ? field : "*"));
      if (cronOf(alone) !== undefined) continue;
      throw unreadable(`There was an error parsing '${field}' for the ${fieldNames[at]} field`);
    }
    const cron = cronOf(plain);
    if (cron === undefined || cron.nextRun() === null) {
      throw unreadable(`The provided cron string <${expression}> matches no time`);
    }
    this.#cron = cron;
  }

  /** Returns the first time after `afterMs`, in milliseconds since the Unix epoch, or null if there is no later time. */
  nextMs(afterMs: number): number | null {
    return this.#cron.nextRun(new Date(afterMs))?.getTime() ?? null;
  }
}

/** Returns undefined if the expression is invalid. */
function cronOf(fields: readonly string[]): Cron | undefined {
  try {
    return new Cron(fields.join(" "), { paused: true, domAndDow: true, mode: "5-part" });
  } catch {
    return undefined;
  }
}

function shown(expression: string): string {
  return expression.slice(0, expressionLengthMax);
}

function unreadable(message: string): RequestError {
  return new RequestError(400, "NCrontab.Advanced.Exceptions.CrontabException", message);
}
