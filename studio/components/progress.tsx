/**
 * Progress of an operation. With a known total: a bar, counts, rate and remaining time. Without a total: count and
 * rate, and no bar.
 */
import { useEffect, useRef, useState } from "preact/hooks";
import { count } from "../base/format.ts";

interface Pace {
  /** Units per second over the last ten seconds; 0 if unknown or paused. */
  readonly rate: number;
  /** Remaining time in seconds; null if unknown. */
  readonly left: number | null;
}

const windowMs = 10_000;
/** Minimum measuring time before the remaining time is estimated, in milliseconds. */
const settledMs = 3_000;

interface Sample {
  readonly ms: number;
  readonly done: number;
}

/** Measures how fast `done` grows since the component was mounted. `isStill` means that it is paused. */
export function usePace(done: number, total: number | null, isStill = false): Pace {
  const samples = useRef<Sample[]>([]);
  if (isStill || (samples.current.at(-1)?.done ?? 0) > done) samples.current = [];
  const now = performance.now();
  const { current } = samples;
  if (!isStill && current.at(-1)?.done !== done) current.push({ ms: now, done });
  while (current.length > 2 && now - (current[0] as Sample).ms > windowMs) current.shift();
  const first = current[0];
  const last = current.at(-1);
  if (first === undefined || last === undefined || last.ms === first.ms)
    return { rate: 0, left: null };
  const rate = ((last.done - first.done) * 1000) / (last.ms - first.ms);
  const isSettled = last.ms - first.ms >= settledMs;
  return { rate, left: total === null || !isSettled ? null : (total - done) / rate };
}

/** Formats a remaining time with limited precision: `about 31 s`, `2 min`, `3 h`. */
export function timeLeft(seconds: number): string {
  if (seconds < 5) return "a few seconds";
  if (seconds < 60) return `about ${Math.round(seconds)} s`;
  if (seconds < 3600) return `${Math.round(seconds / 60)} min`;
  return `${Math.round(seconds / 3600)} h`;
}

/** The bar alone: `done` of `total`, which is at least 0. `label` describes it. */
export function Bar({ label, done, total }: { label: string; done: number; total: number }) {
  const part = total === 0 ? 1 : Math.min(1, done / total);
  return (
    <>
      <div
        class="track"
        role="progressbar"
        aria-label={label}
        aria-valuemin={0}
        aria-valuemax={total}
        aria-valuenow={Math.min(done, total)}
        aria-valuetext={`${count(done)} of ${count(total)}`}
      >
        <i style={{ width: `${part * 100}%` }} />
      </div>
      <Quarters label={label} part={part} />
    </>
  );
}

/**
 * Bar, counts, rate and remaining time. `total` is null if unknown; `unit` is the counted noun, for example
 * "documents".
 */
export function Progress({
  label,
  done,
  total,
  unit = "",
}: {
  label: string;
  done: number;
  total: number | null;
  unit?: string;
}) {
  const { rate, left } = usePace(done, total);
  const of = total === null ? "" : ` of ${count(total)}`;
  return (
    <div class="progress">
      {total !== null && <Bar label={label} done={done} total={total} />}
      <div class="figures">
        <span>
          {count(done)}
          {of}
          {unit === "" ? "" : ` ${unit}`}
        </span>
        {rate >= 1 && <span>{count(rate)} / s</span>}
        {left !== null && left > 0 && <span>{timeLeft(left)} left</span>}
      </div>
    </div>
  );
}

/** Announces 25, 50, 75 and 100 % to screen readers. */
function Quarters({ label, part }: { label: string; part: number }) {
  const quarter = Math.floor(part * 4);
  const first = useRef(quarter);
  const [announced, setAnnounced] = useState("");
  useEffect(() => {
    // Do not announce the initial value.
    if (quarter > first.current) setAnnounced(`${label}: ${quarter * 25} %`);
    first.current = Math.max(first.current, quarter);
  }, [quarter, label]);
  return (
    <span class="hidden-label" role="status">
      {announced}
    </span>
  );
}
