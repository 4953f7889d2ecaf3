/** The plan of a query: its steps with counts and times, and a recommended index that can be created with one click. */

import { useEffect, useRef, useState } from "preact/hooks";
import { get, send } from "../../base/client.ts";
import { count, milliseconds } from "../../base/format.ts";
import { may } from "../../base/identity.ts";
import { Icon } from "../../components/icon.tsx";
import { Failure, Skeleton } from "../../components/messages.tsx";

interface Step {
  readonly Step: string;
  readonly Text: string;
  readonly Read: number | null;
  readonly Kept: number | null;
  readonly DurationInMs: number | null;
  readonly Conditions: readonly { readonly Condition: string; readonly Found: number | null }[];
}

interface BetterIndex {
  readonly Reads: number;
  readonly InsteadOf: number;
  readonly Definition: { readonly Name: string; readonly Maps: readonly string[] };
  readonly IsDeployed: boolean;
  readonly Query: string;
}

interface Plan {
  readonly IndexName: string;
  readonly DurationInMs: number;
  readonly Steps: readonly Step[];
  readonly BetterIndex: BetterIndex | null;
}

interface Properties {
  readonly base: string;
  /** Body of the shown request; a new object means that the query ran again. */
  readonly request: object | null;
  /** Runs another query instead, and waits for its index. */
  use(text: string): void;
}

export function PlanPanel({ base, request, use }: Properties) {
  const [plan, setPlan] = useState<Plan | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const [round, setRound] = useState(0);
  useEffect(() => {
    if (request === null) return undefined;
    const abort = new AbortController();
    setError(null);
    send<Plan>("POST", `${base}/queries?debug=plan`, { json: request, signal: abort.signal }).then(
      ({ body }) => setPlan(body),
      (failed: Error) => {
        if (!abort.signal.aborted) setError(failed);
      },
    );
    return () => abort.abort();
  }, [base, request, round]);
  if (error !== null) return <Failure error={error} retry={() => setRound(round + 1)} />;
  if (request === null) return <p class="soft inset">Run a query to see its plan.</p>;
  if (plan === null) return <Skeleton rows={4} />;
  const { Steps: steps } = plan;
  const totalMs = steps.reduce((sum, { DurationInMs }) => sum + (DurationInMs ?? 0), 0);
  const slowest = steps.reduce((a, b) => ((b.DurationInMs ?? 0) > (a.DurationInMs ?? 0) ? b : a));
  return (
    <div class="inset stack">
      <ol class="plan" aria-label="Steps of the query">
        {steps.map((step) => (
          <StepNode
            key={step.Step}
            step={step}
            share={totalMs === 0 ? 0 : (step.DurationInMs ?? 0) / totalMs}
            isSlowest={totalMs > 0 && step === slowest}
          />
        ))}
      </ol>
      <p class="soft">
        {milliseconds(plan.DurationInMs)} in total on the server. <code>{plan.IndexName}</code>
      </p>
      {plan.BetterIndex !== null && (
        <Better key={plan.BetterIndex.Query} base={base} better={plan.BetterIndex} use={use} />
      )}
    </div>
  );
}

const titles: Readonly<Record<string, string>> = {
  wait: "Wait for the index",
  find: "Find",
  order: "Order",
  read: "Read",
  include: "Include",
  return: "Return",
};

interface StepProperties {
  readonly step: Step;
  /** Share of the time of all steps, from 0 to 1. */
  readonly share: number;
  readonly isSlowest: boolean;
}

function StepNode({ step, share, isSlowest }: StepProperties) {
  const { Text, Read, Kept, DurationInMs, Conditions } = step;
  const figures = [
    ["Read", Read === null ? null : count(Read)],
    ["Kept", Kept === null ? null : count(Kept)],
    ["Time", DurationInMs === null ? null : milliseconds(DurationInMs)],
  ] as const;
  const most = Math.max(1, ...Conditions.map(({ Found }) => Found ?? 0));
  return (
    <li class={isSlowest ? "slowest" : undefined}>
      <div class="row wraps">
        <b>{titles[step.Step] ?? step.Step}</b>
        {isSlowest && (
          <span class="chip warn">
            <Icon name="warn" />
            Most expensive: {Math.round(100 * share)} %
          </span>
        )}
      </div>
      <p>{Text}</p>
      <dl class="row wraps">
        {figures.map(
          ([name, value]) =>
            value !== null && (
              <div key={name}>
                <dt>{name}</dt>
                <dd>{value}</dd>
              </div>
            ),
        )}
      </dl>
      {DurationInMs !== null && <Bar share={share} />}
      {Conditions.length > 0 && (
        <ul aria-label="Conditions">
          {Conditions.map(({ Condition, Found }) => (
            <li key={Condition}>
              <div class="row">
                <code class="grow break">{Condition}</code>
                {Found !== null && <span class="soft num">{count(Found)} alone</span>}
              </div>
              {Found !== null && <Bar share={Found / most} />}
            </li>
          ))}
        </ul>
      )}
    </li>
  );
}

function Bar({ share }: { share: number }) {
  return (
    <div class="track" aria-hidden="true">
      <i style={{ width: `${100 * share}%` }} />
    </div>
  );
}

interface Progress {
  readonly Results: readonly {
    readonly Name: string;
    readonly Collections: Readonly<
      Record<
        string,
        {
          readonly NumberOfItemsToProcess: number;
          readonly TotalNumberOfItems: number;
        }
      >
    >;
  }[];
}

const pollMs = 300;

function Better({
  base,
  better,
  use,
}: {
  base: string;
  better: BetterIndex;
  use: (text: string) => void;
}) {
  const { Definition, IsDeployed, Query } = better;
  const [making, setMaking] = useState<{ done: number; total: number } | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const isGone = useRef(false);
  useEffect(
    () => () => {
      isGone.current = true;
    },
    [],
  );
  const make = async () => {
    setMaking({ done: 0, total: 0 });
    setError(null);
    try {
      await send("PUT", `${base}/indexes`, { json: { Indexes: [Definition] } });
      for (;;) {
        const { body } = await get<Progress>(`${base}/indexes/progress`);
        if (isGone.current) return;
        const own = body.Results.find(({ Name }) => Name === Definition.Name);
        if (own === undefined) break;
        const parts = Object.values(own.Collections);
        const total = parts.reduce((sum, part) => sum + part.TotalNumberOfItems, 0);
        const left = parts.reduce((sum, part) => sum + part.NumberOfItemsToProcess, 0);
        setMaking({ done: total - left, total });
        await new Promise((resolve) => setTimeout(resolve, pollMs));
        if (isGone.current) return;
      }
      use(Query);
    } catch (failed) {
      setMaking(null);
      setError(failed as Error);
    }
  };
  return (
    <section class="better" aria-label="A better index">
      <h3>{`A better index would read ${count(better.Reads)} entries, not ${count(better.InsteadOf)}`}</h3>
      <p>
        {IsDeployed
          ? "The index exists, but this query does not name it."
          : "The query then names the index, and its rows are in a different order unless it sorts them."}
      </p>
      {error !== null && <Failure error={error} />}
      <div class="row">
        {making === null ? (
          (IsDeployed || may("write")) && (
            <button
              type="button"
              class="btn"
              onClick={() => (IsDeployed ? use(Query) : void make())}
            >
              {IsDeployed ? "Use it" : "Create this index"}
            </button>
          )
        ) : (
          <span role="status" class="state run">
            <Icon name="run" />
            {making.total === 0
              ? `Creating ${Definition.Name}`
              : `Indexed ${count(making.done)} of ${count(making.total)} documents`}
          </span>
        )}
      </div>
      <details>
        <summary>Show the definition and the query</summary>
        <pre class="source scroll">{`// ${Definition.Name}\n${Definition.Maps.join("\n")}\n\n${Query}`}</pre>
      </details>
    </section>
  );
}
