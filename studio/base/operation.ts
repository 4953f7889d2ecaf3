/**
 * An operation of the server, followed while it runs: asked for each second, until it has ended or the page is left.
 * While the server cannot be reached, it is asked again and again: the operation may well go on.
 */
import { useEffect, useState } from "preact/hooks";
import { get, OfflineError } from "./client.ts";

/** What operations/state answers. Progress and result are different for each kind of operation. */
export interface OperationState<P = OperationCounts, R = OperationCounts> {
  readonly Status: "InProgress" | "Completed" | "Faulted" | "Canceled";
  readonly Progress: P | null;
  /** Of an operation that has ended; of one that failed, the reason. */
  readonly Result: R | OperationMistake | null;
}

/** As most operations count. */
export interface OperationCounts {
  readonly Processed?: number;
  readonly Total?: number;
}

export interface OperationMistake {
  readonly Type: string;
  readonly Message: string;
}

export interface FollowedOperation<P = OperationCounts, R = OperationCounts> {
  readonly status: "running" | "completed" | "failed" | "cancelled";
  readonly progress: P | null;
  readonly result: R | null;
  /** Why it failed. */
  readonly mistake: OperationMistake | null;
  /** The whole reply. */
  readonly state: OperationState<P, R>;
}

const everyMs = 1000;

const statuses = {
  InProgress: "running",
  Completed: "completed",
  Faulted: "failed",
  Canceled: "cancelled",
} as const;

/**
 * Follows the operation that `path` tells of, as `/databases/shop/operations/state?id=7`; null: none.
 * @returns `operation` undefined: nothing is known yet; `error`: the server does not tell, as it has forgotten it
 */
export function useOperation<P = OperationCounts, R = OperationCounts>(
  path: string | null,
): {
  readonly operation: FollowedOperation<P, R> | undefined;
  readonly error: Error | undefined;
  /** Asks at once, also when it had ended: it may have been started again. */
  again(): void;
} {
  const [held, setHeld] = useState<{
    readonly path: string | null;
    readonly operation?: FollowedOperation<P, R>;
    readonly error?: Error;
  }>({ path: null });
  const [round, setRound] = useState(0);
  useEffect(() => {
    if (path === null) return undefined;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const abort = new AbortController();
    const ask = async () => {
      if (document.hidden) {
        timer = setTimeout(ask, everyMs);
        return;
      }
      try {
        const { body } = await get<OperationState<P, R>>(path, abort.signal);
        const operation = followed(body);
        if (abort.signal.aborted) return;
        setHeld({ path, operation });
        if (operation.status === "running") timer = setTimeout(ask, everyMs);
      } catch (error) {
        if (abort.signal.aborted) return;
        if (error instanceof OfflineError) timer = setTimeout(ask, everyMs);
        else setHeld({ path, error: error as Error });
      }
    };
    void ask();
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, [path, round]);
  const isOf = held.path === path;
  return {
    operation: isOf ? held.operation : undefined,
    error: isOf ? held.error : undefined,
    again: () => setRound((before) => before + 1),
  };
}

function followed<P, R>(state: OperationState<P, R>): FollowedOperation<P, R> {
  const status = statuses[state.Status];
  return {
    status,
    progress: state.Progress,
    result: status === "completed" ? (state.Result as R | null) : null,
    mistake: status === "failed" ? (state.Result as OperationMistake | null) : null,
    state,
  };
}
