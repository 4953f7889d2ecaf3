import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { CommandScanner } from "../../../engine/batches/command-scanner.ts";

interface Item {
  readonly text: string;
  /** Raw bytes after the command. */
  readonly raw: Buffer;
}

/** Feeds `body` in chunks that end at `cuts`; returns the commands' texts and raw bytes. */
function scan(
  body: Buffer,
  cuts: readonly number[],
): { texts: string[]; raws: string[]; ended: boolean } {
  const scanner = new CommandScanner();
  const ends = [...new Set([...cuts.map((cut) => cut % (body.length + 1)), body.length])].sort(
    (a, b) => a - b,
  );
  const commands: { bytes: Buffer; startAt: number; endAt: number }[] = [];
  const raws: string[] = [];
  let from = 0;
  let wanted = 0;
  let raw: Buffer[] = [];
  for (const to of ends) {
    scanner.push(Buffer.from(body.subarray(from, to)));
    from = to;
    for (;;) {
      if (wanted > 0) {
        const part = scanner.raw(wanted);
        if (part.length === 0) break;
        raw.push(Buffer.from(part));
        wanted -= part.length;
        if (wanted > 0) continue;
        raws.push(Buffer.concat(raw).toString("hex"));
        raw = [];
      }
      const next = scanner.next();
      if (next === "more") break;
      if (next === "end") return { texts: textsOf(commands), raws, ended: true };
      commands.push(next);
      wanted = Number(next.value("ContentLength") ?? 0);
    }
  }
  return { texts: textsOf(commands), raws, ended: false };
}

/** Read at the very end: the bytes of a command must not change after it was returned. */
function textsOf(commands: readonly { bytes: Buffer; startAt: number; endAt: number }[]): string[] {
  return commands.map(({ bytes, startAt, endAt }) => bytes.toString("utf8", startAt, endAt));
}

const nasty = fc.string({
  unit: fc.constantFrom('"', "\\", "{", "}", "[", "]", ",", "é", "a", "\n", "😀"),
});
const documents = fc.jsonValue({
  maxDepth: 3,
  stringUnit: fc.constantFrom('"', "\\", "{", "]", "x", "ß") as never,
});
const items: fc.Arbitrary<Item> = fc.oneof(
  fc.tuple(nasty, documents).map(([Id, value]) => ({
    text: JSON.stringify({ Id, Type: "PUT", Document: { value } }),
    raw: Buffer.alloc(0),
  })),
  fc.tuple(nasty, fc.uint8Array({ minLength: 1, maxLength: 40 })).map(([Name, bytes]) => ({
    text: JSON.stringify({ Type: "AttachmentPUT", Name, ContentLength: bytes.length }),
    raw: Buffer.from(bytes),
  })),
);

describe("CommandScanner", () => {
  test("returns the same commands and raw bytes for any chunk boundaries", () => {
    fc.assert(
      fc.property(
        fc.array(items, { maxLength: 6 }),
        fc.array(fc.nat(), { maxLength: 12 }),
        fc.constantFrom("", " ", "\n\t "),
        (list, cuts, space) => {
          const parts: Buffer[] = [];
          for (const [position, { text, raw }] of list.entries()) {
            if (position > 0) parts.push(Buffer.from(`${space},${space}`));
            parts.push(Buffer.from(text), raw);
          }
          const body = Buffer.concat([
            Buffer.from(`${space}[${space}`),
            ...parts,
            Buffer.from(`${space}]`),
          ]);
          const expected = {
            texts: list.map(({ text }) => text),
            raws: list.filter(({ raw }) => raw.length > 0).map(({ raw }) => raw.toString("hex")),
            ended: true,
          };
          expect(scan(body, cuts)).toEqual(expected);
          expect(
            scan(
              body,
              Array.from({ length: body.length }, (_, at) => at),
            ),
          ).toEqual(expected);
        },
      ),
      { numRuns: 300 },
    );
  });

  test("requests more bytes as long as the command is incomplete", () => {
    const body = '[{"Type":"PUT","Id":"a","Document":{"b":"}]"}},{"Type":"HeartBeat"}]';
    for (let length = 0; length < body.length; length++) {
      expect(scan(Buffer.from(body.slice(0, length)), []).ended).toBe(false);
    }
    expect(scan(Buffer.from(body), []).ended).toBe(true);
  });

  test("rejects anything but an array of objects", () => {
    for (const text of [
      '{"a":1}',
      "5",
      "[5]",
      "[[]]",
      '["a"]',
      "[{}]",
      '[{"Type":"PUT"} 1',
      '[{"Type":"PUT"},,',
      "[,",
    ]) {
      expect(() => scan(Buffer.from(text), []), text).toThrow();
    }
  });
});

test("a command has a maximum size, and nothing is retained of a released command", () => {
  const scanner = new CommandScanner(1024);
  const start = '[{"Type":"PUT","Id":"a","Document":{"T":"';
  scanner.push(Buffer.from(start));
  expect(scanner.next()).toBe("more");
  const push = () => {
    for (let count = 0; count < 20; count++) scanner.push(Buffer.alloc(16 * 1024, "x"));
  };
  expect(push).toThrow(/at most 66560 bytes \(setting Http.MaxRequestBodySizeInMb\)/);
  expect(scanner.heldBytes).toBeGreaterThan(64 * 1024);
  scanner.letGo();
  expect(scanner.heldBytes).toBe(0);
});
