/** State of an index in a word; normal states are inconspicuous. */
import { count, counted } from "../../base/format.ts";
import { Icon } from "../../components/icon.tsx";
import { hasFailed, type IndexStats, lagOf } from "./index-info.ts";

/** `replacement` is the new version of the index that is being built, if any. */
export function IndexState({
  index,
  replacement,
}: {
  index: IndexStats;
  replacement?: IndexStats | undefined;
}) {
  const { State, Status, ErrorsCount, IsStale } = index;
  if (hasFailed(index)) {
    return (
      <span class="state bad">
        <Icon name="bad" />
        Failed
      </span>
    );
  }
  if (ErrorsCount > 0) {
    return (
      <span class="state bad">
        <Icon name="bad" />
        {counted(ErrorsCount, "error")}
      </span>
    );
  }
  if (replacement !== undefined && hasFailed(replacement)) {
    return (
      <span class="state bad" title="The old version serves queries">
        <Icon name="bad" />
        New version failed
      </span>
    );
  }
  if (Status !== "Running") {
    return (
      <span class="state">
        <Icon name="pause" />
        {Status}
      </span>
    );
  }
  if (IsStale) {
    const lag = lagOf(index);
    return (
      <span class="state warn">
        <Icon name="clock" />
        {lag > 0 ? `Lag ${count(lag)}` : "Stale"}
      </span>
    );
  }
  return (
    <span class="state ok">
      <Icon name={State === "Idle" ? "pause" : "check"} />
      {State === "Idle" ? "Idle" : "Up to date"}
    </span>
  );
}
