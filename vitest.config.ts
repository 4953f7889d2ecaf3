/** `vitest run` tests the TypeScript; `vitest run --mode dist` tests what tsc built, which is what c8 measures. */
import { defineConfig } from "vitest/config";

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
    },
  };
});
