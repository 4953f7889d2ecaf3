/** A component in a separate chunk, which is loaded when it is first shown. */
import { type ComponentType, h } from "preact";
import { useEffect, useState } from "preact/hooks";

const retryMs = 2000;

export type LoadFailure = "unreachable" | "updated";

/** Returns why a chunk was not loaded: a missing one belongs to an earlier version of the studio. */
async function loadFailure(): Promise<LoadFailure> {
  const reply = await fetch("/studio/favicon.svg", { cache: "no-store" }).catch(() => null);
  return reply?.ok === true ? "updated" : "unreachable";
}

/** Loads a chunk, again while the server is unreachable. @returns a function that stops it: nothing is called then */
export function loadChunk<T>(
  load: () => Promise<T>,
  loaded: (chunk: T) => void,
  failed: (failure: LoadFailure) => void,
): () => void {
  let isStopped = false;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const attempt = () =>
    load().then(
      (chunk) => {
        if (!isStopped) loaded(chunk);
      },
      async () => {
        const failure = await loadFailure();
        if (isStopped) return;
        failed(failure);
        if (failure === "unreachable") timer = setTimeout(attempt, retryMs);
      },
    );
  void attempt();
  return () => {
    isStopped = true;
    clearTimeout(timer);
  };
}

export function NotLoaded({ failure }: { failure: LoadFailure }) {
  return (
    <p class="note warn" role="alert">
      {failure === "updated"
        ? "The studio was updated. Reload this page."
        : "The server is unreachable. This part of the page is loaded when it is reachable again."}
    </p>
  );
}

export function lazy<P extends object>(load: () => Promise<ComponentType<P>>): ComponentType<P> {
  let loaded: ComponentType<P> | null = null;
  return function Lazy(properties: P) {
    const [component, setComponent] = useState<ComponentType<P> | null>(() => loaded);
    const [failure, setFailure] = useState<LoadFailure | null>(null);
    useEffect(() => {
      const show = (found: ComponentType<P>) => {
        loaded = found;
        setComponent(() => found);
      };
      if (loaded !== null) {
        // Another instance may have loaded it since the first rendering.
        show(loaded);
        return undefined;
      }
      return loadChunk(load, show, setFailure);
    }, []);
    if (component === null && failure !== null) return <NotLoaded failure={failure} />;
    return component === null ? null : h(component, properties);
  };
}
