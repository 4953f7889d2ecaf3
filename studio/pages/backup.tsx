/** Backups and schedules, reverting, import, export, sample data. */
import { may } from "../base/identity.ts";
import { address, href, setQuery } from "../base/router.ts";
import { panel, Tabs } from "../components/tabs.tsx";
import { usePage } from "../shell/page.ts";
import { BackupList } from "./backup-list.tsx";
import { ExportForm } from "./export-form.tsx";
import { ImportForm } from "./import-form.tsx";
import { RevertForm } from "./revert-form.tsx";
import { SampleData } from "./sample-data.tsx";

const tabs = [
  { key: "backups", text: "Backups" },
  { key: "import", text: "Import" },
  { key: "export", text: "Export" },
  { key: "revert", text: "Revert" },
  { key: "sample", text: "Sample data" },
] as const;
type TabKey = (typeof tabs)[number]["key"];

export function BackupPage({ database }: { database: string }) {
  usePage("backup", [
    { text: database, to: href(["db", database, "docs"]) },
    { text: "Backup and import" },
  ]);
  const wanted = address.value.query.get("tab");
  // Users with read access can only export.
  const shown = may("write")
    ? tabs
    : tabs.filter(({ key }) => key === "backups" || key === "export");
  const chosen: TabKey = shown.find(({ key }) => key === wanted)?.key ?? "backups";
  return (
    <div class="page fill">
      <h1 class="hidden-label">Backup and import</h1>
      <Tabs
        label="Backup and import"
        name="backup"
        tabs={shown}
        chosen={chosen}
        choose={(tab) => setQuery({ tab })}
      />
      <div class="page scroll" {...panel("backup", chosen)}>
        {chosen === "backups" && <BackupList database={database} />}
        {chosen === "import" && <ImportForm database={database} />}
        {chosen === "export" && <ExportForm database={database} />}
        {chosen === "revert" && <RevertForm database={database} />}
        {chosen === "sample" && <SampleData database={database} />}
      </div>
    </div>
  );
}
