/**
 * A menu button (the WAI-ARIA menu button pattern): arrow keys, Home, End and initial letters move; Enter selects;
 * Esc and Tab close and restore the focus. The list is a popover, so that no container clips it.
 */
import type { ComponentChildren } from "preact";
import { useId, useRef, useState } from "preact/hooks";
import { Icon, type IconName } from "./icon.tsx";

export interface MenuItem {
  readonly text: string;
  readonly icon?: IconName;
  /** Note after the text, in grey. */
  readonly note?: string;
  readonly isDangerous?: boolean;
  /** Reason why the item is disabled. */
  readonly refusal?: string | undefined;
  /** True for the selected item of mutually exclusive items. */
  readonly isChecked?: boolean;
  choose(): void;
}

interface Properties {
  /** Label of the button for screen readers; a button without `children` has only an icon. */
  readonly label: string;
  readonly items: readonly MenuItem[];
  readonly icon?: IconName;
  readonly children?: ComponentChildren;
}

const edge = 8;

export function Menu({ label, items, icon = "more", children }: Properties) {
  const id = useId();
  const button = useRef<HTMLButtonElement>(null);
  const list = useRef<HTMLDivElement>(null);
  const [isOpen, setOpen] = useState(false);
  const show = (last = false) => {
    if (button.current === null || list.current === null) return;
    list.current.showPopover();
    place(list.current, button.current.getBoundingClientRect());
    choices(list.current)
      .at(last ? -1 : 0)
      ?.focus();
  };
  const close = () => {
    list.current?.hidePopover();
    button.current?.focus();
  };
  return (
    <>
      <button
        ref={button}
        type="button"
        class={children === undefined ? "btn quiet icon" : "btn quiet"}
        aria-label={children === undefined ? label : undefined}
        title={children === undefined ? label : undefined}
        aria-haspopup="menu"
        aria-expanded={isOpen}
        aria-controls={id}
        onClick={() => (isOpen ? close() : show())}
        onKeyDown={(event) => {
          if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
          event.preventDefault();
          show(event.key === "ArrowUp");
        }}
      >
        {(children === undefined || icon !== "more") && <Icon name={icon} />}
        {children}
        {children !== undefined && <Icon name="down" />}
      </button>
      <div
        ref={list}
        id={id}
        popover="auto"
        role="menu"
        aria-label={label}
        class="menu"
        onToggle={(event) => setOpen((event as ToggleEvent).newState === "open")}
        onKeyDown={(event) => {
          if (event.key === "Tab" || event.key === "Escape") {
            event.preventDefault();
            close();
            return;
          }
          const next = list.current === null ? undefined : moved(list.current, event.key);
          if (next === undefined) return;
          event.preventDefault();
          next.focus();
        }}
      >
        {items.map((item) => (
          <MenuEntry key={item.text} item={item} close={close} />
        ))}
      </div>
    </>
  );
}

function MenuEntry({ item, close }: { item: MenuItem; close: () => void }) {
  const { text, icon, note, isDangerous = false, refusal, isChecked } = item;
  const kind =
    isChecked === undefined
      ? ({ role: "menuitem" } as const)
      : ({ role: "menuitemradio", "aria-checked": isChecked } as const);
  return (
    <button
      type="button"
      {...kind}
      aria-disabled={refusal !== undefined}
      title={refusal}
      tabIndex={-1}
      class={isDangerous ? "danger" : ""}
      onClick={() => {
        if (refusal !== undefined) return;
        close();
        item.choose();
      }}
    >
      {isChecked === undefined ? (
        icon !== undefined && <Icon name={icon} />
      ) : (
        <Icon name="check" kind={isChecked ? "" : "gone"} />
      )}
      <span class="grow">{text}</span>
      {note !== undefined && <small>{note}</small>}
    </button>
  );
}

function choices(list: HTMLElement): HTMLElement[] {
  return [...list.querySelectorAll<HTMLElement>("button")];
}

/** Positions the list below the button, right-aligned, within the window. */
function place(list: HTMLElement, { left, right, top, bottom }: DOMRect): void {
  const { offsetWidth: width, offsetHeight: height } = list;
  const { innerWidth, innerHeight } = window;
  const wanted = left + width + edge <= innerWidth ? left : right - width;
  list.style.left = `${Math.max(edge, Math.min(wanted, innerWidth - width - edge))}px`;
  const isBelow = bottom + height + edge <= innerHeight;
  list.style.top = `${isBelow ? bottom + 4 : Math.max(edge, top - height - 4)}px`;
}

function moved(list: HTMLElement, key: string): HTMLElement | undefined {
  const all = choices(list);
  const at = all.indexOf(document.activeElement as HTMLElement);
  if (key === "ArrowDown") return all[(at + 1) % all.length];
  if (key === "ArrowUp") return all.at(at - 1);
  if (key === "Home") return all[0];
  if (key === "End") return all.at(-1);
  if (key.length !== 1 || key === " ") return undefined;
  const order = [...all.slice(at + 1), ...all.slice(0, at + 1)];
  return order.find((one) => one.textContent?.toLowerCase().startsWith(key.toLowerCase()));
}
