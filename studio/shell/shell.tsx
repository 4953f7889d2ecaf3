/** The frame around every page: bar, sidebar, state line; at small widths tabs at the bottom. */
import type { ComponentChildren } from "preact";
import { connection } from "../base/client.ts";
import { milliseconds } from "../base/format.ts";
import { identity } from "../base/identity.ts";
import { href } from "../base/router.ts";
import { switchTheme } from "../base/theme.ts";
import { Icon, type IconName } from "../components/icon.tsx";
import { database } from "./database.ts";
import { type Crumb, crumbs, pageName } from "./page.ts";
import { server } from "./server.ts";

export function Shell({ children }: { children: ComponentChildren }) {
  return (
    <>
      <a class="skip" href="#main">
        Skip to content
      </a>
      <div
        class="shell"
        data-page={pageName.value}
        data-level={database.value === null ? "none" : "database"}
      >
        <Bar />
        <Side />
        <main class="main" id="main" tabIndex={-1}>
          {children}
        </main>
        <Foot />
        <BottomTabs />
      </div>
    </>
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
          <CrumbPart key={crumb.text} crumb={crumb} isFirst={n === 0} />
        ))}
      </nav>
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
            who.clearance ?? "No certificates: everybody who reaches this address may do everything"
          }
        >
          <Icon name="user" />
          <b>{who.name}</b>
        </span>
      )}
    </header>
  );
}

function CrumbPart({ crumb: { text, to }, isFirst }: { crumb: Crumb; isFirst: boolean }) {
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
  { page: "indexes", text: "Indexes", icon: "index" },
];
const serverEntries: readonly Entry[] = [{ page: "databases", text: "Databases", icon: "dbs" }];

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

function Foot() {
  const { isOnline, last } = connection.value;
  const version = server.value?.version;
  return (
    <footer class="foot">
      {isOnline ? (
        <span class="ok">
          <Icon name="check" />
          <span class="soft">Connected</span>
        </span>
      ) : (
        <span class="bad" role="alert">
          <Icon name="bad" />
          Not connected
        </span>
      )}
      <span class="grow" />
      {last !== null && (
        <span>
          {last.what} · {milliseconds(last.ms)}
        </span>
      )}
      {version !== undefined && <span>Jackdaw, speaks {version}</span>}
    </footer>
  );
}

function BottomTabs() {
  const name = database.value;
  const entries = name === null ? serverEntries : [...databaseEntries, ...serverEntries];
  return (
    <nav class="tabs-bottom" aria-label="Pages">
      {entries.map(({ page, text, icon }) => (
        <a
          key={page}
          href={
            serverEntries.some((entry) => entry.page === page)
              ? href([page])
              : href(["db", name ?? "", page])
          }
          aria-current={pageName.value === page ? "page" : undefined}
        >
          <Icon name={icon} />
          {text}
        </a>
      ))}
    </nav>
  );
}
