/**
 * Lists the settings of the server and of a database for RavenDB's Studio (`GET admin/configuration/settings` of a
 * database, in the shape of RavenDB 7.2.7), with descriptions and values.
 */
import { type Setting, type SettingKind, type SettingName, settings } from "./setting-table.ts";

interface ShownValue {
  readonly Value: string | null;
  readonly HasValue: true;
  readonly HasAccess: boolean;
  readonly PendingValue: null;
}

interface SettingMetadata {
  /** One element: the name. */
  readonly Keys: readonly string[];
  readonly [member: string]: unknown;
}

interface ListedSetting {
  readonly Metadata: SettingMetadata;
  /** By name; empty if not set. */
  readonly ServerValues: Readonly<Record<string, ShownValue>>;
  /** Null if it cannot be set for a database. */
  readonly DatabaseValues: Readonly<Record<string, ShownValue>> | null;
}

/** A setting of the table, or one that only databases have. */
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
  about: "stored, without effect",
};

/** Settings of databases that have an effect (docs/settings.md). */
const databaseSettings: Readonly<Record<string, Described>> = {
  "Indexing.TimeToWaitBeforeMarkingAutoIndexAsIdleInMin": {
    group: "Indexing",
    kind: "count",
    fallback: "30",
    unit: "min",
    about: "time without queries after which an automatic index becomes idle",
  },
  "Indexing.TimeToWaitBeforeDeletingAutoIndexMarkedAsIdleInHrs": {
    group: "Indexing",
    kind: "count",
    fallback: "72",
    unit: "hours",
    about: "time after which an idle index is deleted",
  },
  "Indexing.History.NumberOfRevisions": {
    group: "Indexing",
    kind: "count",
    fallback: "10",
    about: "number of definitions in the history of each index",
  },
  "Indexing.IndexMissingFieldsAsNull": {
    group: "Indexing",
    kind: "bool",
    fallback: "false",
    about: "index missing fields as null; also in the configuration of an index",
  },
  "Indexing.Static.SearchEngineType": {
    group: "Indexing",
    kind: "text",
    fallback: "Corax",
    about:
      "RavenDB's engine that static indexes report; as `Lucene` they return the scores of documents",
  },
  "Indexing.Auto.SearchEngineType": {
    group: "Indexing",
    kind: "text",
    fallback: "Corax",
    about: "the same for automatic indexes",
  },
};

/**
 * @param given the server's values, by name
 * @param ofDatabase the values in the database's record, by name
 * @param maySee whether the caller may see values of the server. Secrets are never included
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
