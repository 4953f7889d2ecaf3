/** A button with a panel of choices below it. Esc and a click outside close it. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Icon, type IconName } from "./icon.tsx";

interface Properties {
  readonly text: string;
  readonly icon: IconName;
  /** Renders the content of the panel. */
  children(close: () => void): ComponentChildren;
}

export function Popover({ text, icon, children }: Properties) {
  const [isOpen, setOpen] = useState(false);
  const ref = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const close = () => {
    setOpen(false);
    button.current?.focus();
  };
  useEffect(() => {
    if (!isOpen) return undefined;
    const pressed = (event: PointerEvent) => {
      if (!ref.current?.contains(event.target as Node)) setOpen(false);
    };
    document.addEventListener("pointerdown", pressed);
    return () => document.removeEventListener("pointerdown", pressed);
  }, [isOpen]);
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: handles keys that bubble from the content
    <div
      ref={ref}
      class="popover"
      onKeyDown={(event) => {
        if (event.key !== "Escape" || !isOpen) return;
        event.preventDefault();
        event.stopPropagation();
        close();
      }}
    >
      <button
        ref={button}
        type="button"
        class="btn quiet"
        aria-expanded={isOpen}
        aria-label={text}
        title={text}
        onClick={() => setOpen(!isOpen)}
      >
        <Icon name={icon} />
        <span class="word">{text}</span>
      </button>
      {isOpen && (
        <div class="panel" role="dialog" aria-label={text}>
          {children(close)}
        </div>
      )}
    </div>
  );
}
