/**
 * Data that a page loads from the server: fetched when the page appears or its path changes, aborted when the page is
 * removed. Previous data remains visible while newer data is loading.
 */
import { useEffect, useRef, useState } from "preact/hooks";
import { get } from "./client.ts";

interface Resource<T> {
  readonly body: T | undefined;
  readonly etag: string | null;
  readonly error: Error | undefined;
  readonly isLoading: boolean;
  reload(): void;
}

interface Held<T> {
  readonly path: string | null;
  readonly body: T | undefined;
  readonly etag: string | null;
  readonly error: Error | undefined;
}

/** Loads `path`; null loads nothing. `everyMs` is the reload interval while the tab is visible, in milliseconds. */
export function useResource<T>(path: string | null, everyMs = 0): Resource<T> {
  const [held, setHeld] = useState<Held<T>>({
    path: null,
    body: undefined,
    etag: null,
    error: undefined,
  });
  const [round, setRound] = useState(0);
  const loading = useRef(true);
  useEffect(() => {
    if (path === null) return undefined;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const abort = new AbortController();
    const load = async () => {
      loading.current = true;
      try {
        const { body, etag } = await get<T>(path, abort.signal);
        if (!abort.signal.aborted) setHeld({ path, body, etag, error: undefined });
      } catch (error) {
        if (abort.signal.aborted) return;
        setHeld((before) => ({
          path,
          body: before.path === path ? before.body : undefined,
          etag: null,
          error: error as Error,
        }));
      } finally {
        loading.current = false;
      }
      if (everyMs > 0 && !abort.signal.aborted) timer = setTimeout(again, everyMs);
    };
    const again = () => {
      if (document.hidden) timer = setTimeout(again, everyMs);
      else void load();
    };
    void load();
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, [path, round, everyMs]);
  const isOf = held.path === path;
  return {
    body: isOf ? held.body : undefined,
    etag: isOf ? held.etag : null,
    error: isOf ? held.error : undefined,
    isLoading: !isOf,
    reload: () => setRound((before) => before + 1),
  };
}
