/** `jackdaw export` and `import`: a database as a RavenDB dump, through the server's smuggler. */
import { createReadStream, createWriteStream } from "node:fs";
import { rename, rm, stat } from "node:fs/promises";
import { Readable, Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { inDatabase } from "../client.ts";
import type { Surroundings } from "../command.ts";
import { Failure } from "../failure.ts";
import { unreadable } from "../input-file.ts";
import { sizeText } from "../output.ts";
import { ProgressLine } from "../progress.ts";

export async function run(surroundings: Surroundings): Promise<void> {
  if (surroundings.command.name === "export") await exportTo(surroundings);
  else await importFrom(surroundings);
}

/** The file has its name only when it is whole. */
async function exportTo(surroundings: Surroundings): Promise<void> {
  const { arguments: given, client, database, options, print, interrupted } = surroundings;
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
  const passed = new PassedBytes(surroundings, undefined);
  try {
    await pipeline(response, passed.stream, createWriteStream(partial), { signal: interrupted });
    await rename(partial, path);
  } catch (error) {
    await rm(partial, { force: true });
    if (interrupted.aborted) throw new Failure("interrupted", "Interrupted; no file was written");
    const why = (error as Error).message;
    throw new Failure(
      "failed",
      `The export ended before it was whole (${why}); no file was written`,
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

async function importFrom(surroundings: Surroundings): Promise<void> {
  const { arguments: given, client, database, options, print } = surroundings;
  const [path = ""] = given;
  let total: number;
  try {
    total = (await stat(path)).size;
  } catch (error) {
    throw unreadable(path, error);
  }
  const passed = new PassedBytes(surroundings, total);
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

/** Counts bytes on their way, and shows how many there were, how fast, and how long it will take. */
export class PassedBytes {
  count = 0;
  readonly stream: Transform;
  readonly #progress: ProgressLine;

  constructor(surroundings: Surroundings, total: number | undefined) {
    this.#progress = new ProgressLine(surroundings);
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
