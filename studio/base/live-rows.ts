/** Messages of a web socket as rows; the newest are kept. */
import { useEffect, useRef, useState } from "preact/hooks";
import { socketAddress } from "./socket-address.ts";

const drawnMs = 250;
const retryMs = 3_000;

interface LiveRows<T> {
  /** Rows, newest first. */
  readonly rows: readonly T[];
  /** Number of rows since the page was opened. */
  readonly count: number;
  readonly isOpen: boolean;
}

/**
 * Receives rows from the web socket at `path`; null for none. Pauses while the tab is hidden.
 * @param rowsMax number of rows that are kept @param isWanted returns false for a row to drop on arrival
 */
export function useLiveRows<T>(
  path: string | null,
  rowsMax: number,
  isWanted: (row: T) => boolean,
): LiveRows<T> {
  const [live, setLive] = useState<LiveRows<T>>({ rows: [], count: 0, isOpen: false });
  const latest = useRef(isWanted);
  latest.current = isWanted;
  useEffect(() => {
    if (path === null) return undefined;
    let arrived: T[] = [];
    const draw = setInterval(() => {
      if (arrived.length === 0) return;
      const fresh = arrived.reverse();
      arrived = [];
      setLive(({ rows, count, isOpen }) => ({
        rows: [...fresh, ...rows].slice(0, rowsMax),
        count: count + fresh.length,
        isOpen,
      }));
    }, drawnMs);
    const stop = watch(
      path,
      (text) => {
        const row = JSON.parse(text) as T;
        if (latest.current(row)) arrived.push(row);
      },
      (isOpen) => setLive((before) => ({ ...before, isOpen })),
    );
    return () => {
      clearInterval(draw);
      stop();
    };
  }, [path, rowsMax]);
  return live;
}

/** Opens the web socket. @returns a function that closes it */
function watch(
  path: string,
  received: (text: string) => void,
  opened: (isOpen: boolean) => void,
): () => void {
  let socket: WebSocket | null = null;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isEnded = false;
  const connect = async () => {
    if (document.hidden || socket !== null || isEnded) return;
    const address = await socketAddress(path);
    if (isEnded || socket !== null) return;
    const made = new WebSocket(address);
    socket = made;
    made.onopen = () => opened(true);
    made.onmessage = ({ data }: MessageEvent<string>) => received(data);
    made.onclose = () => {
      socket = null;
      opened(false);
      if (!isEnded) timer = setTimeout(again, retryMs);
    };
  };
  const again = () => void connect().catch(() => undefined);
  const changed = () => {
    if (document.hidden) socket?.close();
    else again();
  };
  document.addEventListener("visibilitychange", changed);
  again();
  return () => {
    isEnded = true;
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", changed);
    socket?.close();
  };
}
