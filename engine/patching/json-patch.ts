/** JSON Patch (RFC 6902) of one document, its `@metadata` included. */

import { EngineError } from "../base/errors.ts";
import { copyTree, equalTrees, readTree, type TextNode, treeText } from "../base/json/text-tree.ts";
import { scriptDocumentOf } from "../scripting/values/record-document.ts";
import { documentText } from "../state/documents/document-composing.ts";
import { etagOf } from "../state/documents/document-record.ts";
import type { Transaction } from "../state/store/transaction.ts";
import { currentChangeVector, putParsed, storedIdOf } from "../writes/documents.ts";
import { shownText } from "./patch.ts";

/** The outcome of a JSON patch. */
export interface JsonPatchResult {
  readonly status: "DocumentDoesNotExist" | "NotModified" | "Patched";
  /** Change vector of the write; null when nothing was written. */
  readonly changeVector: string | null;
  /** Microseconds since 1970; 0 when nothing was written. */
  readonly lastModified: number;
  readonly etag: number;
  readonly collection: string | null;
  /** The patched document as replies show it, with stored metadata only; null when nothing was written. */
  readonly modified: string | null;
}

const unwritten = {
  changeVector: null,
  lastModified: 0,
  etag: 0,
  collection: null,
  modified: null,
} as const;

/**
 * Applies the operations, an array of `{"op","path","from"?,"value"?}`; all of them or none. As on RavenDB 7.2.7, `op`
 * is case-insensitive, and a path may omit its leading slash.
 * @param expected the document's change vector; undefined for no check.
 * @throws EngineError concurrency, invalid-argument for a malformed operation, invalid-operation for an operation that
 * cannot be applied
 */
export function patchByJson(
  transaction: Transaction,
  id: string,
  operations: TextNode | undefined,
  expected: string | undefined,
): JsonPatchResult {
  if (!Array.isArray(operations)) throw malformed("'Operations' must be an array");
  const document = transaction.find(id);
  if (expected !== undefined) checkVector(transaction, document, id, expected);
  if (document < 0) return { status: "DocumentDoesNotExist", ...unwritten };
  const { state } = transaction;
  const { bytes, start } = transaction.recordOf(document);
  const shown = documentText(state, bytes, start);
  const before = readTree(shown, 0);
  const after = applied(id, operations, copyTree(before));
  if (equalTrees(before, after)) return { status: "NotModified", ...unwritten };
  const text = Buffer.from(treeText(after));
  const storedId = storedIdOf(transaction, document);
  const stored = putParsed(transaction, storedId, state.parser.parse(text, 0, text.length));
  const record = transaction.recordOf(stored.document);
  return {
    status: "Patched",
    changeVector: stored.changeVector,
    lastModified: stored.lastModified,
    etag: etagOf(record.bytes, record.start),
    collection: state.keyspaces.collections.nameOf(transaction.collectionOf(stored.document)),
    modified: shownText(scriptDocumentOf(state, record.bytes, record.start)),
  };
}

/** @throws EngineError invalid-operation, naming the document */
function applied(id: string, operations: readonly TextNode[], root: TextNode): TextNode {
  try {
    return operations.reduce<TextNode>(applyOperation, root);
  } catch (error) {
    if (!(error instanceof EngineError) || error.code !== "invalid-operation") throw error;
    const message = `An error occurred while trying to apply json patch operation to document ${id}.`;
    throw new EngineError("invalid-operation", `${message} ${error.message}`, { cause: error });
  }
}

/** @returns the tree after the operation; it may be changed in place. */
function applyOperation(root: TextNode, operation: TextNode): TextNode {
  if (!(operation instanceof Map)) throw malformed("An operation must be an object");
  const path = pathOf(operation, "path");
  const op = textOf(operation.get("op")) ?? "";
  switch (op.toLowerCase()) {
    case "add":
      return add(root, path, newValueOf(operation));
    case "remove":
      return remove(root, path);
    case "replace": {
      const value = newValueOf(operation);
      if (path.length === 0) return value;
      if (find(root, path) === undefined) throw absent(path);
      return set(root, path, value);
    }
    case "copy":
      return add(root, path, copyTree(required(root, pathOf(operation, "from"))));
    case "move": {
      const from = pathOf(operation, "from");
      if (path.length > from.length && from.every((part, position) => part === path[position])) {
        throw new EngineError("invalid-operation", "A value cannot be moved into itself.");
      }
      const value = required(root, from);
      return add(remove(root, from), path, value);
    }
    case "test": {
      if (equalTrees(required(root, path), newValueOf(operation))) return root;
      throw new EngineError("invalid-operation", `The test of '${pointer(path)}' failed.`);
    }
    default:
      throw malformed(`'${op}' is no operation`);
  }
}

function add(root: TextNode, path: readonly string[], value: TextNode): TextNode {
  if (path.length === 0) return value;
  const parent = find(root, path.slice(0, -1));
  const last = path.at(-1) as string; // the path is not empty
  if (parent instanceof Map) parent.set(last, value);
  else if (Array.isArray(parent)) {
    const position = last === "-" ? parent.length : positionOf(last);
    if (position < 0 || position > parent.length) throw absent(path);
    parent.splice(position, 0, value);
  } else throw absent(path);
  return root;
}

/** Replaces an existing value. */
function set(root: TextNode, path: readonly string[], value: TextNode): TextNode {
  const parent = find(root, path.slice(0, -1));
  const last = path.at(-1) as string; // callers pass no empty path
  if (parent instanceof Map) parent.set(last, value);
  else if (Array.isArray(parent)) parent[positionOf(last)] = value;
  return root;
}

function remove(root: TextNode, path: readonly string[]): TextNode {
  if (path.length === 0) throw malformed("A document cannot be removed from itself");
  const parent = find(root, path.slice(0, -1));
  const last = path.at(-1) as string; // the path is not empty
  if (find(root, path) === undefined) throw absent(path);
  if (parent instanceof Map) parent.delete(last);
  else if (Array.isArray(parent)) parent.splice(positionOf(last), 1);
  return root;
}

function find(root: TextNode, path: readonly string[]): TextNode | undefined {
  let node: TextNode | undefined = root;
  for (const part of path) {
    if (node instanceof Map) node = node.get(part);
    else if (Array.isArray(node)) node = node[positionOf(part)];
    else return undefined;
  }
  return node;
}

function required(root: TextNode, path: readonly string[]): TextNode {
  const node = find(root, path);
  if (node === undefined) throw absent(path);
  return node;
}

/** Returns an array index; -1 if the text is not an index: an index has no sign and no leading zero. */
function positionOf(part: string): number {
  return /^(?:0|[1-9]\d{0,8})$/.test(part) ? Number(part) : -1;
}

function pathOf(operation: Map<string, TextNode>, key: string): string[] {
  const text = textOf(operation.get(key));
  if (text === undefined) throw malformed(`'${key}' must be a JSON pointer`);
  return (text === "" || text.startsWith("/") ? text : `/${text}`)
    .split("/")
    .slice(1)
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
}

function newValueOf(operation: Map<string, TextNode>): TextNode {
  const value = operation.get("value");
  if (value === undefined) throw malformed("The operation has no 'value'");
  return copyTree(value);
}

/** Returns the string value of a JSON string; undefined for other nodes. */
function textOf(node: TextNode | undefined): string | undefined {
  if (typeof node !== "string" || !node.startsWith('"')) return undefined;
  return JSON.parse(node) as string;
}

function pointer(path: readonly string[]): string {
  return path.map((part) => `/${part.replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
}

function absent(path: readonly string[]): EngineError {
  return new EngineError("invalid-operation", `There is nothing at '${pointer(path)}'.`);
}

function malformed(what: string): EngineError {
  return new EngineError("invalid-argument", `Not a JSON patch: ${what}.`);
}

function checkVector(
  transaction: Transaction,
  document: number,
  id: string,
  expected: string,
): void {
  const actual = document < 0 ? null : currentChangeVector(transaction, document);
  if ((actual ?? "") === expected) return;
  throw new EngineError(
    "concurrency",
    `Could not patch document '${id}' because non current change vector was used`,
    { details: { Id: id, ExpectedChangeVector: expected, ActualChangeVector: actual } },
  );
}
