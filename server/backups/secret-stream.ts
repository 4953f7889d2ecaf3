/**
 * Encryption of the files of backups: the secret stream of libsodium (XChaCha20-Poly1305), as RavenDB reads it.
 *
 *   header                24 bytes, random: with the key, it gives the key and the nonce of the stream
 *   chunks, each          1 byte of tag, encrypted; up to 4,096 bytes, encrypted; 16 bytes of authentication
 *
 * Each chunk is authenticated with what went before it, and the last one is tagged: what is flipped, cut, swapped, added
 * or of another key is found before anything of that chunk is used.
 *
 * A chunk is ChaCha20-Poly1305 over a block with the tag, and the text; only the padding of what is authenticated differs
 * where the length of the text is not a multiple of eight. So Node's cipher does all chunks but the last one.
 */
import { createCipheriv, createDecipheriv, randomBytes, timingSafeEqual } from "node:crypto";
import { poly1305 } from "@noble/ciphers/_poly1305.js";
import { hchacha } from "@noble/ciphers/chacha.js";
import { assert } from "../../engine/base/assert.ts";
import { EngineError } from "../../engine/base/errors.ts";
import { pauseIfDue } from "../../engine/base/time-slices.ts";

export const keyBytes = 32;
const headerBytes = 24;
const chunkTextBytes = 4096;
const blockBytes = 64;
const authBytes = 16;
const chunkBytesMax = 1 + chunkTextBytes + authBytes;
/** Some 0.4 ms of work: between pieces others have their turn. */
const chunksPerPiece = 16;
const tags = { message: 0, final: 3 } as const;
const cipherName = "chacha20-poly1305";
/** "expand 32-byte k" */
const sigma = new Uint32Array([0x61707865, 0x3320646e, 0x79622d32, 0x6b206574]);
const zeros = Buffer.alloc(blockBytes);

/** Both ends of a stream go through the same states, one for each chunk. */
class StreamState {
  readonly #key: Buffer;
  /** A counter of 4 bytes, and 8 bytes that depend on all chunks before. */
  readonly #nonce = Buffer.alloc(12);

  constructor(key: Buffer, header: Buffer) {
    const out = new Uint32Array(8);
    hchacha(sigma, words(key), words(header.subarray(0, 16)), out);
    this.#key = Buffer.from(out.buffer);
    this.#nonce.writeUInt32LE(1, 0);
    header.copy(this.#nonce, 4, 16, headerBytes);
  }

  seal(text: Buffer, tag: number): Buffer {
    const block = Buffer.alloc(blockBytes);
    block[0] = tag;
    let encrypted: Buffer;
    let auth: Buffer;
    if (isPaddedAlike(text.length)) {
      const cipher = createCipheriv(cipherName, this.#key, this.#nonce, {
        authTagLength: authBytes,
      });
      encrypted = Buffer.concat([cipher.update(block), cipher.update(text), cipher.final()]);
      auth = cipher.getAuthTag();
    } else {
      encrypted = this.#keystream(1, Buffer.concat([block, text]));
      auth = this.#authOf(encrypted);
    }
    this.#advance(auth);
    return Buffer.concat([encrypted.subarray(0, 1), encrypted.subarray(blockBytes), auth]);
  }

  /** @returns null when it is not what was sealed in this state */
  open(chunk: Buffer): { readonly text: Buffer; readonly tag: number } | null {
    const auth = chunk.subarray(chunk.length - authBytes);
    const block = this.#keystream(1, zeros);
    const mask = block[0] as number; // it has 64 bytes
    block[0] = chunk[0] as number; // a chunk has at least one
    const body = chunk.subarray(1, chunk.length - authBytes);
    let text: Buffer;
    let tag: number;
    if (isPaddedAlike(body.length)) {
      const cipher = createDecipheriv(cipherName, this.#key, this.#nonce, {
        authTagLength: authBytes,
      });
      cipher.setAuthTag(auth);
      tag = cipher.update(block)[0] as number; // as many bytes as were given
      text = cipher.update(body);
      try {
        cipher.final();
      } catch {
        return null;
      }
    } else {
      const encrypted = Buffer.concat([block, body]);
      if (!timingSafeEqual(this.#authOf(encrypted), auth)) return null;
      tag = block[0] ^ mask;
      text = this.#keystream(2, body);
    }
    this.#advance(auth);
    return { text, tag };
  }

  #keystream(firstBlock: number, bytes: Buffer): Buffer {
    const start = Buffer.alloc(16);
    start.writeUInt32LE(firstBlock, 0);
    this.#nonce.copy(start, 4);
    return createCipheriv("chacha20", this.#key, start).update(bytes);
  }

  #authOf(encrypted: Buffer): Buffer {
    const lengths = Buffer.alloc(16);
    lengths.writeBigUInt64LE(BigInt(encrypted.length), 8);
    const padding = zeros.subarray(0, encrypted.length & 15);
    const key = this.#keystream(0, zeros.subarray(0, keyBytes));
    return Buffer.from(poly1305(Buffer.concat([encrypted, padding, lengths]), key));
  }

  #advance(auth: Buffer): void {
    const nonce = this.#nonce;
    for (let i = 0; i < 8; i++) nonce[4 + i] = (nonce[4 + i] as number) ^ (auth[i] as number);
    const counter = nonce.readUInt32LE(0) + 1;
    assert(counter < 2 ** 32, "a file has less than 16 TiB: no nonce is used twice");
    nonce.writeUInt32LE(counter, 0);
  }
}

function isPaddedAlike(textBytes: number): boolean {
  return textBytes % 8 === 0;
}

function words(bytes: Buffer): Uint32Array {
  return new Uint32Array(Uint8Array.from(bytes).buffer);
}

/** @param key 32 bytes */
export async function* encrypted(
  key: Buffer,
  bytes: AsyncIterable<Buffer> | Iterable<Buffer>,
): AsyncGenerator<Buffer> {
  const header = randomBytes(headerBytes);
  const state = new StreamState(key, header);
  yield header;
  let rest: Buffer = Buffer.alloc(0);
  for await (const piece of bytes) {
    const text = rest.length === 0 ? piece : Buffer.concat([rest, piece]);
    let chunks: Buffer[] = [];
    let at = 0;
    // Something is left for the last chunk, which is tagged.
    for (; text.length - at > chunkTextBytes; at += chunkTextBytes) {
      chunks.push(state.seal(text.subarray(at, at + chunkTextBytes), tags.message));
      if (chunks.length < chunksPerPiece) continue;
      yield Buffer.concat(chunks);
      chunks = [];
      await pauseIfDue();
    }
    rest = Buffer.from(text.subarray(at));
    if (chunks.length > 0) yield Buffer.concat(chunks);
  }
  yield state.seal(rest, tags.final);
}

/**
 * @param name of the file, for messages
 * @throws (while iterating) EngineError backup-damaged when it is not, as a whole, what was encrypted with the key
 */
export async function* decrypted(
  key: Buffer,
  bytes: AsyncIterable<Buffer>,
  name: string,
): AsyncGenerator<Buffer> {
  let state: StreamState | null = null;
  let rest: Buffer = Buffer.alloc(0);
  let at = 0;
  let isFinal = false;
  const open = (chunk: Buffer): Buffer => {
    if (isFinal) throw undecipherable(name, `there is more behind its end, at byte ${at}`);
    const opened = chunk.length > authBytes ? state?.open(chunk) : null;
    if (opened === null || opened === undefined) throw undecipherable(name, whyNot(at));
    isFinal = opened.tag === tags.final;
    if (!isFinal && opened.tag !== tags.message) {
      throw undecipherable(name, `it has a kind of chunk that backups do not have, at byte ${at}`);
    }
    at += chunk.length;
    return opened.text;
  };
  for await (const piece of bytes) {
    rest = rest.length === 0 ? piece : Buffer.concat([rest, piece]);
    if (state === null) {
      if (rest.length < headerBytes) continue;
      state = new StreamState(key, rest.subarray(0, headerBytes));
      rest = rest.subarray(headerBytes);
      at = headerBytes;
    }
    let texts: Buffer[] = [];
    let from = 0;
    for (; rest.length - from >= chunkBytesMax; from += chunkBytesMax) {
      texts.push(open(rest.subarray(from, from + chunkBytesMax)));
      if (texts.length < chunksPerPiece) continue;
      yield Buffer.concat(texts);
      texts = [];
      await pauseIfDue();
    }
    rest = Buffer.from(rest.subarray(from));
    if (texts.length > 0) yield Buffer.concat(texts);
  }
  if (state === null) throw undecipherable(name, "it is shorter than the header of one");
  if (rest.length > 0) yield open(rest);
  if (!isFinal) throw undecipherable(name, `it is cut at byte ${at}: its end is missing`);
}

function whyNot(at: number): string {
  return at === headerBytes
    ? "the key is another one, or its beginning is damaged"
    : `it is damaged, cut, or has chunks of another place or file, at byte ${at}`;
}

function undecipherable(name: string, why: string): EngineError {
  return new EngineError("backup-damaged", `The file ${name} cannot be decrypted: ${why}.`);
}
