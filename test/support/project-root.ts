/** The project folder, for tests in TypeScript and for their output under dist/. */
import { fileURLToPath } from "node:url";

/** Ends with a slash. */
export const projectRoot = fileURLToPath(
  new URL(import.meta.url.endsWith(".js") ? "../../../" : "../../", import.meta.url),
);
