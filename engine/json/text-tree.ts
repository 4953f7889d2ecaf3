/**
 * A JSON value as a tree whose scalars are still text, for changes in the middle of a document: what is not touched
 * comes out again as it went in, long numbers too. Knows nothing of documents.
 *
 * Invariants:
 * - The keys of an object keep their order; a new one comes last.
 */
import { EngineError } from "../errors.ts";
import { byteArrayOpen, byteObjectClose, byteObjectOpen } from "./bytes.ts";
import { decodeString, firstElement, nextElement, skipString, skipValue } from "./field-access.ts";

/** Text of a scalar, or an array, or the members of an object. */
export type TextNode = string | TextNode[] | Map<string, TextNode>;

/** Levels of objects and arrays inside each other; reading is recursive. */
const treeDepthMax = 1000;

/** The value that begins at `at` in minified, checked text. @throws EngineError too-large when it is too deep */
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

/** Minified text. */
export function treeText(node: TextNode): string {
  if (typeof node === "string") return node;
  if (Array.isArray(node)) return `[${node.map(treeText).join(",")}]`;
  const members = [...node].map(([key, value]) => `${JSON.stringify(key)}:${treeText(value)}`);
  return `{${members.join(",")}}`;
}

/** A tree that shares nothing with this one. */
export function copyTree(node: TextNode): TextNode {
  if (typeof node === "string") return node;
  if (Array.isArray(node)) return node.map(copyTree);
  return new Map([...node].map(([key, value]) => [key, copyTree(value)]));
}

/** Are they the same value? Numbers count by their value, the order of keys does not. */
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
