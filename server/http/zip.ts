/** Builds a zip archive in memory. `yazl` is loaded for the first one. */

export interface ZipEntry {
  /** Path within the archive, with slashes. */
  readonly name: string;
  readonly content: Buffer | string;
  /** Mode 0600 instead of 0644. */
  readonly isPrivate?: boolean;
}

export async function zip(entries: readonly ZipEntry[]): Promise<Buffer> {
  const { ZipFile } = await import("yazl");
  const archive = new ZipFile();
  for (const { name, content, isPrivate } of entries) {
    const mode = isPrivate === true ? 0o100600 : 0o100644;
    archive.addBuffer(Buffer.from(content as string), name, { mode });
  }
  archive.end();
  const chunks: Buffer[] = [];
  for await (const chunk of archive.outputStream) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}
