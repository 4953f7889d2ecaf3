/** An icon of the sprite in index.html, hidden from screen readers. */
export type IconName =
  | "mark"
  | "dbs"
  | "doc"
  | "query"
  | "patch"
  | "index"
  | "perf"
  | "backup"
  | "cert"
  | "gear"
  | "find"
  | "plus"
  | "x"
  | "down"
  | "more"
  | "check"
  | "warn"
  | "bad"
  | "clock"
  | "run"
  | "play"
  | "pause"
  | "link"
  | "copy"
  | "cols"
  | "moon"
  | "user"
  | "clip"
  | "menu"
  | "hint"
  | "file"
  | "disk"
  | "nodes"
  | "feed"
  | "log";

export function Icon({ name, kind = "" }: { name: IconName; kind?: string }) {
  return (
    <svg class={`i ${kind}`} aria-hidden="true">
      <use href={`#i-${name}`} />
    </svg>
  );
}
