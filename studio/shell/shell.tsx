/** The shell of every page: top bar, sidebar, state line; on narrow screens, tabs at the bottom. */
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { when } from "../base/format.ts";
import { identity } from "../base/identity.ts";
import { lazy } from "../base/lazy.tsx";
import { address, href, open } from "../base/router.ts";
import { switchTheme } from "../base/theme.ts";
import { Icon, type IconName } from "../components/icon.tsx";
import { Menu } from "../components/menu.tsx";
import { Toasts } from "../components/toast.tsx";
import { database } from "./database.ts";
import { databaseNames } from "./databases.ts";
import { pageKeys, palette, useKeys } from "./keys.ts";
import { type Crumb, crumbs, pageName } from "./page.ts";
import { StateLine } from "./state-line.tsx";

const loadPalette = async () => (await import("../pages/all.ts")).Palette;
const Palette = lazy(loadPalette);
/** Delay before the palette is preloaded, in milliseconds. */
const paletteAfterMs = 1000;

export function Shell({ children }: { children: ComponentChildren }) {
  const name = database.value;
  const pages = entriesOf(name);
  useEffect(() => {
    // If preloading fails, the palette is loaded when it is opened.
    setTimeout(() => loadPalette().catch(() => undefined), paletteAfterMs);
  }, []);
  useKeys(Object.fromEntries(pages.map(({ page, to }) => [page, to])));
  return (
    <>
      <a class="skip" href="#main">
        Skip to content
      </a>
      <div
        class="shell"
        data-page={pageName.value}
        data-level={name === null ? "none" : "database"}
      >
        <Bar />
        <Unsecured />
        <Side />
        <main class="main" id="main" tabIndex={-1}>
          {children}
        </main>
        <StateLine />
        <BottomTabs />
      </div>
      <p class="hidden-label" role="status">
        {crumbs.value.at(-1)?.text}
      </p>
      <Toasts />
      {palette.value !== null && (
        <Palette
          key={palette.value}
          database={name}
          pages={pages.map(({ page, text, icon, to }) => ({
            group: "Go to",
            text,
            icon,
            note: pageKeys[page] === undefined ? "page" : `g ${pageKeys[page]}`,
            to,
          }))}
        />
      )}
    </>
  );
}

/** Returns the pages with their addresses. */
function entriesOf(name: string | null) {
  const own = name === null ? [] : databaseEntries;
  return [
    ...own.map((entry) => ({ ...entry, to: href(["db", name ?? "", entry.page]) })),
    ...serverEntries.map((entry) => ({ ...entry, to: href([entry.page]) })),
  ];
}

/** Warning if the server requires no certificates. */
function Unsecured() {
  if (identity.value === null || identity.value.clearance !== null) return null;
  const { hostname } = window.location;
  const isLocal = /^(localhost|127\..*|\[::1\])$/.test(hostname);
  return (
    <p class="unsecured">
      <Icon name="warn" />
      <span>
        <b>No encryption and no certificates: anyone who can reach this address has full access.</b>{" "}
        {isLocal && `It was opened at ${hostname}, on this machine.`}
      </span>
    </p>
  );
}

function Bar() {
  const who = identity.value;
  return (
    <header class="bar">
      <a class="brand" href={href(["databases"])} aria-label="Jackdaw, all databases">
        <svg viewBox="0 0 22 22" aria-hidden="true">
          <use href="#i-mark" />
        </svg>
        <span>Jackdaw</span>
      </a>
      <nav class="crumbs" aria-label="You are here">
        {crumbs.value.map((crumb, n) => (
          <CrumbPart key={`${crumb.text} ${n}`} crumb={crumb} isFirst={n === 0} />
        ))}
      </nav>
      <button
        type="button"
        class="find"
        aria-label="Search or run"
        aria-haspopup="dialog"
        onClick={() => {
          palette.value = "";
        }}
      >
        <Icon name="find" />
        <span class="grow">Search or run…</span>
        <kbd>Ctrl K</kbd>
      </button>
      <button
        type="button"
        class="btn quiet icon"
        aria-label="Colours: light or dark"
        onClick={switchTheme}
      >
        <Icon name="moon" />
      </button>
      {who !== null && (
        <span
          class="who"
          title={
            who.clearance === null
              ? "No certificates: anyone who can reach this address has full access"
              : `${who.clearance}${who.notAfter === null ? "" : `, until ${when(who.notAfter)}`}`
          }
        >
          <Icon name="user" />
          <b>{who.name}</b>
        </span>
      )}
    </header>
  );
}

/** Switches from a database to another one. */
function Switcher({ name }: { name: string }) {
  const names = databaseNames.value ?? [name];
  return (
    <Menu
      label={`Database ${name}: another one`}
      items={[
        ...names.map((one) => ({
          text: one,
          isChecked: one === name,
          choose: () => open(href(["db", one, "docs"])),
        })),
        { text: "All databases", icon: "dbs" as const, choose: () => open(href(["databases"])) },
      ]}
    >
      {name}
    </Menu>
  );
}

function CrumbPart({ crumb: { text, to }, isFirst }: { crumb: Crumb; isFirst: boolean }) {
  const [area, name] = address.value.path;
  if (isFirst && area === "db" && text === name) return <Switcher name={name} />;
  return (
    <>
      {!isFirst && <i aria-hidden="true">/</i>}
      {to === undefined ? <span aria-current="page">{text}</span> : <a href={to}>{text}</a>}
    </>
  );
}

interface Entry {
  readonly page: string;
  readonly text: string;
  readonly icon: IconName;
}

const databaseEntries: readonly Entry[] = [
  { page: "docs", text: "Documents", icon: "doc" },
  { page: "query", text: "Query", icon: "query" },
  { page: "patch", text: "Patch", icon: "patch" },
  { page: "indexes", text: "Indexes", icon: "index" },
  { page: "subscriptions", text: "Subscriptions", icon: "feed" },
  { page: "performance", text: "Performance", icon: "perf" },
  { page: "backup", text: "Backup and import", icon: "backup" },
  { page: "settings", text: "Settings", icon: "gear" },
];
const serverEntries: readonly Entry[] = [
  { page: "databases", text: "Databases", icon: "dbs" },
  { page: "cluster", text: "Cluster", icon: "nodes" },
  { page: "certificates", text: "Certificates", icon: "cert" },
  { page: "log", text: "Log", icon: "log" },
];

function Side() {
  const name = database.value;
  return (
    <nav class="side" aria-label="Pages">
      {name !== null && <h3>{name}</h3>}
      {name !== null &&
        databaseEntries.map((entry) => (
          <SideLink key={entry.page} entry={entry} to={href(["db", name, entry.page])} />
        ))}
      <div class="spring" />
      <h3>Server</h3>
      {serverEntries.map((entry) => (
        <SideLink key={entry.page} entry={entry} to={href([entry.page])} />
      ))}
    </nav>
  );
}

function SideLink({ entry: { page, text, icon }, to }: { entry: Entry; to: string }) {
  return (
    <a href={to} title={text} aria-current={pageName.value === page ? "page" : undefined}>
      <Icon name={icon} />
      <span>{text}</span>
    </a>
  );
}

/** Maximum number of bottom tabs; other pages are in the menu "More". */
const bottomMax = 5;

function BottomTabs() {
  const entries = entriesOf(database.value);
  const hasMore = entries.length > bottomMax;
  const shown = hasMore ? entries.slice(0, bottomMax - 1) : entries;
  return (
    <nav class="tabs-bottom" aria-label="Pages">
      {shown.map(({ page, text, icon, to }) => (
        <a key={page} href={to} aria-current={pageName.value === page ? "page" : undefined}>
          <Icon name={icon} />
          {text}
        </a>
      ))}
      {hasMore && (
        <Menu
          label="More pages"
          icon="menu"
          items={entries.slice(bottomMax - 1).map(({ text, icon, to }) => ({
            text,
            icon,
            choose: () => open(to),
          }))}
        >
          More
        </Menu>
      )}
    </nav>
  );
}
