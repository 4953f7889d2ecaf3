/** Attachments: binary content under a name within a document, or a revision. */
import { lowerCased } from "../base/case-folding.ts";
import { EngineError } from "../base/errors.ts";
import {
  type Attachment,
  attachmentKey,
  revisionAttachmentKey,
} from "../state/keyspaces/attachments.ts";
import type { BlobReader } from "../storage/log/blob-store.ts";
import { checkAttachmentTarget, deleteAttachment, putAttachment } from "../writes/attachments.ts";
import type { OpenDatabase } from "./database/open-database.ts";
import { Revisions } from "./revisions.ts";

export type { Attachment };
/** The content of an attachment, while it is open. */
export type ContentReader = BlobReader;

/** The content's bytes, in arrival order. */
type ContentSource = Parameters<OpenDatabase["blobs"]["store"]>[0];

export interface AttachmentName {
  readonly id: string;
  readonly name: string;
}

export class Attachments {
  readonly #database: OpenDatabase;

  constructor(database: OpenDatabase) {
    this.#database = database;
  }

  find({ id, name }: AttachmentName): Attachment | undefined {
    return this.#database.state.keyspaces.attachments.get(attachmentKey(id, name));
  }

  /** Returns the number of attachments, also of revisions, with this content. Cost: constant. */
  countOf(hash: string): number {
    return this.#database.blobs.referencesTo(hash);
  }

  /** Returns the attachment in the revision of the document with this change vector; undefined if it does not exist. */
  async findInRevision(
    { id, name }: AttachmentName,
    changeVector: string,
  ): Promise<Attachment | undefined> {
    const revision = await new Revisions(this.#database).byChangeVector(changeVector);
    if (revision === null || lowerCased(revision.id) !== lowerCased(id)) return undefined;
    const { attachments } = this.#database.state.keyspaces;
    return attachments.get(revisionAttachmentKey(id, revision.etag, name));
  }

  /**
   * Stores the content of an attachment and then the attachment itself.
   * @param expected its current change vector; "" when it must not exist; undefined for no check
   * @throws EngineError attachment-document-missing, concurrency, invalid-argument
   */
  async put(
    { id, name }: AttachmentName,
    contentType: string,
    bytes: ContentSource,
    expected?: string,
  ): Promise<Attachment> {
    const database = this.#database;
    checkAttachmentTarget(database.state, id, name);
    const content = await database.blobs.store(bytes);
    const { hash, size } = content;
    try {
      return await database.write((transaction) =>
        putAttachment(transaction, id, { name, contentType, hash, size }, expected),
      );
    } finally {
      content.release();
    }
  }

  /** @returns false when it did not exist. @throws EngineError concurrency */
  delete({ id, name }: AttachmentName, expected?: string): Promise<boolean> {
    return this.#database.write(
      (transaction) => deleteAttachment(transaction, id, name, expected),
      {
        isDeletion: true,
      },
    );
  }

  /** Deletes several attachments in one transaction; missing ones are ignored. */
  async deleteAll(names: readonly AttachmentName[]): Promise<void> {
    await this.#database.write((transaction) => {
      for (const { id, name } of names) deleteAttachment(transaction, id, name);
    });
  }

  /**
   * Retains the contents of `attachments` until the returned function is called, even if they are deleted in the
   * meantime.
   */
  retain(attachments: readonly Attachment[]): () => void {
    const { blobs } = this.#database;
    for (const { hash } of attachments) blobs.retain(hash);
    return () => {
      for (const { hash } of attachments) blobs.release(hash);
    };
  }

  /**
   * The bytes of a content, which is kept while it is read, even when its attachment is deleted.
   * @throws EngineError attachment-missing when it is gone, attachment-damaged
   */
  async *stream({ hash }: Attachment): AsyncGenerator<Buffer> {
    const { blobs } = this.#database;
    const lease = await blobs.lease(hash);
    if (lease === undefined) {
      throw new EngineError("attachment-missing", "The attachment was deleted.");
    }
    let reader: ContentReader | null = null;
    try {
      reader = await blobs.open(hash);
      yield* reader.read(0, reader.size);
    } finally {
      await reader?.close();
      lease.release();
    }
  }

  /** Opens a content; close it. @throws EngineError attachment-damaged */
  open({ hash }: Attachment): Promise<ContentReader> {
    return this.#database.blobs.open(hash);
  }
}
