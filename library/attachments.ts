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
    // Chunks may be views of a reused buffer: copy them.
    for await (const chunk of attachments.stream(found)) yield Uint8Array.from(chunk);
  };
  return {
    name: found.name,
    contentType,
    size,
    hash,
    changeVector,
    stream,
    bytes: async () => {
      const chunks: Uint8Array[] = [];
      for await (const chunk of stream()) chunks.push(chunk);
      return new Uint8Array(Buffer.concat(chunks));
    },
  };
}
