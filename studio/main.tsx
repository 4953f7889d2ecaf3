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
const PatchPage = lazy(async () => (await import("./pages/patch.tsx")).PatchPage);
const QueryPage = lazy(async () => (await import("./pages/query.tsx")).QueryPage);

function Page() {
  const [area, name, page, ...rest] = address.value.path;
  if (area === "databases") return <DatabasesPage />;
  if (area === "db" && name !== undefined) {
    if (page === "docs") return <DocumentsPage key={name} database={name} collection={rest[0]} />;
    if (page === "patch") {
      const operation = rest[0] === undefined ? {} : { operation: rest[0] };
      return <PatchPage key={name} database={name} {...operation} />;
    }
    if (page === "query") return <QueryPage key={name} database={name} />;
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
