/** The folder of the project, for tests in TypeScript and for what tsc built of them under dist/. */
import { fileURLToPath } from "node:url";

/** Ends with a slash. */
export const projectRoot = fileURLToPath(
  new URL(import.meta.url.endsWith(".js") ? "../../../" : "../../", import.meta.url),
);
