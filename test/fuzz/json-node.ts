/**
 * JSON as it can be sent, valid or not: keys may be repeated, and a value may be any text. For
 * mutations.
 */
import type { SeededRandom } from "../support/random.ts";
import { interestingText, rawValues } from "./interesting.ts";

type JsonNode =
  | { readonly kind: "raw"; text: string }
  | { readonly kind: "object"; readonly members: [key: string, value: JsonNode][] }
  | { readonly kind: "array"; readonly items: JsonNode[] };

export function nodeOf(value: unknown): JsonNode {
  if (Array.isArray(value)) return { kind: "array", items: value.map(nodeOf) };
  if (typeof value === "object" && value !== null) {
    const members = Object.entries(value).map(([key, each]): [string, JsonNode] => [
      key,
      nodeOf(each),
    ]);
    return { kind: "object", members };
  }
  return { kind: "raw", text: JSON.stringify(value) ?? "null" };
}

export function textOf(node: JsonNode): string {
  switch (node.kind) {
    case "raw":
      return node.text;
    case "array":
      return `[${node.items.map(textOf).join(",")}]`;
    case "object":
      return `{${node.members.map(([key, value]) => `${JSON.stringify(key)}:${textOf(value)}`).join(",")}}`;
  }
}

/** The position of a value: it can be read, replaced, and removed. */
interface Place {
  readonly value: JsonNode;
  readonly depth: number;
  put(value: JsonNode): void;
  remove(): void;
  /** Inserts a copy after itself. */
  repeat(): void;
  rename(key: string): void;
}

function placesIn(node: JsonNode, depth: number, found: Place[]): void {
  if (node.kind === "array") {
    node.items.forEach((value, i) => {
      found.push({
        value,
        depth,
        put: (next) => node.items.splice(i, 1, next),
        remove: () => node.items.splice(i, 1),
        repeat: () => node.items.splice(i, 0, value),
        rename: () => node.items.push(value),
      });
      placesIn(value, depth + 1, found);
    });
  } else if (node.kind === "object") {
    node.members.forEach((member, i) => {
      const [key, value] = member;
      found.push({
        value,
        depth,
        put: (next) => {
          member[1] = next;
        },
        remove: () => node.members.splice(i, 1),
        repeat: () => node.members.splice(i, 0, [key, value]),
        rename: (name) => {
          member[0] = name;
        },
      });
      placesIn(value, depth + 1, found);
    });
  }
}

const keys = ["", "@metadata", "@id", "@collection", "Id", "id", "Type", "__proto__", "$type"];

/** Changes something somewhere in `root`. @returns the new root */
export function mutateNode(random: SeededRandom, root: JsonNode): JsonNode {
  const places: Place[] = [];
  placesIn(root, 0, places);
  const place = places[random.below(places.length + 1)];
  if (place === undefined) return random.chance(0.3) ? anyNode(random) : root;
  switch (random.below(9)) {
    case 0:
      place.remove();
      break;
    case 1:
      place.repeat();
      break;
    case 2:
      place.rename(
        random.chance(0.7) ? (keys[random.below(keys.length)] as string) : interestingText(random),
      );
      break;
    case 3:
      place.put((places[random.below(places.length)] as Place).value);
      break;
    case 4:
      place.put({ kind: "array", items: [place.value] });
      break;
    case 5:
      place.put(nested(random, place.value));
      break;
    default:
      place.put(anyNode(random));
  }
  return isCyclic(root, 0) ? { kind: "raw", text: "null" } : root;
}

/** A value that was put into itself has no text. */
function isCyclic(node: JsonNode, depth: number): boolean {
  if (depth > 100) return true;
  if (node.kind === "array") return node.items.some((item) => isCyclic(item, depth + 1));
  return node.kind === "object" && node.members.some(([, value]) => isCyclic(value, depth + 1));
}

function nested(random: SeededRandom, value: JsonNode): JsonNode {
  const depth = [2, 50, 400, 5000, 10_001][random.below(5)] as number;
  const text = textOf(value);
  return random.chance(0.5)
    ? { kind: "raw", text: "[".repeat(depth) + text + "]".repeat(depth) }
    : { kind: "raw", text: '{"a":'.repeat(depth) + text + "}".repeat(depth) };
}

function anyNode(random: SeededRandom): JsonNode {
  if (random.chance(0.5)) {
    return { kind: "raw", text: rawValues[random.below(rawValues.length)] as string };
  }
  return { kind: "raw", text: JSON.stringify(interestingText(random)) };
}
