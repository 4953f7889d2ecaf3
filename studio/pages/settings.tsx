/** Settings of a database. Each section is one configuration of the server, and takes effect immediately. */

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { get, ServerError, send } from "../base/client.ts";
import { may } from "../base/identity.ts";
import { href } from "../base/router.ts";
import { AccessDenied } from "../components/access-denied.tsx";
import { Failure } from "../components/messages.tsx";
import { usePage } from "../shell/page.ts";

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
      <Clients base={base} />
    </div>
  );
}

/** Loads, edits and saves a configuration; members that the form does not show are unchanged. */
function useConfiguration<T extends object>(
  path: string,
  unset: T,
  write: (value: T) => Promise<unknown>,
  shown: (answer: unknown) => T | null = (answer) => answer as T | null,
) {
  const [stored, setStored] = useState<T | null>(null);
  const [value, setValue] = useState<T>(unset);
  const [error, setError] = useState<Error | null>(null);
  const [isSaved, setSaved] = useState(false);
  useEffect(() => {
    const abort = new AbortController();
    get<unknown>(path, abort.signal)
      .then(({ body }) => shown(body))
      .catch((failed: unknown) => {
        // The configuration was never set.
        if (failed instanceof ServerError && failed.status === 404) return null;
        throw failed;
      })
      .then((found) => {
        setStored(found ?? unset);
        setValue(found ?? unset);
      })
      .catch((failed: Error) => {
        if (!abort.signal.aborted) setError(failed);
      });
    return () => abort.abort();
  }, [path]);
  const change = (next: T) => {
    setValue(next);
    setSaved(false);
  };
  const save = async () => {
    setError(null);
    try {
      await write(value);
      setStored(value);
      setSaved(true);
    } catch (failed) {
      setError(failed as Error);
    }
  };
  const isChanged = stored !== null && JSON.stringify(stored) !== JSON.stringify(value);
  return { value, change, save, isChanged, isSaved, error, isThere: stored !== null };
}

function Section({
  title,
  about,
  state,
  children,
}: {
  title: string;
  about: string;
  state: {
    readonly save: () => Promise<void>;
    readonly isChanged: boolean;
    readonly isSaved: boolean;
    readonly error: Error | null;
    readonly isThere: boolean;
  };
  children: ComponentChildren;
}) {
  return (
    <section class="panel form-panel" aria-label={title}>
      <form
        class="body stack"
        onSubmit={(event) => {
          event.preventDefault();
          if (state.isChanged) void state.save();
        }}
      >
        <div class="stack-2">
          <h2>{title}</h2>
          <p class="soft">{about}</p>
        </div>
        {state.isThere && children}
        {state.error !== null && <Failure error={state.error} />}
        <div class="row">
          <button type="submit" class="btn" disabled={!state.isChanged}>
            Save {title.toLowerCase()}
          </button>
          <span role="status" class="muted">
            {state.isSaved ? "Saved" : ""}
          </span>
        </div>
      </form>
    </section>
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
  const [name, setName] = useState("");
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
      <label class="check">
        <input
          type="checkbox"
          checked={value.Default !== null && !value.Default.Disabled}
          onChange={(event) =>
            change({ ...value, Default: event.currentTarget.checked ? newRule : null })
          }
        />
        <span>Enable for all collections not listed below</span>
      </label>
      {value.Default !== null && !value.Default.Disabled && (
        <RuleFields
          name="all others"
          rule={value.Default}
          change={(rule) => change({ ...value, Default: rule })}
        />
      )}
      {Object.entries(collections).map(([collection, rule]) => (
        <div key={collection} class="stack">
          <div class="row">
            <b class="grow cut">{collection}</b>
            <button type="button" class="btn quiet" onClick={() => set(collection, null)}>
              Remove
            </button>
          </div>
          <RuleFields name={collection} rule={rule} change={(next) => set(collection, next)} />
        </div>
      ))}
      <div class="row">
        <div class="field grow">
          <input
            aria-label="Collection"
            placeholder="Collection"
            value={name}
            onInput={(event) => setName(event.currentTarget.value)}
          />
        </div>
        <button
          type="button"
          class="btn"
          disabled={name === "" || name in collections}
          onClick={() => {
            set(name, newRule);
            setName("");
          }}
        >
          Add
        </button>
      </div>
    </Section>
  );
}

function RuleFields({
  name,
  rule,
  change,
}: {
  name: string;
  rule: Rule;
  change: (rule: Rule) => void;
}) {
  const { MinimumRevisionsToKeep: kept, Disabled, PurgeOnDelete } = rule;
  return (
    <div class="two-fields">
      <NumberField
        label={`Keep at most N revisions of ${name}`}
        hint="Empty: unlimited."
        value={kept}
        change={(next) => change({ ...rule, MinimumRevisionsToKeep: next })}
      />
      <div class="stack-2">
        <label class="check">
          <input
            type="checkbox"
            checked={Disabled}
            onChange={(event) => change({ ...rule, Disabled: event.currentTarget.checked })}
          />
          <span>Disabled</span>
        </label>
        <label class="check">
          <input
            type="checkbox"
            checked={PurgeOnDelete}
            onChange={(event) => change({ ...rule, PurgeOnDelete: event.currentTarget.checked })}
          />
          <span>Delete revisions with the document</span>
        </label>
      </div>
    </div>
  );
}

function NumberField({
  label,
  hint,
  value,
  change,
}: {
  label: string;
  hint?: string;
  value: number | null;
  change: (value: number | null) => void;
}) {
  return (
    <label class="form">
      {label}
      <div class="field">
        <input
          type="number"
          min="1"
          value={value ?? ""}
          onInput={({ currentTarget: { value: text } }) =>
            change(text === "" ? null : Number(text))
          }
        />
      </div>
      {hint !== undefined && <small>{hint}</small>}
    </label>
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
      <label class="check">
        <input
          type="checkbox"
          checked={!value.Disabled}
          onChange={(event) => change({ ...value, Disabled: !event.currentTarget.checked })}
        />
        <span>On</span>
      </label>
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
      <label class="check">
        <input
          type="checkbox"
          checked={!value.Disabled}
          onChange={(event) => change({ ...value, Disabled: !event.currentTarget.checked })}
        />
        <span>On</span>
      </label>
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
