/** Attachments of documents. Contents are streamed in both directions. */
import { EngineError, type Database as OpenDatabase } from "../engine/engine.ts";
import { attachmentKey } from "../engine/keyspaces/attachments.ts";
import type { BlobReader } from "../engine/log/blob-store.ts";
import * as writes from "../engine/writes/attachments.ts";
import type { Attachment, AttachmentFacts } from "./surface.ts";

/** @throws EngineError document-missing, invalid-argument, and what `content` throws; then nothing has happened */
export async function putAttachment(
  database: OpenDatabase,
  id: string,
  name: string,
  content: Uint8Array | AsyncIterable<Uint8Array>,
  contentType: string,
): Promise<AttachmentFacts> {
  writes.checkAttachmentTarget(database.state, id, name);
  const stored = await database.blobs.store(content instanceof Uint8Array ? [content] : content);
  try {
    const { hash, size } = stored;
    const attachment = { name, contentType, hash, size };
    return await database.write((transaction) => writes.putAttachment(transaction, id, attachment));
  } finally {
    stored.release();
  }
}

export async function deleteAttachment(
  database: OpenDatabase,
  id: string,
  name: string,
): Promise<boolean> {
  return await database.write((transaction) => writes.deleteAttachment(transaction, id, name), {
    isDeletion: true,
  });
}

export function openAttachment(
  database: OpenDatabase,
  id: string,
  name: string,
): Attachment | null {
  const found = database.state.keyspaces.attachments.get(attachmentKey(id, name));
  if (found === undefined) return null;
  const { hash, size, contentType, changeVector } = found;
  const stream = () => contentOf(database, hash);
  return {
    name: found.name,
    contentType,
    size,
    hash,
    changeVector,
    stream,
    bytes: async () => {
      const pieces: Uint8Array[] = [];
      for await (const piece of stream()) pieces.push(piece);
      return new Uint8Array(Buffer.concat(pieces));
    },
  };
}

/** The content is kept while it is read, even when the attachment is deleted. */
async function* contentOf({ blobs }: OpenDatabase, hash: string): AsyncGenerator<Uint8Array> {
  const lease = await blobs.lease(hash);
  if (lease === undefined) {
    throw new EngineError("attachment-missing", "The attachment was deleted.");
  }
  let reader: BlobReader | null = null;
  try {
    reader = await blobs.open(hash);
    // A copy: pieces may be parts of a buffer that is used again.
    for await (const piece of reader.read(0, reader.size)) yield Uint8Array.from(piece);
  } finally {
    await reader?.close();
    lease.release();
  }
}
