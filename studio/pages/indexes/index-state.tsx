/** State of an index in a word; normal states are inconspicuous. */
import { count, counted } from "../../base/format.ts";
import { Icon } from "../../components/icon.tsx";
import { type IndexStats, lagOf } from "./index-info.ts";

export function IndexState({ index }: { index: IndexStats }) {
  const { State, Status, ErrorsCount, IsInvalidIndex, IsStale } = index;
  if (IsInvalidIndex || State === "Error") {
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
