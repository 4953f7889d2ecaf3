/**
 * Finds documents of version 0.1.0 and older that would be lost, because their ids are equal in this version.
 *
 * That version folded ids by JavaScript's `toLowerCase`, which maps a capital sigma at the end of a word to another letter
 * (case-folding.ts): `ΟΔΟΣ` and `οδοσ` were two documents, and replaying its log would leave one. No other letter is
 * affected. This version marks a database before it stores an id with a sigma, so that a later change of spelling is not
 * mistaken for a second document.
 *
 * Invariants:
 * - During replay, each record of a document or tombstone whose id has a sigma is recorded, in any order.
 */
import { lowerCased } from "../../base/case-folding.ts";
import { EngineError } from "../../base/errors.ts";

/** Key among the values of a database: ids with a sigma are folded as now. */
export const sigmaFoldedKey = "sigma-folded";

/** Ids that an error names. */
const namedMax = 10;

const sigma = /[\u03a3\u03c3]/;

export function hasSigma(id: string): boolean {
  return sigma.test(id);
}

/** As `hasSigma`, for UTF-8 bytes. Hot: called for each record of a replay. */
export function hasSigmaBytes(bytes: Buffer, start: number, end: number): boolean {
  for (let at = start; at < end - 1; at++) {
    const byte = bytes[at] as number; // within the caller's range
    if (byte === 0xce && bytes[at + 1] === 0xa3) return true;
    if (byte === 0xcf && bytes[at + 1] === 0x83) return true;
  }
  return false;
}

/** The newest record of a document of the older version. */
interface Former {
  readonly id: string;
  readonly etag: number;
  readonly isDeleted: boolean;
}

export class SigmaIds {
  /** By the present form of an id and its former one. */
  readonly #formers = new Map<string, Map<string, Former>>();

  /** Records a document record. `rowEtag`: etag of the current document with this id, or 0. */
  noteDocument(id: string, etag: number, rowEtag: number): void {
    const formers = this.#formersOf(lowerCased(id));
    if (rowEtag !== 0 && ![...formers.values()].some((former) => former.etag === rowEtag)) {
      // It is from a snapshot, which would not have been used if its former form were another one.
      const key = lowerCased(id);
      formers.set(key, { id: key, etag: rowEtag, isDeleted: false });
    }
    note(formers, { id, etag, isDeleted: false });
  }

  noteTombstone(id: string, etag: number): void {
    if (hasSigma(id)) note(this.#formersOf(lowerCased(id)), { id, etag, isDeleted: true });
  }

  /**
   * Checks that every document is still present. @param etagOf returns the etag of the document with an id, or 0
   * @throws EngineError database-damaged with the ids of lost documents
   */
  check(etagOf: (id: string) => number): void {
    const lost: string[] = [];
    for (const [key, formers] of this.#formers) {
      const present = [...formers.values()].filter(({ isDeleted }) => !isDeleted);
      const isLost = present.length > 1 || (present[0]?.etag ?? etagOf(key)) !== etagOf(key);
      if (isLost) lost.push([...formers.values()].map(({ id }) => `'${id}'`).join(" and "));
    }
    if (lost.length === 0) return;
    const shown = lost.slice(0, namedMax).join(", ");
    const more = lost.length > namedMax ? `, and ${lost.length - namedMax} more` : "";
    throw new EngineError(
      "database-damaged",
      `An older version stored documents whose ids are the same in this version: ${shown}${more}. Nothing was changed. Open the folder with the older version. For each group of ids, store all documents but one under another id, delete the originals, and store the remaining document again.`,
    );
  }

  #formersOf(key: string): Map<string, Former> {
    let formers = this.#formers.get(key);
    if (formers === undefined) {
      formers = new Map();
      this.#formers.set(key, formers);
    }
    return formers;
  }
}

function note(formers: Map<string, Former>, former: Former): void {
  // The former form depends on the spelling, which records keep.
  const key = former.id.toLowerCase();
  if ((formers.get(key)?.etag ?? 0) < former.etag) formers.set(key, former);
}
