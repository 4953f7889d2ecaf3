/**
 * All pages but the first one. They are one chunk, as together they are a sixth smaller than each by itself; what is large
 * and only some of them need (the editor, the plots) is apart.
 */

export { Palette } from "../shell/palette.tsx";
export { BackupPage } from "./backup.tsx";
export { CertificatesPage } from "./certificates.tsx";
export { ClusterPage } from "./cluster.tsx";
export { DocumentPage } from "./document/document-page.tsx";
export { NewDocument } from "./document/new-document.tsx";
export { DocumentsPage } from "./documents/documents-page.tsx";
export { SignInPage } from "./sign-in.tsx";
export { IndexPage } from "./indexes/index-page.tsx";
export { IndexesPage } from "./indexes/indexes-page.tsx";
export { PatchPage } from "./patch.tsx";
export { PerformancePage } from "./performance.tsx";
export { QueryPage } from "./query/query-page.tsx";
export { SettingsPage } from "./settings.tsx";
