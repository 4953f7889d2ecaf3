/** `jackdaw export` and `import` for RavenDB dumps, through the server's smuggler. */
import { createReadStream, createWriteStream } from "node:fs";
import { rename, rm } from "node:fs/promises";
import { Readable, Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { inDatabase } from "../client.ts";
import type { CommandContext } from "../command.ts";
import { Failure } from "../failure.ts";
import { sizeOfInput } from "../input-file.ts";
import { sizeText } from "../output.ts";
import { ProgressLine } from "../progress.ts";

export async function run(context: CommandContext): Promise<void> {
  if (context.command.name === "export") await exportTo(context);
  else await importFrom(context);
}

/** Exports to a partial file, which is renamed when it is complete. */
async function exportTo(context: CommandContext): Promise<void> {
  const { arguments: given, client, database, options, print, interrupted } = context;
  const [path = ""] = given;
  const collections = options.all("collection");
  const types = options.text("types");
  const response = await client().open(inDatabase(database(), "smuggler/export"), {
    method: "POST",
    body: {
      ...(collections.length === 0 ? {} : { Collections: collections }),
      ...(types === undefined ? {} : { OperateOnTypes: types }),
    },
  });
  const partial = `${path}.partial`;
  const passed = new ByteCounter(context, undefined);
  try {
    await pipeline(response, passed.stream, createWriteStream(partial), { signal: interrupted });
    await rename(partial, path);
  } catch (error) {
    await rm(partial, { force: true });
    if (interrupted.aborted) throw new Failure("interrupted", "Interrupted; no file was written");
    const why = (error as Error).message;
    throw new Failure(
      "failed",
      `The export failed before it was complete (${why}); no file was written`,
      {
        cause: error,
      },
    );
  } finally {
    passed.end();
  }
  const bytes = passed.count;
  print(
    options.is("json")
      ? JSON.stringify({ File: path, Bytes: bytes })
      : `${path}  ${sizeText(bytes)}`,
  );
}

async function importFrom(context: CommandContext): Promise<void> {
  const { arguments: given, client, database, options, print } = context;
  const [path = ""] = given;
  const passed = new ByteCounter(context, await sizeOfInput(path));
  const body = Readable.from(createReadStream(path).pipe(passed.stream));
  try {
    const answer = await client().send(inDatabase(database(), "smuggler/import"), {
      method: "POST",
      headers: { "content-type": "application/octet-stream" },
      body,
    });
    if (options.is("json")) {
      print(answer.text);
      return;
    }
    const { Documents } = JSON.parse(answer.text) as {
      Documents: { ReadCount: number; ErroredCount: number };
    };
    print(`${Documents.ReadCount} documents, ${Documents.ErroredCount} with errors`);
  } finally {
    passed.end();
  }
}

/** Counts bytes in a stream, and shows the progress, the rate, and the remaining time. */
export class ByteCounter {
  count = 0;
  readonly stream: Transform;
  readonly #progress: ProgressLine;

  constructor(context: CommandContext, total: number | undefined) {
    this.#progress = new ProgressLine(context);
    this.stream = new Transform({
      transform: (chunk: Buffer, _encoding, done) => {
        this.count += chunk.length;
        this.#progress.showBytes(this.count, total);
        done(null, chunk);
      },
    });
  }

  end(): void {
    this.#progress.end();
  }
}
