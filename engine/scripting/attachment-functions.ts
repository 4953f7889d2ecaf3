/**
 * `loadAttachment(document, name)` and `loadAttachments(document)` of indexes: what an attachment is, and its content as text.
 * Knows nothing of where contents are kept.
 */
import { EngineError } from "../errors.ts";
import { builtIn, newArray } from "./built-in.ts";
import { ScriptDocument } from "./script-document.ts";
import type { ScriptContext } from "./script-host.ts";
import { isReference, newObject, type Run, setOwn, type Value } from "./script-values.ts";

/** One attachment of a document, as it is told to scripts. */
export interface ScriptAttachment {
  readonly name: string;
  readonly hash: string;
  readonly contentType: string;
  /** Bytes. */
  readonly size: number;
}

/** The host of functions that look at attachments. */
export interface AttachmentScriptHost {
  /** Those of the document with this id, in the order of their names. */
  attachmentsOf(id: string): readonly ScriptAttachment[];
  /** The content with this hash. @throws EngineError record-damaged, too-large, and what the host waits with */
  contentOf(hash: string, size: number): Buffer;
}

const objectBytes = 256;

/** `loadAttachment(document, name)`: null when there is none of this name, or no document. */
export function loadAttachment(run: Run, _self: Value, [document, name]: Value[]): Value {
  if (isNothing(document)) return null;
  const id = idOf("loadAttachment(doc, name)", document);
  if (typeof name !== "string") {
    throw new EngineError("invalid-operation", "loadAttachment(doc, name): 'name' is not a string");
  }
  const lower = name.toLowerCase();
  const found = hostOf(run)
    .attachmentsOf(id)
    .find((one) => one.name.toLowerCase() === lower);
  return found === undefined ? null : attachmentObject(run, found);
}

/** `loadAttachments(document)`: a list, empty when there is no document. */
export function loadAttachments(run: Run, _self: Value, [document]: Value[]): Value {
  if (isNothing(document)) return newArray(run, []);
  const found = hostOf(run).attachmentsOf(idOf("loadAttachments(doc)", document));
  return newArray(
    run,
    found.map((one) => attachmentObject(run, one)),
  );
}

function hostOf(run: Run): AttachmentScriptHost {
  return (run.context as ScriptContext).host as unknown as AttachmentScriptHost; // of every index
}

function isNothing(value: Value): boolean {
  return value === null || value === undefined;
}

function idOf(method: string, document: Value): string {
  const id = isReference(document) ? ScriptDocument.of(document)?.id : null;
  if (typeof id === "string") return id;
  throw new EngineError("invalid-operation", `${method} must be called with a document`);
}

function attachmentObject(run: Run, { name, hash, contentType, size }: ScriptAttachment): Value {
  run.grow(objectBytes + name.length + contentType.length);
  const made = newObject();
  setOwn(made, "Name", name);
  setOwn(made, "Hash", hash);
  setOwn(made, "ContentType", contentType);
  setOwn(made, "Size", size);
  const content = builtIn("getContentAsString", 1, (inner, _self, [encoding]) => {
    inner.grow(2 * size);
    return contentText(hostOf(inner).contentOf(hash, size), encoding);
  });
  setOwn(made, "getContentAsString", content);
  return made;
}

/** Text as .NET's encodings of these names make it; UTF-8 when none is named. */
function contentText(content: Buffer, encoding: Value): string {
  switch (encodingName(encoding)) {
    case "utf8":
    case "default":
      return new TextDecoder().decode(content);
    case "ascii":
      // biome-ignore lint/suspicious/noControlCharactersInRegex: everything that is not ASCII
      return content.toString("latin1").replace(/[^\u0000-\u007f]/g, "?");
    case "unicode":
    case "utf16":
      return new TextDecoder("utf-16le").decode(content);
    case "latin1":
      return content.toString("latin1");
    default:
      throw new EngineError(
        "invalid-argument",
        `getContentAsString(encoding): there is no encoding '${String(encoding)}'; there are UTF8, ASCII, Unicode and Latin1`,
      );
  }
}

function encodingName(encoding: Value): string {
  if (isNothing(encoding)) return "utf8";
  return typeof encoding === "string" ? encoding.toLowerCase().replace("-", "") : "";
}
