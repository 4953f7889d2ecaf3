/** The copy of RavenDB's Studio that a server serves instead of ours. */
import { readFileSync, statSync } from "node:fs";
import { folderFiles, zipFiles } from "../http/file-source.ts";
import { pageHeaders, StaticFiles } from "../http/static-files.ts";
import { StartError } from "../settings/start-error.ts";

/** Additional permissions for RavenDB's Studio: inline styles, functions, workers, and images created from text. */
const policy = [
  "default-src 'self'",
  "script-src 'self' 'unsafe-inline' 'unsafe-eval'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data: blob:",
  "font-src 'self' data:",
  "worker-src 'self' blob:",
  "object-src 'none'",
  "base-uri 'self'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join("; ");
/**
 * Opens the files of the setting Studio.Path, a folder or a zip archive. Returns undefined without the setting.
 *
 * @throws StartError setting-invalid
 */
export function readRavenStudio(path: string | undefined): StaticFiles | undefined {
  if (path === undefined) return undefined;
  try {
    const source = statSync(path).isDirectory() ? folderFiles(path) : zipFiles(readFileSync(path));
    // It exports by posting a form, which has no origin without a referrer, and would be refused.
    const files = new StaticFiles(source, pageHeaders(policy, "same-origin"));
    if (files.has("index.html")) return files;
    throw new Error("it has no index.html");
  } catch (error) {
    throw new StartError(
      "setting-invalid",
      `Studio.Path '${path}' is not a copy of RavenDB's Studio (a folder or Raven.Studio.zip): ${(error as Error).message}`,
    );
  }
}
