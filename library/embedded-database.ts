/**
 * A database of the embedded engine. Each call looks up the open database by name: a database that stopped is
 * reopened as a new object.
 */
import { EngineError, type Database as OpenDatabase, type PatchResult } from "../engine/engine.ts";
import { openAttachment } from "./attachments.ts";
import { runBatch } from "./batches.ts";
import { ChangeStream } from "./change-stream.ts";
import { changeCounter, countersOf } from "./counters.ts";
import { exportedDump, importDump } from "./dumps.ts";
import { EmbeddedQuery } from "./embedded-query.ts";
import type {
  Attachment,
  AttachmentFacts,
  AttachmentOptions,
  Change,
  ChangesOptions,
  Command,
  CommandResult,
  Database,
  DeleteOptions,
  Document,
  DumpOptions,
  JsonObject,
  Patched,
  PatchOptions,
  PutOptions,
  Query,
  QueryOptions,
  Stored,
} from "./surface.ts";
import { expectedText, membersText, textOf } from "./texts.ts";

export type { OpenDatabase };

type Found = OpenDatabase | undefined;

export class EmbeddedDatabase implements Database {
  readonly name: string;
  readonly #find: () => Found | Promise<Found>;
  readonly #life: AbortSignal;

  /** `life` is aborted when the engine is closed. */
  constructor(name: string, find: () => Found | Promise<Found>, life: AbortSignal) {
    this.name = name;
    this.#find = find;
    this.#life = life;
  }

  /** Returns the open database. @throws EngineError database-missing when it was deleted */
  readonly #open = async (finding = this.#find()): Promise<OpenDatabase> => {
    const found = await finding;
    if (found !== undefined) return found;
    throw new EngineError("database-missing", `Database '${this.name}' does not exist.`);
  };

  async get<T = JsonObject>(id: string): Promise<Document<T> | null> {
    const text = await this.getText(id);
    return text === null ? null : (JSON.parse(text) as Document<T>);
  }

  async getText(id: string): Promise<string | null> {
    const { documents } = await this.#open();
    return (await documents.text(id))?.toString() ?? null;
  }

  async put(id: string, document: object | string, options: PutOptions = {}): Promise<Stored> {
    const { collection, expected } = options;
    const text = textOf(document, collection);
    const database = await this.#open();
    const stored = await database.documents.put(id, Buffer.from(text), expectedText(expected));
    return { id: stored.id, collection: stored.collection, changeVector: stored.changeVector };
  }

  async delete(id: string, { expected }: DeleteOptions = {}): Promise<boolean> {
    const { documents } = await this.#open();
    return await documents.delete(id, expected);
  }

  async patch<T = JsonObject>(
    id: string,
    script: string,
    { args = {}, expected, orCreate }: PatchOptions = {},
  ): Promise<Patched<T>> {
    const request = {
      id,
      patch: { script, values: membersText(args) },
      createIfMissing: orCreate === undefined ? undefined : JSON.stringify(orCreate),
      expectedChangeVector: expected,
    };
    const { patches } = await this.#open();
    const result = await patches.run(request);
    const status = patchStatuses[result.status];
    // Read without the metadata that the write itself would add.
    const document = status === "missing" ? null : await this.get<T>(id);
    return { status, document };
  }

  async batch(commands: readonly Command[]): Promise<CommandResult[]> {
    return await runBatch(await this.#open(), commands);
  }

  query<T = JsonObject>(
    rql: string,
    parameters: Readonly<Record<string, unknown>> = {},
    options: QueryOptions = {},
  ): Query<T> {
    return new EmbeddedQuery<T>(this.#open, rql, parameters, options);
  }

  changes(options: ChangesOptions = {}): AsyncIterableIterator<Change> {
    const stream = new ChangeStream(options, this.#life);
    const found = this.#find();
    // The database is usually open: subscribing now includes writes that follow this call.
    if (found !== undefined && !(found instanceof Promise)) stream.follow(found);
    else this.#open(found).then((database) => stream.follow(database), stream.fail);
    return stream;
  }

  async incrementCounter(id: string, name: string, by: number | bigint = 1): Promise<bigint> {
    const { counters } = await this.#open();
    return await changeCounter(counters, id, name, by);
  }

  async counters(id: string): Promise<Record<string, bigint>> {
    const { counters } = await this.#open();
    return countersOf(counters, id);
  }

  async deleteCounter(id: string, name: string): Promise<boolean> {
    const { counters } = await this.#open();
    return await counters.delete(id, name);
  }

  async putAttachment(
    id: string,
    name: string,
    content: Uint8Array | AsyncIterable<Uint8Array>,
    { contentType = "" }: AttachmentOptions = {},
  ): Promise<AttachmentFacts> {
    const { attachments } = await this.#open();
    const source = content instanceof Uint8Array ? [content] : content;
    return await attachments.put({ id, name }, contentType, source);
  }

  async attachment(id: string, name: string): Promise<Attachment | null> {
    const { attachments } = await this.#open();
    return openAttachment(attachments, id, name);
  }

  async deleteAttachment(id: string, name: string): Promise<boolean> {
    const { attachments } = await this.#open();
    return await attachments.delete({ id, name });
  }

  async settings(): Promise<JsonObject> {
    const { settings } = await this.#open();
    return structuredClone(settings);
  }

  async changeSettings(change: (settings: JsonObject) => JsonObject): Promise<JsonObject> {
    const database = await this.#open();
    return await database.changeSettings((settings) => change(structuredClone(settings)));
  }

  async *exportDump(options: DumpOptions = {}): AsyncGenerator<Uint8Array> {
    yield* exportedDump(await this.#open(), options);
  }

  async importDump(dump: AsyncIterable<Uint8Array>, options: DumpOptions = {}): Promise<void> {
    await importDump(await this.#open(), dump, options);
  }
}

const patchStatuses: Readonly<Record<PatchResult["status"], Patched<unknown>["status"]>> = {
  Created: "created",
  Patched: "patched",
  NotModified: "unchanged",
  // Returned only to requests that set skipPatchIfChangeVectorMismatch.
  Skipped: "unchanged",
  DocumentDoesNotExist: "missing",
};
