/**
 * Exports and imports of databases as `.ravendbdump` files. Each is also an operation: its progress and result can be
 * queried, and it can be cancelled. Replies are those of RavenDB 7.2.7, except that exports are always compressed with
 * gzip, and that a failed import also fails its operation.
 */

import { Readable } from "node:stream";
import { createGzip } from "node:zlib";
import { assert } from "../../../engine/base/assert.ts";
import { EngineError } from "../../../engine/base/errors.ts";
import { exportHeldBytesMax } from "../../../engine/base/limits.ts";
import { collectBytes } from "../../../engine/base/memory/collect-bytes.ts";
import { formatTimestamp } from "../../../engine/base/timestamp.ts";
import {
  checkTransform,
  type Database,
  type DumpOptions,
  parseDumpOptions,
  wholeDump,
} from "../../../engine/engine.ts";
import { dumpText } from "../../databases/dump-body.ts";
import { typed } from "../../databases/operation-reply.ts";
import type { Exchange } from "../../http/exchange.ts";
import { formField } from "../../http/form-field.ts";
import { parseObject } from "../../http/json-body.ts";
import { multipartBoundary, multipartContents } from "../../http/multipart.ts";
import type { ReplyStream } from "../../http/reply-stream.ts";
import type { DatabaseContext, Route } from "../../routing/route.ts";
import { refuseLifting } from "../../routing/script-rights.ts";
import { isAllowed, requirements } from "../../security/access.ts";
import { callerName } from "../../security/caller-name.ts";

const path = "/databases/:database/smuggler";

export const smugglerRoutes: readonly Route[] = [
  { kind: "database", method: "POST", path: `${path}/export`, access: "read", handle: postExport },
  {
    kind: "database",
    method: "POST",
    path: `${path}/import`,
    access: "write",
    isLong: true,
    handle: postImport,
  },
  {
    kind: "database",
    method: "POST",
    path: `${path}/validate-options`,
    access: "read",
    copies: "any",
    handle: postValidateOptions,
  },
];

/** Maximum size of the import options, in bytes. */
const optionsBytesMax = 1024 * 1024;
/** Dumps are long and repetitive: a higher level would take time and gain little. */
const gzipLevel = 3;
/** Size of an output chunk, in bytes. A chunk costs an event-loop tick, and a task on a compression thread. */
const gzipChunkBytes = 256 * 1024;

/** POST smuggler/export?operationId=…, body options (or a form with `DownloadOptions`): replies with the dump */
async function postExport(
  exchange: Exchange,
  { database, server }: DatabaseContext,
): Promise<void> {
  const options = exportOptions(exchange, await exchange.body());
  requireTransform(exchange, options);
  const id = await operationId(exchange, database);
  const started = database.smuggler.startExport(
    id,
    options,
    (dump) => sendDump(exchange, dump, dumpName(database)),
    callerName(server, exchange),
  );
  const { error } = await started.ended;
  if (error === undefined) return;
  if (!exchange.isReplied) throw error;
  // The client must not treat the received part as a complete dump.
  exchange.abort();
}

/** @throws EngineError script-syntax, RequestError if the caller may not raise the step limit */
function requireTransform(exchange: Exchange, options: DumpOptions): void {
  if (checkTransform(options)) refuseLifting(exchange, "MaxStepsForTransformScript");
}

/**
 * Sends a dump, compressed, under the client's back-pressure. The reply begins only after `exportHeldBytesMax` bytes,
 * so that an earlier failure can be reported. @throws operation-cancelled when the client disconnects
 */
async function sendDump(
  exchange: Exchange,
  dump: AsyncGenerator<Buffer>,
  name: string,
): Promise<void> {
  const source = Readable.from(dump, { objectMode: false });
  const gzip = createGzip({ level: gzipLevel, chunkSize: gzipChunkBytes });
  source.on("error", (error) => gzip.destroy(error));
  source.pipe(gzip);
  const begin = (): ReplyStream =>
    exchange.stream(200, {
      "content-type": "application/octet-stream",
      "content-disposition": `attachment; filename=${encodeURIComponent(name)}`,
    });
  let stream: ReplyStream | undefined;
  let held: Buffer[] = [];
  let heldBytes = 0;
  const send = async (): Promise<void> => {
    stream ??= begin();
    for (const chunk of held) await stream.write(chunk);
    held = [];
    if (stream.isClosed) throw clientGone();
  };
  try {
    for await (const chunk of gzip) {
      held.push(chunk as Buffer);
      heldBytes += (chunk as Buffer).length;
      if (exchange.isClosed) throw clientGone();
      if (heldBytes >= exportHeldBytesMax) await send();
    }
    await send();
  } finally {
    source.destroy();
    gzip.destroy();
  }
  await stream?.end();
}

function clientGone(): EngineError {
  return new EngineError(
    "operation-cancelled",
    "The client disconnected before the export was sent.",
  );
}

function dumpName(database: Database): string {
  const now = formatTimestamp(database.nowMicros());
  return `Dump of ${database.name} ${now.slice(0, 10)} ${now.slice(11, 13)}-${now.slice(14, 16)}.ravendbdump`;
}

/** @throws EngineError as `parseDumpOptions`, json-… */
function exportOptions(exchange: Exchange, body: Buffer): DumpOptions {
  const text = formField(exchange, body, "DownloadOptions");
  return parseDumpOptions(text.length === 0 ? {} : parseObject(text));
}

/**
 * POST smuggler/import?operationId=…: multipart with `importOptions` and `file`, or the dump alone as
 * application/octet-stream. Replies with the result once all of it is durable.
 */
async function postImport(exchange: Exchange, context: DatabaseContext): Promise<void> {
  const type = exchange.header("content-type");
  const boundary = multipartBoundary(type);
  if (boundary === undefined) {
    if (!exchange.hasBody || !/^\s*application\/octet-stream/i.test(type ?? "")) {
      const message = "This endpoint requires form content type";
      exchange.replyJson(400, { Type: "Error", Error: message });
      return;
    }
    await importInto(exchange, context, wholeDump, exchange.bodyStream());
    return;
  }
  const parts = multipartContents(exchange.bodyStream(), boundary);
  const sent = await parts.next();
  if (sent.done) throw noFile();
  const sentOptions = await collectBytes(sent.value, optionsBytesMax, optionsTooLarge);
  const options = parseDumpOptions(parseObject(sentOptions));
  requireTransform(exchange, options);
  const file = await parts.next();
  if (file.done) throw noFile();
  await importInto(exchange, context, options, file.value);
}

async function importInto(
  exchange: Exchange,
  { database, server }: DatabaseContext,
  options: DumpOptions,
  source: AsyncIterable<Buffer>,
): Promise<void> {
  const mayAdminister = isAllowed(
    exchange.identity,
    requirements["database-admin"],
    exchange.databaseName,
  );
  const id = await operationId(exchange, database);
  const settings = {
    mayChangeRecord: mayAdminister,
    mayDeployCSharp: mayAdminister,
    nextIndex: () => server.commandIndex.next(),
  };
  const startedBy = callerName(server, exchange);
  const dump = dumpText(source);
  const started = database.smuggler.startImport(id, dump, options, settings, startedBy);
  const { info, error } = await started.ended;
  if (error !== undefined) throw error;
  assert(info.state.status === "completed", "work that throws nothing has a result");
  exchange.replyJson(200, typed("Smuggler.SmugglerResult", info.state.result));
}

/** POST smuggler/validate-options, body options: 204 */
async function postValidateOptions(exchange: Exchange): Promise<void> {
  const options = parseDumpOptions(parseObject(await exchange.body()));
  try {
    checkTransform(options);
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    throw new EngineError("invalid-operation", `Incorrect transform script. ${error.message}`, {
      cause: error,
    });
  }
  exchange.reply(204);
}

async function operationId(exchange: Exchange, database: Database): Promise<number> {
  return exchange.query.long("operationId", undefined) ?? (await database.operations.nextId());
}

function optionsTooLarge(): EngineError {
  return new EngineError("too-large", `Import options have at most ${optionsBytesMax} bytes.`);
}

function noFile(): EngineError {
  return new EngineError(
    "bad-request",
    "An import needs two parts: the options, and the file with the dump.",
  );
}
