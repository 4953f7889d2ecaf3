/**
 * Polls a server operation every second until it completes or the page is closed. While the server is unreachable,
 * polling continues, because the operation may still be running.
 */
import { useEffect, useState } from "preact/hooks";
import { get, OfflineError } from "./client.ts";

/** Reply of operations/state. Progress and result depend on the type of the operation. */
export interface OperationState<P = OperationCounts, R = OperationCounts> {
  readonly Status: "InProgress" | "Completed" | "Faulted" | "Canceled";
  readonly Progress: P | null;
  /** Result of a completed operation, or the error of a failed operation. */
  readonly Result: R | OperationError | null;
}

/** Counts reported by most operations. */
interface OperationCounts {
  readonly Processed?: number;
  readonly Total?: number;
}

export interface OperationError {
  readonly Type: string;
  readonly Message: string;
}

export interface FollowedOperation<P = OperationCounts, R = OperationCounts> {
  readonly status: "running" | "completed" | "failed" | "cancelled";
  readonly progress: P | null;
  readonly result: R | null;
  /** Error of a failed operation. */
  readonly error: OperationError | null;
  /** The complete reply. */
  readonly state: OperationState<P, R>;
}

const pollMs = 1000;

const statuses = {
  InProgress: "running",
  Completed: "completed",
  Faulted: "failed",
  Canceled: "cancelled",
} as const;

/**
 * Follows the operation at `path`, for example `/databases/shop/operations/state?id=7`; null for none.
 * @returns `operation` is undefined until the first reply; `error` is set if the server no longer knows the operation
 */
export function useOperation<P = OperationCounts, R = OperationCounts>(
  path: string | null,
): {
  readonly operation: FollowedOperation<P, R> | undefined;
  readonly error: Error | undefined;
  /** Polls immediately, even after completion, because the operation may have been restarted. */
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
        timer = setTimeout(ask, pollMs);
        return;
      }
      try {
        const { body } = await get<OperationState<P, R>>(path, abort.signal);
        const operation = followed(body);
        if (abort.signal.aborted) return;
        setHeld({ path, operation });
        if (operation.status === "running") timer = setTimeout(ask, pollMs);
      } catch (error) {
        if (abort.signal.aborted) return;
        if (error instanceof OfflineError) timer = setTimeout(ask, pollMs);
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
    error: status === "failed" ? (state.Result as OperationError | null) : null,
    state,
  };
}
