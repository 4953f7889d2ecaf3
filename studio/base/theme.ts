/** Light or dark theme: the system's preference, unless the user selects one. */
import { signal } from "@preact/signals";

type Theme = "light" | "dark";

const key = "jackdaw-theme";
const system = window.matchMedia("(prefers-color-scheme: dark)");

function first(): Theme {
  const chosen = localStorage.getItem(key);
  if (chosen === "light" || chosen === "dark") return chosen;
  return system.matches ? "dark" : "light";
}

export const theme = signal<Theme>(first());

export function switchTheme(): void {
  theme.value = theme.peek() === "dark" ? "light" : "dark";
  localStorage.setItem(key, theme.peek());
}

export function startTheme(): void {
  theme.subscribe((now) => {
    document.documentElement.dataset["theme"] = now;
  });
  system.addEventListener("change", () => {
    if (localStorage.getItem(key) === null) theme.value = first();
  });
}
