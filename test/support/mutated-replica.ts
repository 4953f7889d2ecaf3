/**
 * Mutation tests of the replication protocol: copies with one changed line, which the schedules
 * must detect.
 */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import ts from "typescript";
import type { CreateReplica } from "../simulation/replication-schedules.ts";
import { projectRoot } from "./project-root.ts";

export interface Mutation {
  /** The file in engine/storage/replication/. */
  readonly file: string;
  /** A text that occurs once in the file, and its replacement. */
  readonly from: string;
  readonly to: string;
}

/** @returns a constructor of the mutated replica */
export async function mutatedReplica({ file, from, to }: Mutation): Promise<CreateReplica> {
  const folder = mkdtempSync(join(tmpdir(), "jackdaw-spoiled-"));
  try {
    writeFileSync(join(folder, "package.json"), '{"type":"module"}');
    const names = readdirSync(join(projectRoot, "engine/storage/replication"));
    const all = names.map((name) => `storage/replication/${name}`);
    for (const path of [...all, "base/assert.ts", "base/limits.ts"]) {
      let text = readFileSync(join(projectRoot, "engine", path), "utf8");
      if (path === `storage/replication/${file}`) {
        if (text.split(from).length !== 2)
          throw new Error(`${file} does not contain exactly once: ${from}`);
        text = text.replace(from, to);
      }
      const { outputText } = ts.transpileModule(text, {
        compilerOptions: {
          module: ts.ModuleKind.ESNext,
          target: ts.ScriptTarget.ES2022,
          rewriteRelativeImportExtensions: true,
        },
      });
      mkdirSync(join(folder, path, ".."), { recursive: true });
      writeFileSync(join(folder, path.replace(/\.ts$/, ".js")), outputText);
    }
    const { href } = pathToFileURL(join(folder, "storage/replication/replica.js"));
    const { Replica } = await import(/* @vite-ignore */ href);
    return (options, effects) => new Replica(options, effects);
  } finally {
    rmSync(folder, { recursive: true });
  }
}
