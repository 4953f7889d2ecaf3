/** A component in a separate chunk, which is loaded when it is first shown. */
import { type ComponentType, h } from "preact";
import { useEffect, useState } from "preact/hooks";

export function lazy<P extends object>(load: () => Promise<ComponentType<P>>): ComponentType<P> {
  let loaded: ComponentType<P> | null = null;
  return function Lazy(properties: P) {
    const [component, setComponent] = useState<ComponentType<P> | null>(() => loaded);
    const [error, setError] = useState<Error | null>(null);
    useEffect(() => {
      if (loaded !== null) return;
      load().then((found) => {
        loaded = found;
        setComponent(() => found);
      }, setError);
    }, []);
    // A missing chunk belongs to an earlier version of the studio.
    if (error !== null) return <p class="note warn">The studio was updated. Reload this page.</p>;
    return component === null ? null : h(component, properties);
  };
}
