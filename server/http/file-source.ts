/** Sources of files that are served unchanged: a folder, or a zip archive. */
import { readdirSync, readFileSync } from "node:fs";
import { promisify } from "node:util";
import { inflateRaw } from "node:zlib";

export interface FileSource {
  /** Returns paths with `/`, relative to the folder. @throws if they cannot be listed */
  names(): readonly string[];
  read(name: string): Promise<Buffer>;
}

export function folderFiles(folder: string): FileSource {
  return {
    names: () =>
      readdirSync(folder, { withFileTypes: true, recursive: true })
        .filter((one) => one.isFile())
        .map(({ parentPath, name }) => `${parentPath.slice(folder.length + 1)}/${name}`)
        .map((path) => path.replaceAll("\\", "/").replace(/^\//, "")),
    read: async (name) => readFileSync(`${folder}/${name}`),
  };
}

/** What is unpacked of one file of an archive. */
const fileBytesMax = 256 * 1024 * 1024;
const archiveBytesMax = 512 * 1024 * 1024;

/** The location of a packed file in the archive. */
interface Entry {
  /** 0: stored; 8: deflated. */
  readonly method: number;
  readonly packedBytes: number;
  /** Offset of its local header: 30 bytes, then a name and an extra field, then the packed content. */
  readonly offset: number;
}

/**
 * The files of a zip archive, which stays packed in memory.
 *
 * @throws Error if it is not a readable archive
 */
export function zipFiles(archive: Buffer): FileSource {
  if (archive.length > archiveBytesMax) throw new Error("the archive is too large");
  const entries = entriesOf(archive);
  return {
    names: () => [...entries.keys()],
    read: async (name) => {
      const entry = entries.get(name);
      if (entry === undefined) throw new Error(`the archive has no file ${name}`);
      const { offset, packedBytes, method } = entry;
      const start =
        offset + 30 + archive.readUInt16LE(offset + 26) + archive.readUInt16LE(offset + 28);
      const packed = archive.subarray(start, start + packedBytes);
      if (method === 0) return packed;
      return await promisify(inflateRaw)(packed, { maxOutputLength: fileBytesMax });
    },
  };
}

/**
 * The directory at the end of the archive: 46 bytes for each file, its name, an extra field and a comment. After it, 22
 * bytes contain its offset, and a comment may follow.
 */
function entriesOf(archive: Buffer): Map<string, Entry> {
  const end = archive.lastIndexOf(Buffer.from("PK\u0005\u0006"));
  if (end === -1 || end + 22 > archive.length) throw new Error("it is no zip archive");
  const count = archive.readUInt16LE(end + 10);
  let at = archive.readUInt32LE(end + 16);
  const entries = new Map<string, Entry>();
  for (let n = 0; n < count; n++) {
    if (at + 46 > end || archive.readUInt32LE(at) !== 0x02014b50) {
      throw new Error("the directory of the archive is damaged");
    }
    const nameEnd = at + 46 + archive.readUInt16LE(at + 28);
    const name = archive.toString("utf8", at + 46, nameEnd);
    const entry = {
      method: archive.readUInt16LE(at + 10),
      packedBytes: archive.readUInt32LE(at + 20),
      offset: archive.readUInt32LE(at + 42),
    };
    if (!name.endsWith("/")) {
      if (entry.method !== 0 && entry.method !== 8) throw new Error(`${name} is packed otherwise`);
      if (entry.offset + 30 > end) throw new Error("the directory of the archive is damaged");
      entries.set(name.replaceAll("\\", "/"), entry);
    }
    at = nameEnd + archive.readUInt16LE(at + 30) + archive.readUInt16LE(at + 32);
  }
  return entries;
}
