/** Settings of a database. Each section is one configuration of the server, and takes effect immediately. */

import { send } from "../base/client.ts";
import { may } from "../base/identity.ts";
import { href } from "../base/router.ts";
import { AccessDenied } from "../components/access-denied.tsx";
import { usePage } from "../shell/page.ts";
import {
  AddCollection,
  Enabled,
  NumberField,
  Section,
  useConfiguration,
} from "./settings-section.tsx";
import { SeriesPolicies } from "./settings-series.tsx";

export function SettingsPage({ database }: { database: string }) {
  usePage("settings", [
    { text: database, to: href(["db", database, "docs"]) },
    { text: "Settings" },
  ]);
  const base = `/databases/${encodeURIComponent(database)}`;
  if (!may("database-admin"))
    return <AccessDenied title={`Settings require administrator access to ${database}`} />;
  return (
    <div class="page">
      <div class="head">
        <h1>Settings</h1>
        <span class="muted cut">Changes take effect immediately.</span>
      </div>
      <Revisions base={base} />
      <Timed
        base={base}
        path="expiration"
        title="Expiration"
        about="Deletes documents after the time in @expires of their metadata."
        label="Interval in seconds"
        field="DeleteFrequencyInSec"
      />
      <Timed
        base={base}
        path="refresh"
        title="Refresh"
        about="Rewrites documents at the time in @refresh of their metadata, so that subscriptions and indexes process them again."
        label="Interval in seconds"
        field="RefreshFrequencyInSec"
      />
      <SeriesPolicies base={base} />
      <Clients base={base} />
    </div>
  );
}

interface Rule {
  readonly Disabled: boolean;
  readonly MinimumRevisionsToKeep: number | null;
  readonly MinimumRevisionAgeToKeep: string | null;
  readonly PurgeOnDelete: boolean;
}

interface RevisionRules {
  readonly Default: Rule | null;
  readonly Collections: Readonly<Record<string, Rule>> | null;
}

const newRule: Rule = {
  Disabled: false,
  MinimumRevisionsToKeep: 10,
  MinimumRevisionAgeToKeep: null,
  PurgeOnDelete: false,
};

function Revisions({ base }: { base: string }) {
  const state = useConfiguration<RevisionRules>(
    `${base}/revisions/config`,
    { Default: null, Collections: {} },
    (value) => send("POST", `${base}/admin/revisions/config`, { json: value }),
  );
  const { value, change } = state;
  const collections = value.Collections ?? {};
  const set = (collection: string, rule: Rule | null) => {
    const { [collection]: _before, ...rest } = collections;
    change({
      ...value,
      Collections: rule === null ? rest : { ...collections, [collection]: rule },
    });
  };
  return (
    <Section
      title="Revisions"
      about="Keeps previous versions of documents, which can be compared and restored."
      state={state}
    >
      <RuleFields
        name="Default for other collections"
        rule={value.Default ?? { ...newRule, Disabled: true }}
        change={(rule) => change({ ...value, Default: rule })}
      />
      {Object.entries(collections).map(([collection, rule]) => (
        <RuleFields
          key={collection}
          name={collection}
          rule={rule}
          change={(next) => set(collection, next)}
          remove={() => set(collection, null)}
        />
      ))}
      <AddCollection
        known={Object.keys(collections)}
        add={(collection) => set(collection, newRule)}
      />
    </Section>
  );
}

function RuleFields({
  name,
  rule,
  change,
  remove,
}: {
  name: string;
  rule: Rule;
  change: (rule: Rule) => void;
  /** Undefined for the default. */
  remove?: () => void;
}) {
  const { MinimumRevisionsToKeep: kept, Disabled, PurgeOnDelete } = rule;
  return (
    <fieldset class="plain stack" aria-label={name}>
      <div class="row">
        <b class="grow cut">{name}</b>
        <Enabled
          isEnabled={!Disabled}
          change={(isEnabled) => change({ ...rule, Disabled: !isEnabled })}
        />
        {remove !== undefined && (
          <button type="button" class="btn quiet" onClick={remove}>
            Remove
          </button>
        )}
      </div>
      {!Disabled && (
        <div class="two-fields">
          <NumberField
            label="Keep at most N revisions"
            hint="Empty: unlimited."
            value={kept}
            change={(next) => change({ ...rule, MinimumRevisionsToKeep: next })}
          />
          <label class="check">
            <input
              type="checkbox"
              checked={PurgeOnDelete}
              onChange={(event) => change({ ...rule, PurgeOnDelete: event.currentTarget.checked })}
            />
            <span>Delete revisions with the document</span>
          </label>
        </div>
      )}
    </fieldset>
  );
}

interface TimedRule {
  readonly Disabled: boolean;
  readonly [field: string]: unknown;
}

/** Expiration and refresh: enabled, and interval. */
function Timed({
  base,
  path,
  title,
  about,
  label,
  field,
}: {
  base: string;
  path: string;
  title: string;
  about: string;
  label: string;
  field: string;
}) {
  const state = useConfiguration<TimedRule>(
    `${base}/${path}/config`,
    { Disabled: true, [field]: null },
    (value) => send("POST", `${base}/admin/${path}/config`, { json: value }),
  );
  const { value, change } = state;
  const seconds = value[field];
  return (
    <Section title={title} about={about} state={state}>
      <Enabled
        isEnabled={!value.Disabled}
        change={(isEnabled) => change({ ...value, Disabled: !isEnabled })}
      />
      {!value.Disabled && (
        <NumberField
          label={label}
          hint="Empty: 60."
          value={typeof seconds === "number" ? seconds : null}
          change={(next) => change({ ...value, [field]: next })}
        />
      )}
    </Section>
  );
}

interface ClientRule {
  readonly Disabled: boolean;
  readonly MaxNumberOfRequestsPerSession: number | null;
  readonly IdentityPartsSeparator: string | null;
}

function Clients({ base }: { base: string }) {
  const state = useConfiguration<ClientRule>(
    `${base}/configuration/client`,
    { Disabled: true, MaxNumberOfRequestsPerSession: null, IdentityPartsSeparator: null },
    (value) => send("PUT", `${base}/admin/configuration/client`, { json: value }),
    (answer) => (answer as { Configuration: ClientRule | null }).Configuration,
  );
  const { value, change } = state;
  return (
    <Section
      title="Clients"
      about="Configuration for RavenDB's clients, which apply it within minutes."
      state={state}
    >
      <Enabled
        isEnabled={!value.Disabled}
        change={(isEnabled) => change({ ...value, Disabled: !isEnabled })}
      />
      {!value.Disabled && (
        <div class="two-fields">
          <NumberField
            label="Maximum requests per session"
            hint="Empty: the client's default."
            value={value.MaxNumberOfRequestsPerSession ?? null}
            change={(next) => change({ ...value, MaxNumberOfRequestsPerSession: next })}
          />
          <label class="form">
            Separator in ids
            <div class="field">
              <input
                value={value.IdentityPartsSeparator ?? ""}
                maxLength={1}
                placeholder="/"
                onInput={({ currentTarget: { value: text } }) =>
                  change({ ...value, IdentityPartsSeparator: text === "" ? null : text })
                }
              />
            </div>
          </label>
        </div>
      )}
    </Section>
  );
}
