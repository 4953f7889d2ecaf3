/** Moves to documents changed at a given time, by binary search, because the list is sorted by change, newest first. */
import { useEffect, useRef, useState } from "preact/hooks";
import { Popover } from "../../components/popover.tsx";
import { type ListAsk, previewed } from "./list-rows.ts";

/** The target row; `round` counts the moves. */
export interface Landed {
  readonly index: number;
  readonly round: number;
}

const minuteMs = 60_000;

interface Properties {
  readonly ask: ListAsk;
  readonly total: number;
  readonly landed: Landed | null;
  land(landed: Landed): void;
}

export function Jump({ ask, total, landed, land }: Properties) {
  const [time, setTime] = useState("");
  const [said, setSaid] = useState("");
  const abort = useRef<AbortController | null>(null);
  useEffect(() => () => abort.current?.abort(), []);
  const go = async (close: () => void) => {
    abort.current?.abort();
    const now = new AbortController();
    abort.current = now;
    setSaid("Searching");
    try {
      const index = await indexOf(ask, total, new Date(time).getTime() + minuteMs - 1, now.signal);
      setSaid("");
      close();
      land({ index, round: (landed?.round ?? 0) + 1 });
    } catch (error) {
      if (!now.signal.aborted) setSaid((error as Error).message);
    }
  };
  return (
    <Popover text="Go to" icon="clock">
      {(close) => (
        <form
          class="stack"
          onSubmit={(event) => {
            event.preventDefault();
            void go(close);
          }}
        >
          <label class="form">
            <span>Changed at or before</span>
            <span class="field">
              <input
                type="datetime-local"
                required
                value={time}
                onInput={(event) => setTime(event.currentTarget.value)}
              />
            </span>
          </label>
          <p class="soft" role="status">
            {said}
          </p>
          <button type="submit" class="btn">
            Go
          </button>
        </form>
      )}
    </Popover>
  );
}

/** Returns the first row changed at `ms` or earlier, or the last row. */
async function indexOf(
  ask: ListAsk,
  total: number,
  ms: number,
  signal: AbortSignal,
): Promise<number> {
  let from = 0;
  let to = Math.max(0, total - 1);
  while (from < to) {
    const middle = Math.floor((from + to) / 2);
    const { rows } = await previewed(ask, middle, 1, signal);
    const [row] = rows;
    if (row === undefined || Date.parse(row.lastModified) <= ms) to = middle;
    else from = middle + 1;
  }
  return from;
}
