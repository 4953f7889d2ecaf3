/**
 * Which documents get revisions and how many are kept: the revisions configuration in the database's settings record,
 * in the form that writers query.
 *
 *   { "Default": rule | null, "Collections": { "Users": rule, … } }
 *   rule := { "Disabled"?, "MinimumRevisionsToKeep"?, "MinimumRevisionAgeToKeep"?: time span, "PurgeOnDelete"?,
 *             "MaximumRevisionsToDeleteUponDocumentUpdate"? }
 */
import { foldedName } from "../../base/case-folding.ts";
import type { Collections } from "./collections.ts";

/** Key of the database's settings record among the values. */
export const databaseRecordKey = "record";

/** The rule for one collection. */
export interface RevisionRule {
  /** Revisions to keep at least; null: their number is no reason to remove any. */
  readonly countMin: number | null;
  /** Microseconds to keep a revision at least; null: age is no reason to keep any. */
  readonly ageMicrosMin: number | null;
  /** Revisions are removed with their document, and its deletion leaves none. */
  readonly purgesOnDelete: boolean;
  /** How many are removed at most per write of the document; null: all that may be. */
  readonly dropsMax: number | null;
}

const timeSpanPattern = /^(\d{1,8}\.)?(\d{1,2}):(\d{2}):(\d{2})(\.\d{1,7})?$/;

/** Microseconds of `[d.]hh:mm:ss[.fffffff]`; null for other text. */
export function timeSpanMicros(text: string): number | null {
  const match = timeSpanPattern.exec(text);
  if (match === null) return null;
  const [, days, hours, minutes, seconds, fraction] = match;
  const whole =
    Number.parseInt(days ?? "0", 10) * 86_400 +
    Number(hours) * 3600 +
    Number(minutes) * 60 +
    Number(seconds);
  return whole * 1e6 + Math.floor(Number(fraction ?? "0") * 1e6);
}

type Configuration = Readonly<Record<string, unknown>>;

export class RevisionRules {
  readonly #collections: Collections;
  #default: RevisionRule | null = null;
  /** By lower-cased name; null: none of its documents get revisions. */
  #named = new Map<string, RevisionRule | null>();
  /** By collection number, filled on demand. */
  #known: (RevisionRule | null | undefined)[] = [];
  /** Whether no document gets revisions. */
  isEmpty = true;

  constructor(collections: Collections) {
    this.#collections = collections;
  }

  /** Returns the rule for a collection's documents; null: they get no revisions. */
  of(collectionId: number): RevisionRule | null {
    if (this.isEmpty) return null;
    let rule = this.#known[collectionId];
    if (rule === undefined) {
      const name = foldedName(this.#collections.nameOf(collectionId));
      rule = this.#named.get(name);
      // A default rule is not meant for HiLo documents, which only count ids.
      if (rule === undefined) rule = name === "@hilo" ? null : this.#default;
      this.#known[collectionId] = rule;
    }
    return rule;
  }

  /** Applies the database's settings record; undefined if it does not exist. */
  configure(record: unknown): void {
    const settings = record as Configuration | undefined;
    const revisions = (settings?.["Revisions"] ?? null) as Configuration | null;
    this.#known = [];
    this.#named = new Map();
    this.#default = ruleOf(revisions?.["Default"]);
    for (const [name, rule] of Object.entries(revisions?.["Collections"] ?? {})) {
      this.#named.set(foldedName(name), ruleOf(rule));
    }
    this.isEmpty =
      this.#default === null && [...this.#named.values()].every((rule) => rule === null);
  }
}

function ruleOf(configured: unknown): RevisionRule | null {
  if (typeof configured !== "object" || configured === null) return null;
  const rule = configured as Configuration;
  const countMin = rule["MinimumRevisionsToKeep"];
  const age = rule["MinimumRevisionAgeToKeep"];
  const dropsMax = rule["MaximumRevisionsToDeleteUponDocumentUpdate"];
  if (rule["Disabled"] === true || countMin === 0) return null;
  return {
    countMin: typeof countMin === "number" ? countMin : null,
    ageMicrosMin: typeof age === "string" ? timeSpanMicros(age) : null,
    purgesOnDelete: rule["PurgeOnDelete"] === true,
    dropsMax: typeof dropsMax === "number" ? dropsMax : null,
  };
}
