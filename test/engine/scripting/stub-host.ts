/** A script host without a database: it finds nothing and records all calls. */

import { EngineError } from "../../../engine/base/errors.ts";
import type { ScriptHost } from "../../../engine/scripting/script-host.ts";
import { ScriptDocument } from "../../../engine/scripting/values/script-document.ts";

export interface StubHost extends ScriptHost {
  readonly outputs: string[];
  readonly puts: { id: string | null; body: string; metadata: string | null }[];
  readonly documents: Map<string, string>;
}

export function stubHost(readOnly = false): StubHost {
  const outputs: string[] = [];
  const puts: { id: string | null; body: string; metadata: string | null }[] = [];
  const documents = new Map<string, string>();
  return {
    readOnly,
    outputs,
    puts,
    documents,
    now: () => 1_700_000_000_000,
    random: () => 0.5,
    load(id) {
      const body = documents.get(id);
      return body === undefined
        ? null
        : ScriptDocument.fromText(body, '{"@collection":"Users"}', id);
    },
    put(id, body, metadata) {
      puts.push({ id, body, metadata });
      return id ?? "made";
    },
    delete: () => false,
    counter: () => null,
    counterParts: () => null,
    incrementCounter: () => undefined,
    deleteCounter: () => undefined,
    timeSeries() {
      throw new EngineError("not-supported", "no time series here");
    },
    compareExchange: () => null,
    include: () => undefined,
    includeCompareExchange: () => undefined,
    output: (text) => void outputs.push(text),
  };
}
