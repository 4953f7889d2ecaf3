/** Sample data for learning. Statuses and texts are those of RavenDB 7.2.7. */
import { EngineError } from "../../../engine/base/errors.ts";
import { type DumpOptions, parseDumpOptions, wholeDump } from "../../../engine/engine.ts";
import {
  sampleDump,
  sampleRevisionSettings,
  sampleSeriesSettings,
} from "../../databases/sample-data.ts";
import type { Exchange } from "../../http/exchange.ts";
import type { DatabaseContext, Route } from "../../routing/route.ts";

export const sampleDataRoutes: readonly Route[] = [
  {
    kind: "database",
    method: "POST",
    path: "/databases/:database/studio/sample-data",
    access: "write",
    handle: postSampleData,
  },
];

/**
 * POST studio/sample-data?operateOnTypes=…, which may be repeated; all kinds of items when omitted: 204
 * @throws EngineError invalid-operation when the database has documents, invalid-argument for an unknown kind
 */
async function postSampleData(
  exchange: Exchange,
  { database, server }: DatabaseContext,
): Promise<void> {
  if (database.statistics.counts().CountOfDocuments > 0) {
    throw new EngineError(
      "invalid-operation",
      "You cannot create sample data in a database that already contains documents",
    );
  }
  const options = {
    ...optionsOf(exchange.query.all("operateOnTypes")),
    skipsRevisionCreation: true,
  };
  const index = await server.commandIndex.next();
  await database.changeSettings((record) => ({
    ...record,
    ...(options.types.has("RevisionDocuments") ? { Revisions: sampleRevisionSettings } : {}),
    ...(options.types.has("TimeSeries") ? { TimeSeries: sampleSeriesSettings } : {}),
    ChangedIndex: index,
  }));
  await database.smuggler.import(sampleDump(), options, {
    mayChangeRecord: false,
    mayDeployCSharp: true,
    nextIndex: () => server.commandIndex.next(),
  });
  exchange.reply(204);
}

/** @throws EngineError invalid-argument */
function optionsOf(types: readonly string[]): DumpOptions {
  if (types.length === 0) return wholeDump;
  try {
    return parseDumpOptions({ OperateOnTypes: types.flatMap((words) => words.split(",")) });
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    throw new EngineError("invalid-argument", `Requested value '${types.join()}' was not found.`);
  }
}
