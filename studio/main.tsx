/** The studio begins here. */
import { render } from "preact";
import { useEffect } from "preact/hooks";
import { askIdentity } from "./base/identity.ts";
import { lazy } from "./base/lazy.tsx";
import { address, href, open, startRouter } from "./base/router.ts";
import { startTheme } from "./base/theme.ts";
import { Empty } from "./components/messages.tsx";
import { DatabasesPage } from "./pages/databases.tsx";
import { DocumentsPage } from "./pages/documents.tsx";
import { usePage } from "./shell/page.ts";
import { askServer } from "./shell/server.ts";
import { Shell } from "./shell/shell.tsx";

/** Pages that are loaded when they are opened. */
const DocumentPage = lazy(async () => (await import("./pages/document.tsx")).DocumentPage);
const QueryPage = lazy(async () => (await import("./pages/query/query-page.tsx")).QueryPage);
const IndexesPage = lazy(
  async () => (await import("./pages/indexes/indexes-page.tsx")).IndexesPage,
);
const IndexPage = lazy(async () => (await import("./pages/indexes/index-page.tsx")).IndexPage);

function Page() {
  const [area, name, page, ...rest] = address.value.path;
  if (area === "databases") return <DatabasesPage />;
  if (area === "db" && name !== undefined) {
    if (page === "docs") return <DocumentsPage key={name} database={name} collection={rest[0]} />;
    if (page === "query") return <QueryPage key={name} database={name} />;
    if (page === "indexes") return <IndexesPage key={name} database={name} />;
    if (page === "index") {
      return <IndexPage key={`${name}\n${rest[0] ?? ""}`} database={name} name={rest[0]} />;
    }
    if (page === "doc" && rest[0] !== undefined) {
      return <DocumentPage key={`${name}\n${rest[0]}`} database={name} id={rest[0]} />;
    }
  }
  if (area === undefined) return <Start />;
  return <Unknown />;
}

function Start() {
  useEffect(() => open(href(["databases"]), { replace: true }), []);
  return null;
}

function Unknown() {
  usePage("", [{ text: "Not found" }]);
  return (
    <div class="page">
      <h1 class="hidden-label">Not found</h1>
      <Empty icon="find" title="There is no such page">
        <a href={href(["databases"])}>All databases</a>
      </Empty>
    </div>
  );
}

startTheme();
startRouter();
const root = document.getElementById("app");
if (root !== null) {
  render(
    <Shell>
      <Page />
    </Shell>,
    root,
  );
}
// The pages show what fails here by themselves.
askIdentity().catch(() => undefined);
askServer().catch(() => undefined);
