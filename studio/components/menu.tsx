/**
 * A button that opens a list of things to do (the menu button pattern of WAI-ARIA): the arrows, Home, End and first letters
 * move, Enter chooses, Esc and Tab close and give the focus back. The list is a popover, so that no box around it cuts it.
 */
import type { ComponentChildren } from "preact";
import { useId, useRef, useState } from "preact/hooks";
import { Icon, type IconName } from "./icon.tsx";

export interface MenuItem {
  readonly text: string;
  readonly icon?: IconName;
  /** Behind the text, in grey. */
  readonly note?: string;
  readonly isDangerous?: boolean;
  /** Why it cannot be chosen now. */
  readonly refusal?: string | undefined;
  /** It is on, of several that exclude each other. */
  readonly isChecked?: boolean;
  choose(): void;
}

interface Properties {
  /** Of the button, for screen readers; without `children` it has only an icon. */
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

/** Under the button, its right edge at that of the button, as far as the window allows. */
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
