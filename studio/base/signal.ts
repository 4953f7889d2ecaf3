/**
 * Values that pages follow: a component that reads one while it is rendered is rendered again when it changes.
 *
 * Invariants:
 * - Who is rendered is known from the hooks that Preact has for such libraries (their short names are part of its
 *   interface); a component follows what it has read until it is gone.
 */
import { type Component, options, type VNode } from "preact";

interface RenderedNode extends VNode {
  /** The component of the node; none where it is an element. */
  __c?: Component | null;
}

const hooks = options as typeof options & { __r?: (node: RenderedNode) => void };
const { __r: beforeRender, diffed, unmount } = hooks;
const followed = new WeakMap<Component, Set<Signal<unknown>>>();
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
  if (node.__c != null) for (const signal of followed.get(node.__c) ?? []) signal.forget(node.__c);
};

export class Signal<T> {
  #value: T;
  readonly #components = new Set<Component>();
  readonly #listeners = new Set<(value: T) => void>();

  constructor(value: T) {
    this.#value = value;
  }

  get value(): T {
    if (rendered !== null && !this.#components.has(rendered)) {
      this.#components.add(rendered);
      const signals = followed.get(rendered) ?? new Set();
      followed.set(rendered, signals.add(this as Signal<unknown>));
    }
    return this.#value;
  }

  set value(value: T) {
    if (Object.is(value, this.#value)) return;
    this.#value = value;
    for (const listener of this.#listeners) listener(value);
    for (const component of this.#components) component.setState({});
  }

  /** Without following it. */
  peek(): T {
    return this.#value;
  }

  /** Calls `listener` now, and whenever the value changes; the result ends that. */
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
