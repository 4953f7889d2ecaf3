/**
 * `vitest run` tests the TypeScript; `vitest run --mode dist` tests what tsc built, which is what c8 measures.
 * With VITEST_JSON_REPORT=FILE the counts are written there too, for .ci/run.
 */
import { defineConfig } from "vitest/config";

const report = process.env["VITEST_JSON_REPORT"];

export default defineConfig(({ mode }) => {
  const built = mode === "dist";
  return {
    test: {
      pool: "forks",
      include: [built ? "dist/test/**/*.test.js" : "test/**/*.test.ts"],
      exclude: ["node_modules/**"],
      setupFiles: built ? ["dist/test/support/flush-coverage.js"] : [],
      server: { deps: { external: [/\/dist\//] } },
      testTimeout: 30_000,
      reporters: report === undefined ? ["default"] : ["default", "json"],
      ...(report === undefined ? {} : { outputFile: { json: report } }),
    },
  };
});
