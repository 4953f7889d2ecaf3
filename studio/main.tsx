/** Entry point of the studio. */
import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { lacksCertificate, loadIdentity } from "./base/identity.ts";
import { lazy } from "./base/lazy.tsx";
import { address, href, open, startRouter } from "./base/router.ts";
import { signedOut } from "./base/session.ts";
import { startTheme } from "./base/theme.ts";
import { Empty } from "./components/messages.tsx";
import { DatabasesPage } from "./pages/databases.tsx";
import { database, forgetDatabase } from "./shell/database.ts";
import { databaseNames, loadDatabases } from "./shell/databases.ts";
import { nearestNames } from "./shell/nearest.ts";
import { usePage } from "./shell/page.ts";
import { loadServerInfo } from "./shell/server.ts";
import { Shell } from "./shell/shell.tsx";

/** Pages that are loaded on demand. */
const pages = () => import("./pages/all.ts");
const PatchPage = lazy(async () => (await pages()).PatchPage);
const DocumentsPage = lazy(async () => (await pages()).DocumentsPage);
const DocumentPage = lazy(async () => (await pages()).DocumentPage);
const NewDocument = lazy(async () => (await pages()).NewDocument);
const SignInPage = lazy(async () => (await pages()).SignInPage);
const BackupPage = lazy(async () => (await pages()).BackupPage);
const CertificatesPage = lazy(async () => (await pages()).CertificatesPage);
const PerformancePage = lazy(async () => (await pages()).PerformancePage);
const QueryPage = lazy(async () => (await pages()).QueryPage);
const ClusterPage = lazy(async () => (await pages()).ClusterPage);
const IndexesPage = lazy(async () => (await pages()).IndexesPage);
const IndexPage = lazy(async () => (await pages()).IndexPage);
const SettingsPage = lazy(async () => (await pages()).SettingsPage);
const LogPage = lazy(async () => (await pages()).LogPage);
const SubscriptionsPage = lazy(async () => (await pages()).SubscriptionsPage);

function Page() {
  const [area, name, page, ...rest] = address.value.path;
  if (area === "db" && name !== undefined) {
    // Wait for the list of databases before loading data of a database.
    if (databaseNames.value === undefined) return null;
    if (databaseNames.value?.includes(name) === false) return <UnknownDatabase name={name} />;
  }
  if (area === "databases") return <DatabasesPage />;
  if (area === "performance") return <PerformancePage database={null} />;
  if (area === "cluster") return <ClusterPage />;
  if (area === "certificates") return <CertificatesPage />;
  if (area === "log") return <LogPage />;
  if (area === "db" && name !== undefined) {
    if (page === "docs") return <DocumentsPage key={name} database={name} collection={rest[0]} />;
    if (page === "patch") {
      const operation = rest[0] === undefined ? {} : { operation: rest[0] };
      return <PatchPage key={name} database={name} {...operation} />;
    }
    // Another query in the address is another visit.
    if (page === "query")
      return <QueryPage key={`${name}\n${address.value.visit}`} database={name} />;
    if (page === "indexes") return <IndexesPage key={name} database={name} />;
    if (page === "index") {
      return <IndexPage key={`${name}\n${rest[0] ?? ""}`} database={name} name={rest[0]} />;
    }
    const collection = address.value.query.get("new");
    if (page === "doc" && rest[0] === undefined && collection !== null)
      return (
        <NewDocument
          key={address.value.query.get("from")}
          database={name}
          collection={collection}
        />
      );
    if (page === "performance") return <PerformancePage key={name} database={name} />;
    if (page === "settings") return <SettingsPage key={name} database={name} />;
    if (page === "subscriptions") return <SubscriptionsPage key={name} database={name} />;
    if (page === "backup") return <BackupPage key={name} database={name} />;
    if (page === "doc" && rest[0] !== undefined) {
      return <DocumentPage key={`${name}\n${rest[0]}`} database={name} id={rest[0]} />;
    }
  }
  if (area === undefined || (area === "db" && page === undefined && name !== undefined))
    return <Start />;
  return <Unknown />;
}

/** The pages, for signed-in users. */
function Studio() {
  if (lacksCertificate.value || signedOut.value !== null) return <SignInPage />;
  return (
    <Shell>
      <Page />
    </Shell>
  );
}

/** Redirects addresses without a page. */
function Start() {
  const [, name] = address.value.path;
  const to = name === undefined ? href(["databases"]) : href(["db", name, "docs"]);
  useEffect(() => open(to, { replace: true }), [to]);
  return null;
}

/** Reloads the list once, because the database may have been created since then. */
function UnknownDatabase({ name }: { name: string }) {
  usePage("", [{ text: name }]);
  const [isAsked, setAsked] = useState(false);
  useEffect(() => {
    void loadDatabases().then(() => {
      setAsked(true);
      if (databaseNames.value?.includes(name) === false) forgetDatabase(name);
    });
  }, [name]);
  if (!isAsked) return null;
  return (
    <NotFound
      title={`Database ${name} does not exist`}
      near={nearestNames(name, databaseNames.value ?? []).map((near) => [near, [near, "docs"]])}
    />
  );
}

/** `near`: titles and paths, below `db`, of pages that may be meant. */
function NotFound({ title, near }: { title: string; near: [string, string[]][] }) {
  return (
    <div class="page">
      <h1 class="hidden-label">Not found</h1>
      <Empty icon="find" title={title}>
        <div class="row">
          {near.map(([text, path]) => (
            <a key={text} class="btn" href={href(["db", ...path])}>
              {text}
            </a>
          ))}
          <a class="btn" href={href(["databases"])}>
            All databases
          </a>
        </div>
      </Empty>
    </div>
  );
}

/** Page titles of a database, for suggestions. */
const pageNames: Readonly<Record<string, string>> = { docs: "Documents", query: "Query" };

function Unknown() {
  usePage("", [{ text: "Not found" }]);
  const wanted = address.value.path[address.value.path[0] === "db" ? 2 : 0] ?? "";
  const near = nearestNames(wanted, Object.keys(pageNames)).filter(() => database.value !== null);
  return (
    <NotFound
      title="This page does not exist"
      near={near.map((name) => [pageNames[name] ?? name, [database.value ?? "", name]])}
    />
  );
}

startTheme();
startRouter();
const root = document.getElementById("app");
if (root !== null) {
  render(<Studio />, root);
}
// The pages report errors of this request themselves.
const retryMs = 2000;
function identify(): void {
  // Actions that require access are hidden until the identity is known.
  loadIdentity().catch(() => setTimeout(identify, retryMs));
}
identify();
loadServerInfo().catch(() => undefined);
void loadDatabases();
