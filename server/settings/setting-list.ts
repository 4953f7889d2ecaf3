/**
 * The settings of the server and of a database as RavenDB's Studio lists them (`GET admin/configuration/settings` of a
 * database, in the shape of RavenDB 7.2.7): what each is, and its values.
 */
import { type Setting, type SettingKind, type SettingName, settings } from "./setting-table.ts";

interface ShownValue {
  readonly Value: string | null;
  readonly HasValue: true;
  readonly HasAccess: boolean;
  readonly PendingValue: null;
}

export interface SettingMetadata {
  /** One: the name. */
  readonly Keys: readonly string[];
  readonly [member: string]: unknown;
}

export interface ListedSetting {
  readonly Metadata: SettingMetadata;
  /** By name; empty where it is not set. */
  readonly ServerValues: Readonly<Record<string, ShownValue>>;
  /** Null: it cannot be set for a database. */
  readonly DatabaseValues: Readonly<Record<string, ShownValue>> | null;
}

/** A setting of the table, or one that only a database has. */
interface Described extends Omit<Setting, "group"> {
  readonly group: string;
}

const types: Readonly<Record<SettingKind, string>> = {
  text: "String",
  bool: "Boolean",
  count: "Integer",
  seconds: "Time",
  url: "Uri",
};
const timeUnits: Readonly<Record<string, string>> = {
  ms: "Milliseconds",
  s: "Seconds",
  min: "Minutes",
  hours: "Hours",
  days: "Days",
};
const sizeUnits: Readonly<Record<string, string>> = { KB: "Kilobytes", MB: "Megabytes" };

const unknown: Described = {
  group: "Of the database",
  kind: "text",
  fallback: undefined,
  about: "kept, and without effect",
};

/** Those of databases that have an effect (docs/settings.md). */
const databaseSettings: Readonly<Record<string, Described>> = {
  "Indexing.TimeToWaitBeforeMarkingAutoIndexAsIdleInMin": {
    group: "Indexing",
    kind: "count",
    fallback: "30",
    unit: "min",
    about: "when an automatic index that nobody queries becomes idle",
  },
  "Indexing.TimeToWaitBeforeDeletingAutoIndexMarkedAsIdleInHrs": {
    group: "Indexing",
    kind: "count",
    fallback: "72",
    unit: "hours",
    about: "when an idle one is deleted",
  },
  "Indexing.History.NumberOfRevisions": {
    group: "Indexing",
    kind: "count",
    fallback: "10",
    about: "definitions that the history of each index keeps",
  },
  "Indexing.IndexMissingFieldsAsNull": {
    group: "Indexing",
    kind: "bool",
    fallback: "false",
    about:
      "index a field that a document does not have as null; also by the configuration of an index",
  },
  "Indexing.Static.SearchEngineType": {
    group: "Indexing",
    kind: "text",
    fallback: "Corax",
    about:
      "which of RavenDB's engines static indexes answer as; as `Lucene` they tell the scores of documents",
  },
  "Indexing.Auto.SearchEngineType": {
    group: "Indexing",
    kind: "text",
    fallback: "Corax",
    about: "the same of automatic indexes",
  },
};

/**
 * @param given the server's, by name
 * @param ofDatabase what the record of the database has by name
 * @param maySee whether the caller may see values of the server. Secrets are shown to nobody
 */
export function listSettings(
  given: ReadonlyMap<string, { readonly value: string }>,
  ofDatabase: Readonly<Record<string, unknown>>,
  maySee: boolean,
): ListedSetting[] {
  const own = Object.entries(settings).map(([name, setting]): ListedSetting => {
    const value = given.get(name as SettingName)?.value;
    const hasAccess = maySee && setting.isSecret !== true;
    return {
      Metadata: metadataOf(name, setting),
      ServerValues: value === undefined ? {} : { [name]: shown(value, hasAccess) },
      DatabaseValues: null,
    };
  });
  const names = new Set([...Object.keys(databaseSettings), ...Object.keys(ofDatabase)]);
  const others = [...names].map((name): ListedSetting => {
    const value = ofDatabase[name];
    return {
      Metadata: {
        ...metadataOf(name, databaseSettings[name] ?? unknown),
        Scope: "ServerWideOrPerDatabase",
      },
      ServerValues: {},
      DatabaseValues:
        value === undefined ? {} : { [name]: shown(value === null ? null : String(value), true) },
    };
  });
  return [...own, ...others];
}

function metadataOf(name: string, setting: Described): SettingMetadata {
  const { group, kind, fallback, unit = "", isSecret = false, about } = setting;
  const sizeUnit = sizeUnits[unit] ?? null;
  const timeUnit = timeUnits[unit] ?? (kind === "seconds" ? "Seconds" : null);
  return {
    Category: group,
    Keys: [name],
    Scope: "ServerWideOnly",
    DefaultValue: fallback ?? null,
    IsDefaultValueDynamic: false,
    Description: about,
    Type: sizeUnit !== null ? "Size" : timeUnit !== null ? "Time" : types[kind],
    SizeUnit: sizeUnit,
    TimeUnit: timeUnit,
    MinValue: null,
    IsArray: false,
    IsNullable: fallback === undefined,
    IsSecured: isSecret,
    AvailableValues: null,
  };
}

function shown(value: string | null, hasAccess: boolean): ShownValue {
  return {
    Value: hasAccess ? value : null,
    HasValue: true,
    HasAccess: hasAccess,
    PendingValue: null,
  };
}
