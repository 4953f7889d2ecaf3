/**
 * Encryption of backup files: the secret stream of libsodium (XChaCha20-Poly1305), which RavenDB reads.
 *
 *   header                24 bytes, random: determines, with the key, the key and the nonce of the stream
 *   chunks, each          1 byte of tag, encrypted; up to 4,096 bytes, encrypted; 16 bytes of authentication
 *
 * Each chunk is authenticated together with all earlier ones, and the last one is tagged. A changed, cut, swapped, or added
 * chunk, or a wrong key, is detected before any byte of the chunk is used.
 *
 * A chunk is ChaCha20-Poly1305 over a block with the tag, and the text. Only the padding of the authenticated data differs
 * if the length of the text is not a multiple of eight, so Node's cipher handles all chunks except the last.
 */
import { createCipheriv, createDecipheriv, randomBytes, timingSafeEqual } from "node:crypto";
import { poly1305 } from "@noble/ciphers/_poly1305.js";
import { hchacha } from "@noble/ciphers/chacha.js";
import { assert } from "../../engine/base/assert.ts";
import { EngineError } from "../../engine/base/errors.ts";
import { pauseIfDue } from "../../engine/base/scheduling/time-slices.ts";

export const keyBytes = 32;
const headerBytes = 24;
const chunkTextBytes = 4096;
const blockBytes = 64;
const authBytes = 16;
const chunkBytesMax = 1 + chunkTextBytes + authBytes;
/** Chunks per time slice: about 0.4 ms of work. */
const chunksPerPiece = 16;
const tags = { message: 0, final: 3 } as const;
const cipherName = "chacha20-poly1305";
/** "expand 32-byte k" */
const sigma = new Uint32Array([0x61707865, 0x3320646e, 0x79622d32, 0x6b206574]);
const zeros = Buffer.alloc(blockBytes);

/** Both ends of a stream pass through the same states, one for each chunk. */
class StreamState {
  readonly #key: Buffer;
  /** A counter of 4 bytes, and 8 bytes that depend on all earlier chunks. */
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

  /** @returns null if the chunk was not sealed in this state */
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
    // The last chunk, which is tagged, must not be empty.
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
 * @param name name of the file, for messages
 * @throws (while iterating) EngineError backup-damaged if the file is not exactly what was encrypted with the key
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
    if (isFinal) throw undecipherable(name, `data follows its end, at byte ${at}`);
    const opened = chunk.length > authBytes ? state?.open(chunk) : null;
    if (opened === null || opened === undefined) throw undecipherable(name, whyNot(at));
    isFinal = opened.tag === tags.final;
    if (!isFinal && opened.tag !== tags.message) {
      throw undecipherable(name, `it has an unexpected type of chunk at byte ${at}`);
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
  if (state === null) throw undecipherable(name, "it is shorter than a header");
  if (rest.length > 0) yield open(rest);
  if (!isFinal) throw undecipherable(name, `it is truncated at byte ${at}`);
}

function whyNot(at: number): string {
  return at === headerBytes
    ? "the key is wrong, or its beginning is damaged"
    : `it is damaged or truncated, or its chunks were reordered, at byte ${at}`;
}

function undecipherable(name: string, why: string): EngineError {
  return new EngineError("backup-damaged", `The file ${name} cannot be decrypted: ${why}.`);
}
