/** Completed requests of other clients, received over a web socket; the newest are kept. */
import { useEffect, useRef, useState } from "preact/hooks";
import { urlFor } from "./session.ts";

export interface SeenRequest {
  readonly RequestId: number;
  readonly TimeStamp: string;
  readonly DatabaseName: string;
  /** Query text with masked values, or an id; "N/A" for neither. */
  readonly CustomInfo: string;
  readonly CertificateName: string | null;
  readonly ClientIP: string | null;
  readonly HttpMethod: string;
  readonly ElapsedMilliseconds: number;
  readonly ResponseStatusCode: number;
  readonly RequestUri: string;
  readonly ResponseSizeInBytes: number;
  readonly Type: string;
}

const requestsMax = 200;
const drawnMs = 250;
const retryMs = 3_000;

interface Traffic {
  /** Requests, newest first. */
  readonly requests: readonly SeenRequest[];
  /** Number of requests since the page was opened. */
  readonly count: number;
  readonly isOpen: boolean;
}

/**
 * Watches the requests of a database, or of the server if `database` is null. Pauses while the tab is hidden or
 * `isHeld`.
 */
export function useTraffic(database: string | null, isHeld: boolean, isOn: boolean): Traffic {
  const [traffic, setTraffic] = useState<Traffic>({ requests: [], count: 0, isOpen: false });
  const isPaused = useRef(isHeld);
  isPaused.current = isHeld;
  useEffect(() => {
    if (!isOn) return undefined;
    let arrived: SeenRequest[] = [];
    const draw = setInterval(() => {
      if (arrived.length === 0) return;
      const fresh = arrived.reverse();
      arrived = [];
      setTraffic(({ requests, count, isOpen }) => ({
        requests: [...fresh, ...requests].slice(0, requestsMax),
        count: count + fresh.length,
        isOpen,
      }));
    }, drawnMs);
    const stop = watch(
      database,
      (one) => {
        if (!isPaused.current && !isOwn(one)) arrived.push(one);
      },
      (isOpen) => setTraffic((before) => ({ ...before, isOpen })),
    );
    return () => {
      clearInterval(draw);
      stop();
    };
  }, [database, isOn]);
  return traffic;
}

/** Returns true for the periodic requests of the studio itself, which are hidden. */
function isOwn({ RequestUri }: SeenRequest): boolean {
  return /\/(metrics|debug\/queries\/running)(\?|$)/.test(RequestUri);
}

/** Opens the web socket. @returns a function that closes it */
function watch(
  database: string | null,
  seen: (request: SeenRequest) => void,
  opened: (isOpen: boolean) => void,
): () => void {
  let socket: WebSocket | null = null;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isEnded = false;
  const connect = async () => {
    if (document.hidden || socket !== null || isEnded) return;
    const name = database === null ? "" : `?resourceName=${encodeURIComponent(database)}`;
    const path = await urlFor(`/admin/traffic-watch${name}`);
    if (isEnded || socket !== null) return;
    const made = new WebSocket(new URL(path, location.href.replace(/^http/, "ws")));
    socket = made;
    made.onopen = () => opened(true);
    made.onmessage = ({ data }: MessageEvent<string>) => seen(JSON.parse(data) as SeenRequest);
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

/** Returns the request as a curl command; the certificate options are left to the user. */
export function curlOf({ HttpMethod, RequestUri }: SeenRequest): string {
  const quoted = RequestUri.replaceAll("'", "'\\''");
  return `curl --cert client.crt --key client.key -X ${HttpMethod} '${quoted}'`;
}
