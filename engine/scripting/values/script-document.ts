/**
 * A document as a script sees it: a mutable tree over the document's text, parsed lazily, and written back so that
 * unchanged parts keep their bytes.
 *
 * It does not know storage, the access rules of `@metadata`, or script syntax. The text is trusted to be valid JSON (it
 * was checked when it was stored). Parsing is in text-source.ts, serialization in value-printer.ts.
 */

import { EngineError } from "../../base/errors.ts";
import { bytesEqual } from "../../base/json/bytes.ts";
import {
  getOwn,
  isObject,
  isReference,
  kinds,
  LAZY,
  type Run,
  type ScriptObject,
  type Slot,
  type Value,
} from "../language/script-values.ts";
import { ShapeHint } from "./shape-hint.ts";
import { type Elsewhere, type StoredText, TextSource, valueOfText } from "./text-source.ts";
import {
  changedDeep,
  derivedMetadata,
  metadataKey,
  printer,
  type ValuePrinter,
} from "./value-printer.ts";

const derivedButId: ReadonlySet<string> = new Set(
  [...derivedMetadata].filter((key) => key !== "@id"),
);

/** A stored document: its body, id and metadata. Must not change while scripts can access it. */
export interface StoredDocument extends StoredText {
  /** In its original case. */
  readonly id: string;
  /** Its `@metadata`, composed, with the derived keys that scripts may read. */
  readonly metadataText: string;
}

/** A document of a run: the patched document, or a document that the script loaded. */
export class ScriptDocument implements Elsewhere {
  readonly name = metadataKey;
  readonly root: ScriptObject;
  private readonly source: TextSource;
  private readonly stored: StoredDocument | null;
  private readonly givenId: string | null;
  private readonly givenMetadata: string | null;
  /** The run that changed it: printing is charged to it. */
  run: Run | null = null;
  /** The cached print of its body, valid while the run has this much work left: every action of a script uses some. */
  private printCount = -1;
  private printedAt = 0;

  private constructor(
    stored: StoredDocument | null,
    text: string,
    metadata: string | null,
    id: string | null,
    hint: ShapeHint,
  ) {
    this.stored = stored;
    this.givenId = id;
    this.givenMetadata = metadata;
    this.source =
      stored === null
        ? TextSource.ofText(text, hint, metadata === null ? null : this)
        : TextSource.ofStored(stored, hint, this);
    this.source.document = this;
    this.root = this.source.root();
  }

  /**
   * Returns a document from its body (an object's JSON text without `@metadata`) and the composed text of its
   * `@metadata`, with the derived keys that scripts may read. Cost: one pass over the body.
   */
  static fromText(
    body: string,
    metadata: string | null,
    id: string | null,
    hint: ShapeHint = ShapeHint.loose(),
  ): ScriptDocument {
    return new ScriptDocument(null, body, metadata, id, hint);
  }

  /** As `fromText`, for a stored document. */
  static fromStored(stored: StoredDocument, hint: ShapeHint = ShapeHint.loose()): ScriptDocument {
    return new ScriptDocument(stored, "", null, null, hint);
  }

  /** Returns the document that an object is the root of, or null. */
  static of(value: Value): ScriptDocument | null {
    if (!isReference(value) || value.kind !== kinds.object) return null;
    const { source } = value;
    if (!(source instanceof TextSource) || !(source.document instanceof ScriptDocument))
      return null;
    return source.document.root === value ? source.document : null;
  }

  /** The id in its original case; null for a document being created. */
  get id(): string | null {
    return this.stored === null ? this.givenId : this.stored.id;
  }

  /** The original text of `@metadata` with the derived keys; null when there was none. */
  get composedMetadata(): string | null {
    return this.stored === null ? this.givenMetadata : this.stored.metadataText;
  }

  /** Bytes of its original text. */
  get length(): number {
    return this.source.to - this.source.from;
  }

  /** Returns the original `@metadata`, for its root. */
  read(): Value {
    return valueOfText(this.composedMetadata ?? "null");
  }

  /** `@metadata` after the script; undefined when missing. */
  metadata(): Value {
    return getOwn(this.root, metadataKey);
  }

  /**
   * Requires that the script has left an object in `@metadata`, or deleted it; an undefined value counts as deleted.
   * @throws EngineError null-reference, invalid-format
   */
  requireMetadataObject(): void {
    const metadata = this.metadata();
    if (metadata === null) throw metadataIsNull();
    if (metadata !== undefined && !isObject(metadata)) {
      throw new EngineError("invalid-format", "'@metadata' must be an object");
    }
  }

  /** Returns whether the body or `@metadata` has changed. Cost: prints the modified parts. */
  changed(): boolean {
    return this.bodyChanged() || this.metadataChanged();
  }

  private bodyChanged(): boolean {
    const { source } = this;
    const printed = this.printedBody();
    if (printed === null) return false;
    if (printed.isOther) return true;
    const { length } = printed;
    if (length !== source.to - source.from) return true;
    return !bytesEqual(printed.bytes, 0, source.bytes, source.from, length);
  }

  /** Returns whether `@metadata`, ignoring derived keys, has changed or was replaced. */
  metadataChanged(): boolean {
    const { keys, values, readCount } = this.root;
    // It is parsed last, or may have been added.
    const last = readCount - 1;
    const position = keys[last] === metadataKey ? last : keys.indexOf(metadataKey);
    if (position < 0) return false;
    const slot = values[position] as Slot;
    if (slot === LAZY) return false;
    if (typeof slot !== "object" || slot === null) return true;
    if (slot.kind !== kinds.object || slot.source === null) return true;
    if (!changedDeep(slot)) return false;
    if (!(slot.source instanceof TextSource)) return true;
    const original = valueOfText(slot.source.wholeText());
    if (!isReference(original) || original.kind !== kinds.object) return true;
    return metadataText(null, original) !== metadataText(this.run, slot);
  }

  /** Returns the body's new text, without `@metadata`; the original text when nothing was modified. */
  bodyText(): string {
    return this.printedBody()?.text ?? this.source.wholeText();
  }

  /**
   * Returns the body's new text in the printer, valid until the next print; null when nothing was modified.
   * @throws EngineError script-failed, too-large, invalid-operation
   */
  printedBody(): ValuePrinter | null {
    if (!this.root.written && !changedDeep(this.root)) return null;
    const { run } = this;
    const isPrinted = run !== null && this.printCount === printer.printCount;
    if (isPrinted && this.printedAt === run.affordableWork) return printer;
    printer.printBody(run, this.root);
    this.printCount = printer.printCount;
    this.printedAt = run === null ? 0 : run.affordableWork;
    return printer;
  }

  /** Returns the text of `@metadata` without derived keys; null when it is no longer an object. */
  metadataText(): string | null {
    const metadata = this.metadata();
    if (!isReference(metadata) || metadata.kind !== kinds.object) return null;
    return metadataText(this.run, metadata);
  }
}

export function metadataIsNull(): EngineError {
  return new EngineError("null-reference", "'@metadata' must be an object, not null");
}

/** Returns whether a tree parsed from a text, or any node in it, was changed. */
export function isChanged(node: ScriptObject): boolean {
  return changedDeep(node);
}

/**
 * Returns the values that a script created, as stored JSON text. `keepIds`: whole documents among them keep their
 * `@id`, as in query results.
 * @throws EngineError script-failed, too-large, invalid-operation
 */
export function valueText(run: Run | null, value: Value, keepIds = false): string {
  printer.printValue(run, value, keepIds ? derivedButId : derivedMetadata);
  return printer.text;
}

/** Returns an object as a document's body: without `@metadata`. */
export function documentText(run: Run | null, object: ScriptObject): string {
  printer.printBody(run, object);
  return printer.text;
}

/** Returns an object as the text of `@metadata`: without derived keys. */
export function metadataText(run: Run | null, object: ScriptObject): string {
  printer.printMembers(run, object, derivedMetadata);
  return printer.text;
}
