/** Attachments of documents. Contents are streamed in both directions. */
import type { Attachments } from "../engine/engine.ts";
import type { Attachment } from "./surface.ts";

export function openAttachment(
  attachments: Attachments,
  id: string,
  name: string,
): Attachment | null {
  const found = attachments.find({ id, name });
  if (found === undefined) return null;
  const { hash, size, contentType, changeVector } = found;
  const stream = async function* (): AsyncGenerator<Uint8Array> {
    // A copy: pieces may be parts of a buffer that is used again.
    for await (const piece of attachments.stream(found)) yield Uint8Array.from(piece);
  };
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
