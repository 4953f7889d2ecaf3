/**
 * A JSON value as a tree whose scalars remain text, for changes inside a document: unchanged parts keep their spelling,
 * including long numbers. Knows nothing of documents.
 *
 * Invariants:
 * - The keys of an object keep their order; new ones are added at the end.
 */
import { EngineError } from "../errors.ts";
import { byteArrayOpen, byteObjectClose, byteObjectOpen } from "./bytes.ts";
import { decodeString, firstElement, nextElement, skipString, skipValue } from "./field-access.ts";

/** The text of a scalar, an array, or the members of an object. */
export type TextNode = string | TextNode[] | Map<string, TextNode>;

/** Nesting depth of objects and arrays; reading is recursive. */
const treeDepthMax = 1000;

/** Reads the value at `at` in minified, checked text. @throws EngineError too-large when it is too deeply nested */
export function readTree(bytes: Buffer, at: number, depth = 0): TextNode {
  if (depth > treeDepthMax) {
    throw new EngineError("too-large", `More than ${treeDepthMax} levels cannot be changed so.`);
  }
  if (bytes[at] === byteArrayOpen) {
    const elements: TextNode[] = [];
    for (let i = firstElement(bytes, at); i >= 0; i = nextElement(bytes, skipValue(bytes, i))) {
      elements.push(readTree(bytes, i, depth + 1));
    }
    return elements;
  }
  if (bytes[at] === byteObjectOpen) {
    const members = new Map<string, TextNode>();
    for (let i = at + 1; bytes[i] !== byteObjectClose; ) {
      const keyEnd = skipString(bytes, i);
      members.set(decodeString(bytes, i, keyEnd), readTree(bytes, keyEnd + 1, depth + 1));
      const end = skipValue(bytes, keyEnd + 1);
      if (bytes[end] === byteObjectClose) break;
      i = end + 1;
    }
    return members;
  }
  return bytes.utf8Slice(at, skipValue(bytes, at));
}

/** Returns the minified text of a tree. */
export function treeText(node: TextNode): string {
  if (typeof node === "string") return node;
  if (Array.isArray(node)) return `[${node.map(treeText).join(",")}]`;
  const members = [...node].map(([key, value]) => `${JSON.stringify(key)}:${treeText(value)}`);
  return `{${members.join(",")}}`;
}

/** Returns a deep copy. */
export function copyTree(node: TextNode): TextNode {
  if (typeof node === "string") return node;
  if (Array.isArray(node)) return node.map(copyTree);
  return new Map([...node].map(([key, value]) => [key, copyTree(value)]));
}

/** Returns whether the values are equal. Numbers are compared by value, and the order of keys is ignored. */
export function equalTrees(one: TextNode, other: TextNode): boolean {
  if (typeof one === "string" || typeof other === "string") {
    return typeof one === typeof other && JSON.parse(one as string) === JSON.parse(other as string);
  }
  if (Array.isArray(one) || Array.isArray(other)) {
    if (!Array.isArray(one) || !Array.isArray(other) || one.length !== other.length) return false;
    return one.every((element, position) => equalTrees(element, other[position] as TextNode));
  }
  if (one.size !== other.size) return false;
  return [...one].every(([key, value]) => {
    const match = other.get(key);
    return match !== undefined && equalTrees(value, match);
  });
}
