/**
 * `loadAttachment(document, name)` and `loadAttachments(document)` of indexes: attachment objects, and their content as
 * text. Knows nothing of where contents are stored.
 */
import { lowerCased } from "../base/case-folding.ts";
import { EngineError } from "../base/errors.ts";
import { builtIn, newArray } from "./built-ins/built-in.ts";
import { isReference, newObject, type Run, setOwn, type Value } from "./language/script-values.ts";
import type { ScriptContext } from "./script-host.ts";
import { ScriptDocument } from "./values/script-document.ts";

/** One attachment of a document, as scripts see it. */
interface ScriptAttachment {
  readonly name: string;
  readonly hash: string;
  readonly contentType: string;
  /** In bytes. */
  readonly size: number;
}

/** The host of the attachment functions. */
export interface AttachmentScriptHost {
  /** Returns the attachments of the document with this id, ordered by name. */
  attachmentsOf(id: string): readonly ScriptAttachment[];
  /**
   * Returns the content with this hash. @throws EngineError record-damaged, too-large, and the host's signal to wait
   */
  contentOf(hash: string, size: number): Buffer;
}

const objectBytes = 256;

/** `loadAttachment(document, name)`: null if the attachment or the document does not exist. */
export function loadAttachment(run: Run, _self: Value, [document, name]: Value[]): Value {
  if (isNothing(document)) return null;
  const id = idOf("loadAttachment(doc, name)", document);
  if (typeof name !== "string") {
    throw new EngineError("invalid-operation", "loadAttachment(doc, name): 'name' is not a string");
  }
  const lower = lowerCased(name);
  const found = hostOf(run)
    .attachmentsOf(id)
    .find((one) => lowerCased(one.name) === lower);
  return found === undefined ? null : attachmentObject(run, found);
}

/** `loadAttachments(document)`: a list, empty without a document. */
export function loadAttachments(run: Run, _self: Value, [document]: Value[]): Value {
  if (isNothing(document)) return newArray(run, []);
  const found = hostOf(run).attachmentsOf(idOf("loadAttachments(doc)", document));
  return newArray(
    run,
    found.map((one) => attachmentObject(run, one)),
  );
}

function hostOf(run: Run): AttachmentScriptHost {
  return (run.context as ScriptContext).host as unknown as AttachmentScriptHost; // true for every index
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

/** Decodes text in the .NET encoding of this name; the default is UTF-8. */
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
