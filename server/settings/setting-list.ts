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

export interface ListedSetting {
  readonly Metadata: Readonly<Record<string, unknown>>;
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

/**
 * @param given the server's, by name
 * @param ofDatabase what the database keeps by name, for its clients: nothing of it has an effect here
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
  const others = Object.entries(ofDatabase).map(
    ([name, value]): ListedSetting => ({
      Metadata: {
        ...metadataOf(name, {
          group: "Of the database",
          kind: "text",
          fallback: undefined,
          about: "kept for clients, and without effect",
        }),
        Scope: "ServerWideOrPerDatabase",
      },
      ServerValues: {},
      DatabaseValues: { [name]: shown(value === null ? null : String(value), true) },
    }),
  );
  return [...own, ...others];
}

function metadataOf(name: string, setting: Described): Readonly<Record<string, unknown>> {
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
