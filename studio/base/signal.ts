/**
 * Observable values: a component that reads a signal while rendering is rendered again when the signal changes.
 *
 * Invariants:
 * - The rendering component is known from Preact's option hooks for such libraries, whose short names are part of its
 *   interface. A component observes the signals it has read until it is unmounted.
 */
import { type Component, options, type VNode } from "preact";

interface RenderedNode extends VNode {
  /** The component of the node; absent for elements. */
  __c?: Component | null;
}

const hooks = options as typeof options & { __r?: (node: RenderedNode) => void };
const { __r: beforeRender, diffed, unmount } = hooks;
const observed = new WeakMap<Component, Set<Signal<unknown>>>();
let rendered: Component | null = null;

hooks.__r = (node) => {
  beforeRender?.(node);
  rendered = node.__c ?? null;
};
hooks.diffed = (node) => {
  rendered = null;
  diffed?.(node);
};
hooks.unmount = (node: RenderedNode) => {
  unmount?.(node);
  if (node.__c != null) for (const signal of observed.get(node.__c) ?? []) signal.forget(node.__c);
};

class Signal<T> {
  #value: T;
  readonly #components = new Set<Component>();
  readonly #listeners = new Set<(value: T) => void>();

  constructor(value: T) {
    this.#value = value;
  }

  get value(): T {
    if (rendered !== null && !this.#components.has(rendered)) {
      this.#components.add(rendered);
      const signals = observed.get(rendered) ?? new Set();
      observed.set(rendered, signals.add(this as Signal<unknown>));
    }
    return this.#value;
  }

  set value(value: T) {
    if (Object.is(value, this.#value)) return;
    this.#value = value;
    for (const listener of this.#listeners) listener(value);
    for (const component of this.#components) component.setState({});
  }

  /** Returns the value without observing it. */
  peek(): T {
    return this.#value;
  }

  /** Calls `listener` now and after each change; returns a function that unsubscribes. */
  subscribe(listener: (value: T) => void): () => void {
    this.#listeners.add(listener);
    listener(this.#value);
    return () => this.#listeners.delete(listener);
  }

  forget(component: Component): void {
    this.#components.delete(component);
  }
}

export function signal<T>(value: T): Signal<T> {
  return new Signal(value);
}
