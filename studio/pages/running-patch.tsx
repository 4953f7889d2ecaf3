/**
 * One operation: progress and rate, with a rate limit, Pause and Stop while it runs, and actions after it has
 * completed. The operation continues on the server when the page is closed.
 */

import { useEffect, useState } from "preact/hooks";
import { send } from "../base/client.ts";
import { count, counted } from "../base/format.ts";
import { may } from "../base/identity.ts";
import { type FollowedOperation, useOperation } from "../base/operation.ts";
import { useResource } from "../base/resource.ts";
import { href, open } from "../base/router.ts";
import { sentenceOf } from "../base/server-message.ts";
import { Confirmation } from "../components/confirmation.tsx";
import { Icon } from "../components/icon.tsx";
import { Failure } from "../components/messages.tsx";
import { Bar, timeLeft, usePace } from "../components/progress.tsx";
import {
  collectionOf,
  documentsText,
  errorOf,
  type ListedOperation,
  type PatchCounts,
  type PatchState,
  titleOf,
  tookText,
  type UndoResult,
} from "./operation-facts.ts";

/** Logarithmic slider from 10 to a million documents per second; the rightmost position is unlimited. */
const sliderMax = 101;
const rateOf = (at: number) => (at >= sliderMax ? 0 : Math.round(10 ** (1 + at / 20)));
const sliderPosition = (rate: number | undefined) =>
  rate === undefined
    ? sliderMax
    : Math.max(0, Math.min(100, Math.round(20 * Math.log10(rate / 10))));

export function RunningPatch({ database, id }: { database: string; id: string }) {
  const base = `/databases/${encodeURIComponent(database)}/operations`;
  const { operation, error, again } = useOperation<PatchCounts, UndoResult>(
    `${base}/state?id=${id}`,
  );
  const listed = useListed(`${base}?id=${id}`, operation?.status);
  const [failure, setFailure] = useState<Error | null>(null);
  const [asking, setAsking] = useState<"stop" | "undo" | null>(null);
  const tell = async (what: string) => {
    setFailure(null);
    try {
      const reply = await send<{ OperationId?: number } | null>("POST", `${base}/${what}`);
      again();
      return reply.body;
    } catch (failed) {
      setFailure(failed as Error);
      return null;
    }
  };
  if (error !== undefined)
    return (
      <p class="note warn">Operation {id} is unknown. It completed long ago, or does not exist.</p>
    );
  if (operation === undefined || listed === undefined) return null;
  const state = operation.state as PatchState;
  const query = listed.Description.DetailedDescription?.Query ?? "";
  const collection = collectionOf(query);
  const counts = state.Reached ?? state.Progress;
  const close = () => setAsking(null);
  const undo = async () => {
    const started = await tell(`undo?id=${id}`);
    if (started?.OperationId !== undefined)
      open(href(["db", database, "patch", String(started.OperationId)]));
  };
  return (
    <>
      <section class="panel" aria-label={`Operation ${id}`}>
        {operation.status === "running" ? (
          <Running
            id={id}
            state={state}
            counts={counts}
            collection={collection}
            title={titleOf(listed)}
            tell={(what) => void tell(what)}
            stop={() => setAsking("stop")}
          />
        ) : (
          <CompletedOperation
            operation={operation}
            listed={listed}
            collection={collection}
            goOn={() => void tell(`resume?id=${id}`)}
            undo={() => setAsking("undo")}
          />
        )}
        {failure !== null && <Failure error={failure} />}
      </section>
      {query !== "" && (
        <section class="panel" aria-label="Patch text">
          <pre class="source scroll">{query}</pre>
        </section>
      )}
      {asking === "stop" && (
        <Confirmation
          title={`Stop at ${count(counts?.Processed ?? 0)} of ${count(counts?.Total ?? 0)}?`}
          no="Continue"
          yes="Stop"
          close={close}
          act={() => tell(`kill?id=${id}`)}
        >
          <p>{`Written documents are kept.${state.CanUndo === true ? " Undo is possible afterwards." : ""}`}</p>
        </Confirmation>
      )}
      {asking === "undo" && (
        <Confirmation
          title={`Restore ${documentsText(counts?.Changed ?? 0, collection)} to their state before operation ${id}?`}
          no="Cancel"
          yes="Restore"
          close={close}
          act={undo}
        >
          <p>Documents that were changed since then are not restored, but listed.</p>
        </Confirmation>
      )}
    </>
  );
}

/** The operation as listed, which contains its end time. */
function useListed(path: string, status: string | undefined): ListedOperation | undefined {
  const { body, reload } = useResource<{ Results: readonly ListedOperation[] }>(path);
  useEffect(() => {
    if (status !== undefined && status !== "running") reload();
  }, [status]);
  return body?.Results[0];
}

function Running({
  id,
  state,
  counts,
  collection,
  title,
  tell,
  stop,
}: {
  id: string;
  state: PatchState;
  counts: PatchCounts | null;
  collection: string;
  title: string;
  tell: (what: string) => void;
  stop: () => void;
}) {
  const { Processed: done = 0, Total: total = 0 } = counts ?? {};
  const isPaused = state.IsPaused === true;
  const { rate, left } = usePace(done, total, isPaused);
  const [place, setPlace] = useState(sliderPosition(state.MaxOpsPerSec));
  useEffect(() => setPlace(sliderPosition(state.MaxOpsPerSec)), [state.MaxOpsPerSec]);
  const limit = rateOf(place);
  const limitText = limit === 0 ? "no limit" : `${count(limit)} / s`;
  return (
    <div class="running">
      <div class="stack">
        <div class="row">
          <h2 class="grow">
            {isPaused ? (
              <span class="big">Paused at {count(done)}.</span>
            ) : (
              <>
                <span class="big">{count(done)}</span>
                <span class="soft"> of {documentsText(total, collection)}</span>
              </>
            )}
          </h2>
          <span class={isPaused ? "state warn" : "state run"}>
            <Icon name={isPaused ? "pause" : "run"} />
            {isPaused ? "Paused" : "Running"} · operation {id}
          </span>
        </div>
        <Bar label={title} done={done} total={total} />
        <dl class="four">
          <Fact name="Changed" value={count(counts?.Changed ?? 0)} />
          <Fact name="Unchanged" value={count(counts?.Unchanged ?? 0)} />
          <Fact name="Speed" value={rate < 1 ? "–" : `${count(rate)} / s`} />
          <Fact
            name="Left"
            value={left === null || !Number.isFinite(left) ? "–" : timeLeft(left)}
          />
        </dl>
        <p class="soft">
          {isPaused
            ? "Other writes continue."
            : "You can close this page: the operation continues on the server. If it is stopped, written documents are kept."}
        </p>
      </div>
      <div class="stack">
        {may("write") && (
          <>
            {" "}
            <label class="form">
              <span class="row">
                <span class="grow">At most</span>
                <b>{limitText}</b>
              </span>
              <input
                type="range"
                min={0}
                max={sliderMax}
                value={place}
                aria-label="Maximum documents per second"
                aria-valuetext={limitText}
                onInput={(event) => {
                  const at = Number(event.currentTarget.value);
                  event.currentTarget.style.setProperty("--at", `${(at * 100) / sliderMax}%`);
                  setPlace(at);
                }}
                onChange={(event) =>
                  tell(`limit?id=${id}&maxOpsPerSec=${rateOf(Number(event.currentTarget.value))}`)
                }
                style={{ "--at": `${(place * 100) / sliderMax}%` }}
              />
            </label>
            <div class="row">
              <button
                type="button"
                class="btn grow"
                onClick={() => tell(`${isPaused ? "resume" : "pause"}?id=${id}`)}
              >
                <Icon name={isPaused ? "play" : "pause"} />
                {isPaused ? "Resume" : "Pause"}
              </button>
              <button type="button" class="btn danger grow" onClick={stop}>
                <Icon name="x" />
                Stop…
              </button>
            </div>
          </>
        )}
        <p class="hidden-label" role="status">
          {isPaused ? `Paused at ${count(done)}` : ""}
        </p>
      </div>
    </div>
  );
}

function Fact({ name, value }: { name: string; value: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}

function CompletedOperation({
  operation,
  listed,
  collection,
  goOn,
  undo,
}: {
  operation: FollowedOperation<PatchCounts, UndoResult>;
  listed: ListedOperation;
  collection: string;
  goOn: () => void;
  undo: () => void;
}) {
  const state = operation.state as PatchState;
  const { StartTime, EndTime } = listed.Description;
  const counts = state.Reached;
  const error = errorOf(state);
  const ms = EndTime === null ? 0 : Date.parse(EndTime) - Date.parse(StartTime);
  const isUndone = state.UndoneBy !== undefined;
  return (
    <div class="body stack">
      <h2>{resultTitle(operation, listed, collection, ms)}</h2>
      {counts !== undefined && state.Undoes === undefined && (
        <p class="soft">
          {count(counts.Changed)} of {count(counts.Processed)} were changed,{" "}
          {count(counts.Unchanged)} were unchanged.
          {isUndone && ` Undone by operation ${state.UndoneBy}.`}
        </p>
      )}
      {error !== null && state.CanResume !== true && <ErrorNote message={error.Message} />}
      <LeftAlone result={operation.result} />
      <div class="row">
        {state.CanResume === true && may("write") && (
          <button type="button" class="btn primary" onClick={goOn}>
            Resume
          </button>
        )}
        {state.CanUndo === true && may("write") && (
          <button type="button" class="btn danger" onClick={undo}>
            Undo…
          </button>
        )}
      </div>
    </div>
  );
}

function ErrorNote({ message }: { message: string }) {
  return (
    <p class="note bad" role="alert">
      <Icon name="bad" />
      <span>{sentenceOf(message)}</span>
    </p>
  );
}

/** Documents that an undo did not restore. */
function LeftAlone({ result }: { result: UndoResult | null }) {
  const ids = result?.LeftAlone ?? [];
  if (ids.length === 0) return null;
  const { ChangedSince = 0, WithoutRevision = 0 } = result ?? {};
  return (
    <div class="stack">
      {ChangedSince > 0 && <p>{count(ChangedSince)} were changed since then and not restored.</p>}
      {WithoutRevision > 0 && (
        <p>
          {counted(WithoutRevision, "document")} have no previous version: the operation created
          them.
        </p>
      )}
      <p class="mono cut">{ids.join(" · ")}</p>
    </div>
  );
}

function resultTitle(
  { status, result, state }: FollowedOperation<PatchCounts, UndoResult>,
  listed: ListedOperation,
  collection: string,
  ms: number,
): string {
  const { Reached, CanResume, Undoes } = state as PatchState;
  const changed = documentsText(Reached?.Changed ?? 0, collection);
  if (CanResume === true)
    return `The server stopped during the operation. ${count(Reached?.Changed ?? 0)} were written.`;
  if (status === "cancelled") return `Stopped after ${count(Reached?.Processed ?? 0)}.`;
  if (status === "failed") return `${titleOf(listed)} failed.`;
  if (Undoes !== undefined)
    return `Restored ${counted(result?.Restored ?? 0, "document")} in ${tookText(ms)}.`;
  const { TaskType } = listed.Description;
  if (TaskType === "UpdateByQuery") return `Patched ${changed} in ${tookText(ms)}.`;
  if (TaskType === "DeleteByQuery") return `Deleted ${changed} in ${tookText(ms)}.`;
  return `${titleOf(listed)} completed in ${tookText(ms)}.`;
}
