/** Time-series policies: for each collection, how long entries are kept, and the rollups into coarser series. */
import { useState } from "preact/hooks";
import { send } from "../base/client.ts";
import { secondsOf } from "../base/format.ts";
import { TextField } from "../components/text-field.tsx";
import {
  AddCollection,
  Enabled,
  NumberField,
  Section,
  useConfiguration,
} from "./settings-section.tsx";

/** Units of a time: name, unit of the server, size in it. */
const units = [
  ["seconds", "Second", 1],
  ["minutes", "Second", 60],
  ["hours", "Second", 3600],
  ["days", "Second", 86_400],
  ["months", "Month", 1],
  ["years", "Month", 12],
] as const;
type Unit = (typeof units)[number];

interface Time {
  readonly Value: number;
  /** None: without end. */
  readonly Unit: "Second" | "Month" | "None";
}

interface Policy {
  readonly Name: string;
  readonly AggregationTime: Time;
  readonly RetentionTime: Time;
}

interface Rule {
  readonly Disabled: boolean;
  readonly Policies: readonly Policy[];
  readonly RawPolicy: { readonly RetentionTime: Time } | null;
}

interface Configuration {
  readonly Collections: Readonly<Record<string, Rule>>;
  readonly PolicyCheckFrequency: string | null;
}

const forever: Time = { Value: 2_147_483_647, Unit: "None" };
const newRule: Rule = { Disabled: false, Policies: [], RawPolicy: { RetentionTime: forever } };

export function SeriesPolicies({ base }: { base: string }) {
  const state = useConfiguration<Configuration>(
    `${base}/timeseries/config`,
    { Collections: {}, PolicyCheckFrequency: null },
    (value) => send("POST", `${base}/admin/timeseries/config`, { json: value }),
  );
  const { value, change } = state;
  const set = (collection: string, rule: Rule | null) => {
    const { [collection]: _before, ...rest } = value.Collections;
    change({
      ...value,
      Collections: rule === null ? rest : { ...value.Collections, [collection]: rule },
    });
  };
  const frequency = value.PolicyCheckFrequency;
  return (
    <Section
      title="Time series"
      about="Deletes entries after a time, and rolls them up into coarser series that are kept longer."
      state={state}
    >
      {Object.entries(value.Collections).map(([collection, rule]) => (
        <Collection
          key={collection}
          name={collection}
          rule={rule}
          change={(next) => set(collection, next)}
        />
      ))}
      <AddCollection
        known={Object.keys(value.Collections)}
        add={(collection) => set(collection, newRule)}
      />
      <NumberField
        label="Interval in seconds"
        hint="Between two runs. Empty: 600."
        value={frequency === null ? null : secondsOf(frequency)}
        change={(next) =>
          change({ ...value, PolicyCheckFrequency: next === null ? null : spanText(next) })
        }
      />
    </Section>
  );
}

function Collection({
  name,
  rule,
  change,
}: {
  name: string;
  rule: Rule;
  change: (rule: Rule | null) => void;
}) {
  const policies = rule.Policies;
  const setPolicy = (at: number, policy: Policy | null) =>
    change({
      ...rule,
      Policies: policy === null ? policies.toSpliced(at, 1) : policies.with(at, policy),
    });
  return (
    <fieldset class="plain stack" aria-label={`Time series of ${name}`}>
      <div class="row">
        <b class="grow cut">{name}</b>
        <Enabled
          isEnabled={!rule.Disabled}
          change={(isEnabled) => change({ ...rule, Disabled: !isEnabled })}
        />
        <button type="button" class="btn quiet" onClick={() => change(null)}>
          Remove
        </button>
      </div>
      <TimeField
        label="Keep raw entries for"
        time={rule.RawPolicy?.RetentionTime ?? forever}
        isEndless
        change={(RetentionTime) => change({ ...rule, RawPolicy: { RetentionTime } })}
      />
      {policies.map((policy, at) => (
        <PolicyFields
          // The name is edited.
          key={at}
          policy={policy}
          change={(next) => setPolicy(at, next)}
        />
      ))}
      <div>
        <button
          type="button"
          class="btn"
          onClick={() => change({ ...rule, Policies: [...policies, nextPolicy(policies)] })}
        >
          Add policy
        </button>
      </div>
    </fieldset>
  );
}

function PolicyFields({
  policy,
  change,
}: {
  policy: Policy;
  change: (policy: Policy | null) => void;
}) {
  return (
    <fieldset class="plain stack-2" aria-label={`Policy ${policy.Name}`}>
      <div class="three-fields">
        <TextField
          label="Policy"
          value={policy.Name}
          change={(text) => change({ ...policy, Name: text })}
        />
        <TimeField
          label="Aggregate over"
          time={policy.AggregationTime}
          change={(AggregationTime) => change({ ...policy, AggregationTime })}
        />
        <TimeField
          label="Keep for"
          time={policy.RetentionTime}
          isEndless
          change={(RetentionTime) => change({ ...policy, RetentionTime })}
        />
        <button type="button" class="btn quiet" onClick={() => change(null)}>
          Remove
        </button>
      </div>
    </fieldset>
  );
}

/** A time as a number and a unit; with `isEndless`, it can be without end. */
function TimeField({
  label,
  time,
  isEndless = false,
  change,
}: {
  label: string;
  time: Time;
  isEndless?: boolean;
  change: (time: Time) => void;
}) {
  const [unit, setUnit] = useState<Unit>(() => unitOf(time));
  const [name, serverUnit, size] = unit;
  const hasEnd = time.Unit !== "None";
  const value = time.Value / size;
  const choose = (chosen: string) => {
    const next = units.find(([one]) => one === chosen);
    if (next === undefined) return change(forever);
    setUnit(next);
    change({ Value: (hasEnd ? value : 1) * next[2], Unit: next[1] });
  };
  return (
    <label class="form">
      {label}
      <span class="row">
        {hasEnd && (
          <span class="field grow">
            <input
              type="number"
              min="1"
              value={value === 0 ? "" : value}
              onInput={({ currentTarget }) =>
                change({ Value: Number(currentTarget.value) * size, Unit: serverUnit })
              }
            />
          </span>
        )}
        <select
          class="field"
          aria-label={`${label}: unit`}
          value={hasEnd ? name : ""}
          onChange={(event) => choose(event.currentTarget.value)}
        >
          {isEndless && <option value="">forever</option>}
          {units.map(([one]) => (
            <option key={one} value={one}>
              {one}
            </option>
          ))}
        </select>
      </span>
    </label>
  );
}

/** Returns the largest unit of which a time is a multiple. */
function unitOf({ Value, Unit: given }: Time): Unit {
  return units.findLast(([, unit, size]) => unit === given && Value % size === 0) ?? units[2];
}

/** Returns the policy to suggest after others. */
function nextPolicy(policies: readonly Policy[]): Policy {
  const suggested: readonly (readonly [name: string, value: number, unit: Time["Unit"]])[] = [
    ["ByHour", 3600, "Second"],
    ["ByDay", 86_400, "Second"],
    ["ByMonth", 1, "Month"],
    ["ByYear", 12, "Month"],
  ];
  const isFree = ([name]: (typeof suggested)[number]) => !policies.some((one) => one.Name === name);
  const [Name, Value, Unit] = suggested.find(isFree) ?? ["", 1, "Month"];
  return { Name, AggregationTime: { Value, Unit }, RetentionTime: forever };
}

/** Formats seconds as the server does: `1.02:00:00`. */
function spanText(seconds: number): string {
  const two = (value: number) => String(Math.floor(value)).padStart(2, "0");
  const days = Math.floor(seconds / 86_400);
  const clock = [(seconds % 86_400) / 3600, (seconds % 3600) / 60, seconds % 60].map(two);
  return `${days === 0 ? "" : `${days}.`}${clock.join(":")}`;
}
