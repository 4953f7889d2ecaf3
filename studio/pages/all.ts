/**
 * All pages except the first. They share one chunk, which is a sixth smaller than separate chunks; large parts that
 * only some pages need (the editor, the plots) are separate.
 */

export { Palette } from "../shell/palette.tsx";
export { BackupPage } from "./backup.tsx";
export { CertificatesPage } from "./certificates.tsx";
export { ClusterPage } from "./cluster.tsx";
export { DocumentPage } from "./document/document-page.tsx";
export { NewDocument } from "./document/new-document.tsx";
export { DocumentsPage } from "./documents/documents-page.tsx";
export { IndexPage } from "./indexes/index-page.tsx";
export { IndexesPage } from "./indexes/indexes-page.tsx";
export { LogPage } from "./log.tsx";
export { PatchPage } from "./patch.tsx";
export { PerformancePage } from "./performance.tsx";
export { QueryPage } from "./query/query-page.tsx";
export { ServerRestore } from "./restore-from.tsx";
export { SettingsPage } from "./settings.tsx";
export { SignInPage } from "./sign-in.tsx";
export { SubscriptionsPage } from "./subscriptions/subscriptions-page.tsx";
