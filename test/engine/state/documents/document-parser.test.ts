import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { EngineError } from "../../../../engine/base/errors.ts";
import { documentDepthMax } from "../../../../engine/base/limits.ts";
import {
  DocumentParser,
  metadataSpanSlots,
} from "../../../../engine/state/documents/document-parser.ts";
import type { ParsedDocument } from "../../../../engine/state/documents/parsed-document.ts";
import { ShapeTable } from "../../../../engine/state/documents/shapes.ts";
import { documentText, valueText } from "../../base/json/json-text.ts";
import { slowMembers, slowMinify } from "../../base/json/slow-minify.ts";

/**
 * Returns all results of parsing a document, after checking that a parse in slices of a few bytes
 * gives the same.
 */
function parse(text: string | Buffer, parser = new DocumentParser(new ShapeTable())) {
  // Inside a larger buffer, so that a read past the end meets bytes that would continue the text.
  const bytes = Buffer.concat([Buffer.from('"}]'), Buffer.from(text), Buffer.from('0"}]')]);
  const sliced =
    text.length < 2_000 ? [1, 2, 3, 7].map((count) => parseInSlices(bytes, count)) : [];
  let seen: ReturnType<typeof resultOf>;
  try {
    seen = resultOf(parser.parse(bytes, 3, bytes.length - 4));
  } catch (error) {
    for (const result of sliced) expect(result).toEqual(error);
    throw error;
  }
  const { shapeId: _, ...whole } = seen;
  for (const result of sliced) expect(result).toMatchObject(whole);
  return seen;
}

/** Returns the results of a parse that pauses after `count` bytes, or the error that it throws. */
function parseInSlices(bytes: Buffer, count: number) {
  const parser = new DocumentParser(new ShapeTable());
  const target = Buffer.alloc(bytes.length - 7);
  const work = parser.parseInSlices(bytes, 3, bytes.length - 4, target, count);
  let pauses = 0;
  try {
    for (;;) {
      const step = work.next();
      if (step.done !== true) {
        pauses++;
        continue;
      }
      expect(pauses).toBeLessThanOrEqual(Math.ceil(bytes.length / count));
      expect(step.value.found.source).toBe(target);
      return resultOf(step.value);
    }
  } catch (error) {
    return error;
  }
}

function resultOf({ found, body }: ParsedDocument) {
  const metadata = new Map<string, string>();
  for (let k = 0; k < found.metadataCount * metadataSpanSlots; k += metadataSpanSlots) {
    const [keyFrom, keyTo, from, to] = found.metadataSpans.subarray(k, k + metadataSpanSlots);
    metadata.set(
      found.metadata.toString("utf8", keyFrom, keyTo),
      found.metadata.toString("utf8", from, to),
    );
  }
  return {
    body: body.toString(),
    metadata,
    metadataText: found.metadata.toString("utf8", 0, found.metadataLength),
    isAscii: found.isAscii,
    shapeId: found.shapeId,
    offsets: [...found.fieldOffsets.subarray(0, found.fieldCount)],
  };
}

function errorOf(text: string | Buffer): EngineError {
  try {
    parse(text);
  } catch (error) {
    if (error instanceof EngineError) return error;
    throw error;
  }
  throw new Error(`accepted: ${text}`);
}

const parser = new DocumentParser(null);
function minify(text: string | Buffer): string {
  const bytes = Buffer.from(text);
  return parser.parseValue(bytes, 0, bytes.length).body.toString();
}

describe("stored text, as in RavenDB 7.2.7", () => {
  const kept = [
    "{}",
    '{"a":1.0,"b":1.50,"c":1E5,"d":1e+5,"e":1E+5,"f":1e-400,"g":9223372036854775808}',
    '{"a":123456789012345678901234567890,"b":0.1234567890123456789012345678901234567890}',
    '{"a":-0.0,"b":-0e-5,"c":-0.00,"d":0.0e400,"e":1.7976931348623157e308}',
    '{"":1,"__proto__":2,"constructor":3}',
    '{"a":"\\u0000\\u0001\\u001F\\b\\t\\n\\f\\r\\"\\\\"}',
    '{"a":"é日本😀\u2028\ufeff\uffff<>&\'"}',
    '{"z":1,"a":2,"1":3,"0":4}',
    '{"a":{"@metadata":{"@id":"x"}}}',
    '{"a\\u001F/":{"b\\"":1}}',
  ];
  it.each(kept)("keeps %s", (text) => expect(parse(text).body).toBe(text));

  const changed = [
    ['{"a":-0,"g":[-0]}', '{"a":0,"g":[0]}'],
    [' \t\r\n{ "a" : [ 1 , 2 ] , "b" : { } } \n', '{"a":[1,2],"b":{}}'],
    ['\ufeff{"a":1}', '{"a":1}'],
    [
      '{"a":"\\u001f\\/\\u0041\\u0027\\u0080\\u2028\\u007f"}',
      '{"a":"\\u001F/A\'\u0080\u2028\u007f"}',
    ],
    ['{"a":1,"b":2,"a":3}', '{"b":2,"a":3}'],
    ['{"\\u0041":1,"A":2}', '{"A":2}'],
    ['{"a\\u001f":1,"a\\u001F":2}', '{"a\\u001F":2}'],
    ['{"a":{"x":1,"y":2,"x":3},"b":[{"q":1,"q":2}]}', '{"a":{"y":2,"x":3},"b":[{"q":2}]}'],
    ['{"a":"\\ud800"}', '{"a":"\ufffd"}'],
    ['{"a":"\\udc00x"}', '{"a":"\ufffdx"}'],
    ['{"a":"\\ud800\\u0041"}', '{"a":"\ufffdA"}'],
    ['{"a":"\\ud800\\ud83d\\ude00"}', '{"a":"\ufffd😀"}'],
  ] as const;
  it.each(changed)("converts %s to %s", (text, stored) => expect(parse(text).body).toBe(stored));

  it("decodes an escaped surrogate pair, which RavenDB 7.2.7 loses", () => {
    expect(parse('{"a":"\\ud83d\\ude00"}').body).toBe('{"a":"😀"}');
  });

  it("keeps a zero with an exponent, which RavenDB 7.2.7 rejects", () => {
    expect(parse('{"a":0e1,"b":-0e5}').body).toBe('{"a":0e1,"b":-0e5}');
  });

  it("keeps a key of 300,000 characters", () => {
    const text = `{"${"k".repeat(300_000)}":1,"b":2}`;
    expect(parse(text).body).toBe(text);
  });
});

describe("rejected text", () => {
  const cases = [
    ["", "json-truncated"],
    ["  ", "json-truncated"],
    ["{", "json-truncated"],
    ['{"a', "json-truncated"],
    ['{"a"', "json-truncated"],
    ['{"a":', "json-truncated"],
    ['{"a":1', "json-truncated"],
    ['{"a":1,', "json-truncated"],
    ['{"a":tr', "json-truncated"],
    ['{"a":-', "json-truncated"],
    ['{"a":"\\', "json-truncated"],
    ['{"a":"\\u00', "json-truncated"],
    ["[]", "json-not-object"],
    ['"x"', "json-not-object"],
    ["1", "json-not-object"],
    ["null", "json-not-object"],
    ["x", "json-invalid"],
    ["nope", "json-invalid"],
    ["truth", "json-invalid"],
    ['{"a":1e400}', "json-invalid"],
    ['{"a":-1e400}', "json-invalid"],
    [`{"a":${"9".repeat(400)}}`, "json-invalid"],
    ['{"a":01}', "json-invalid"],
    ['{"a":-01}', "json-invalid"],
    ['{"a":00}', "json-invalid"],
    ['{"a":+1}', "json-invalid"],
    ['{"a":.5}', "json-invalid"],
    ['{"a":1.}', "json-invalid"],
    ['{"a":-}', "json-invalid"],
    ['{"a":1e}', "json-invalid"],
    ['{"a":1e+}', "json-invalid"],
    ['{"a":0x10}', "json-invalid"],
    ['{"a":NaN}', "json-invalid"],
    ['{"a":Infinity}', "json-invalid"],
    ['{"a":-Infinity}', "json-invalid"],
    ['{"a":tru}', "json-invalid"],
    ['{"a":nulL}', "json-invalid"],
    ['{"a":}', "json-invalid"],
    ['{"a" 1}', "json-invalid"],
    ["{a:1}", "json-invalid"],
    ["{'a':1}", "json-invalid"],
    ['{/*c*/"a":1}', "json-invalid"],
    ['{"a":1}//c', "json-invalid"],
    ['{"a":1 "b":2}', "json-invalid"],
    ['{"a":1,}', "json-invalid"],
    ['{"a":[1,]}', "json-invalid"],
    ['{"a":[1,,2]}', "json-invalid"],
    ['{"a":[1 2]}', "json-invalid"],
    ['{"a":[1}}', "json-invalid"],
    ['{"a":{]}', "json-invalid"],
    ["{,}", "json-invalid"],
    ['{"a":1}x', "json-invalid"],
    ['{"a":1}{"b":2}', "json-invalid"],
    ['{"a":"x\ny"}', "json-invalid"],
    ['{"a":"x\ty"}', "json-invalid"],
    ['{"a":\u00a01}', "json-invalid"],
    ['\ufeff\ufeff{"a":1}', "json-invalid"],
    ['{"a":"\\u00zz"}', "json-invalid"],
    ['{"a":"\\q"}', "json-escape"],
    ['{"a":"\\U0041"}', "json-escape"],
    ['{"@metadata":null}', "null-reference"],
    ['{"@metadata":[]}', "invalid-format"],
    ['{"@metadata":"x"}', "invalid-format"],
    ['{"@metadata":{},"@metadata":1}', "invalid-format"],
  ] as const;
  it.each(cases)("rejects %s as %s", (text, code) => expect(errorOf(text).code).toBe(code));

  it("reports line and column", () => {
    expect(errorOf('{"a":1,\n "b":x}').message).toContain("2:6");
    expect(errorOf('{"a":1').message).toContain("1:7");
  });

  it("reports the byte offset where counting lines would take long", () => {
    const text = `{"a":"${"x".repeat(5_000_000)}",}`;
    expect(() => parse(text)).toThrow(/^Not JSON at byte 5000009: /);
  });

  it("leaves the parser usable after an error", () => {
    const one = new DocumentParser(new ShapeTable());
    for (const [text] of cases) expect(() => parse(text, one)).toThrow();
    expect(parse('{"a":1,"@metadata":{"k":"é"}}', one)).toMatchObject({
      body: '{"a":1}',
      isAscii: true,
    });
  });
});

describe("nesting", () => {
  const nested = (depth: number, open: string, close: string, middle = ""): string =>
    `{"a":${open.repeat(depth - 1)}${middle}${close.repeat(depth - 1)}}`;

  it.each([
    ["[", "]", ""],
    ['{"a":', "}", "0"],
  ])("accepts %s at the maximum depth and rejects one level more", (open, close, middle) => {
    const deepest = nested(documentDepthMax, open, close, middle);
    expect(parse(deepest).body).toBe(deepest);
    expect(errorOf(nested(documentDepthMax + 1, open, close, middle)).code).toBe("too-large");
  });

  it("handles a million open brackets", () => {
    expect(errorOf(`{"a":${"[".repeat(1_000_000)}`).code).toBe("too-large");
  });
});

describe("UTF-8", () => {
  const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  const isValid = (bytes: Buffer): boolean => {
    try {
      strict.decode(bytes);
      return true;
    } catch {
      return false;
    }
  };
  const inDocument = (bytes: readonly number[]): Buffer =>
    Buffer.concat([Buffer.from('{"a":"'), Buffer.from(bytes), Buffer.from('"}')]);
  const accepts = (bytes: Buffer): boolean => {
    try {
      parser.parse(bytes, 0, bytes.length);
      return true;
    } catch {
      return false;
    }
  };

  it("accepts exactly the valid pairs of bytes from 0x80 on", () => {
    for (let first = 0x80; first < 0x100; first++) {
      for (let second = 0x80; second < 0x100; second++) {
        const bytes = inDocument([first, second]);
        if (accepts(bytes) !== isValid(bytes)) expect.fail(`${first} ${second}`);
      }
    }
  });

  const bounds = [
    0x41, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc1, 0xc2, 0xdf, 0xe0, 0xe1,
  ];
  bounds.push(0xec, 0xed, 0xee, 0xef, 0xf0, 0xf1, 0xf3, 0xf4, 0xf5, 0xff);

  it("accepts exactly the valid sequences of bytes at the boundaries", () => {
    const sequence = fc.array(fc.constantFrom(...bounds), { minLength: 1, maxLength: 5 });
    fc.assert(
      fc.property(sequence, (sequenceBytes) => {
        const bytes = inDocument(sequenceBytes);
        expect(accepts(bytes)).toBe(isValid(bytes));
      }),
      { numRuns: 5000 },
    );
  });

  it.each([
    ["overlong", [0xc0, 0xaf]],
    ["a surrogate", [0xed, 0xa0, 0x80]],
    ["above U+10FFFF", [0xf4, 0x90, 0x80, 0x80]],
    ["a stray continuation", [0x80]],
  ])("rejects %s", (_name, bytes) => expect(errorOf(inDocument(bytes)).code).toBe("json-invalid"));

  it("reports a sequence cut by the end as truncated", () => {
    expect(errorOf(Buffer.from([...Buffer.from('{"a":"'), 0xe6, 0x97])).code).toBe(
      "json-truncated",
    );
  });
});

describe("compared with JSON.parse and a simple model", () => {
  it("stores any value as the model does", () => {
    fc.assert(
      fc.property(valueText, (text) => {
        let expected: string;
        try {
          expected = slowMinify(text);
        } catch {
          expect(() => minify(text)).toThrow(EngineError);
          return;
        }
        expect(minify(text)).toBe(expected);
        expect(minify(expected)).toBe(expected);
      }),
      { numRuns: 3000 },
    );
  });

  it("accepts changed text exactly when JSON.parse does and its numbers are finite", () => {
    const inserts = [..."{}[]\",:\\0123456789.eE+-truefalsn \n\u0001/'é"];
    const mutation = fc.tuple(
      fc.nat(),
      fc.constantFrom("insert", "remove", "replace", "cut"),
      fc.constantFrom(...inserts),
    );
    fc.assert(
      fc.property(
        valueText,
        fc.array(mutation, { minLength: 1, maxLength: 3 }),
        (text, changes) => {
          let mutated = text;
          for (const [place, kind, insert] of changes) {
            const at = place % (mutated.length + 1);
            const rest = mutated.slice(kind === "insert" ? at : at + 1);
            mutated = mutated.slice(0, at) + (kind === "remove" || kind === "cut" ? "" : insert);
            if (kind !== "cut") mutated += rest;
          }
          mutated = mutated.replace(/\p{Surrogate}/gu, "\ufffd");
          let expected: string | null = null;
          try {
            expected = slowMinify(mutated);
          } catch {
            // Not JSON, or out of range.
          }
          if (expected === null) expect(() => minify(mutated)).toThrow(EngineError);
          else expect(minify(mutated)).toBe(expected);
        },
      ),
      { numRuns: 5000 },
    );
  });

  it("parses each document independently of the shapes before it", () => {
    const shared = new DocumentParser(new ShapeTable());
    fc.assert(
      fc.property(fc.array(documentText, { maxLength: 5 }), (texts) => {
        for (const text of texts) {
          let members: Map<string, string>;
          try {
            members = slowMembers(text);
          } catch {
            expect(() => parse(text, shared)).toThrow(EngineError);
            continue;
          }
          const metadata = members.get('"@metadata"');
          members.delete('"@metadata"');
          if (metadata !== undefined && !metadata.startsWith("{")) {
            expect(() => parse(text, shared)).toThrow("@metadata must be an object");
            continue;
          }
          const found = parse(text, shared);
          const body = `{${[...members].map(([name, value]) => `${name}:${value}`).join(",")}}`;
          expect(found.body).toBe(body);
          if (/^\p{ASCII}*$/u.test(body) !== found.isAscii) expect(found.isAscii).toBe(false);
          expect(found.metadataText).toBe(metadata ?? "");
          expect(found.metadata).toEqual(
            metadata === undefined ? new Map() : slowMembers(metadata),
          );
          expect(found.offsets.length).toBe(members.size);
          const bytes = Buffer.from(body);
          [...members.values()].forEach((value, index) => {
            const at = found.offsets[index] as number;
            expect(bytes.toString("utf8", at, at + Buffer.byteLength(value))).toBe(value);
          });
        }
      }),
      { numRuns: 2000 },
    );
  });
});

describe("@metadata", () => {
  it.each([
    '{"@metadata":{"k":1},"a":1,"b":2}',
    '{"a":1,"@metadata":{"k":1},"b":2}',
    '{"a":1,"b":2,"@metadata":{"k":1}}',
    '{"@metadata":5,"a":1,"@metadata":{"k":1},"b":2}',
    ' { "@metadata" : { "k" : 1 } , "a" : 1 , "b" : 2 } ',
    '{"a":1,"\\u0040metadata":{"k":1},"b":2}',
  ])("is parsed separately in %s", (text) => {
    expect(parse(text)).toMatchObject({
      body: '{"a":1,"b":2}',
      metadataText: '{"k":1}',
      metadata: new Map([['"k"', "1"]]),
      offsets: [5, 11],
    });
  });

  it("is independent of the previous document", () => {
    const shared = new DocumentParser(new ShapeTable());
    const users = '"@metadata":{"@collection":"Users"}';
    const texts = [
      `{"a":1,${users}}`,
      `{"a":2,${users}}`,
      `{${users},"a":3}`,
      `{"a":4,${users},"b":5}`,
      `{"a":4, ${users} }`,
      '{"a":6}',
      `{"a":7,${users}}`,
      `{"a":7,${users},${users}}`,
      '{"a":8,"@metadata":{"@collection":"Users","k":1}}',
      '{"a":8,"@metadata":{"k":1,"k":2}}',
      '{"a":8,"@metadata":{"k":1,"k":2}}',
      '{"a":8,"@metadata":{"k":2}}',
      '{"a":9,"@metadata":{}}',
      '{"a":9,"@metadata":{}}',
      '{"é":1,"@metadata":{"e":"é"}}',
      '{"é":2,"@metadata":{"e":"é"}}',
    ];
    for (const text of texts) {
      const { shapeId: _, ...alone } = parse(text);
      expect(parse(text, shared), text).toMatchObject(alone);
    }
    expect(() => parse(`{"a":1,${users}`, shared)).toThrow("JSON ends too early");
    expect(() => parse(`{"a":1,${users}]`, shared)).toThrow("Not JSON");
    expect(() => parse('{"a":1,"@metadata":{"@collection":"Users"', shared)).toThrow("too early");
    expect(() => parse('{"a":1,"@metadata":"no"}', shared)).toThrow("must be an object");
    expect(parse(`{"a":1,${users}}`, shared).metadataText).toBe('{"@collection":"Users"}');
  });

  it("is not counted for the character flags of the body", () => {
    expect(parse('{"@metadata":{"é":1},"a":1}').isAscii).toBe(true);
    expect(parse('{"@metadata":{"e":1},"a":"é"}').isAscii).toBe(false);
    expect(parse('{"a":"\\u00e9","@metadata":{}}').isAscii).toBe(false);
    expect(parse('{"é":1,"@metadata":{}}').isAscii).toBe(false);
  });

  it("is an ordinary key in a value that is not a document", () => {
    expect(minify('{ "@metadata" : 1, "a":2}')).toBe('{"@metadata":1,"a":2}');
  });
});

describe("scratch memory", () => {
  it("grows for a large document and is released afterwards", () => {
    const one = new DocumentParser(null);
    const large = Buffer.from(
      `{"a":"${"x".repeat(9_000_000)}","@metadata":{"b":"${"y".repeat(9_000_000)}"}}`,
    );
    expect(one.parse(large, 0, large.length).found).toMatchObject({
      bodyLength: 9_000_008,
      metadataLength: 9_000_008,
    });
    const small = Buffer.from('{"a":1,"@metadata":{}}');
    const { body, found } = one.parse(small, 0, small.length);
    expect(body.buffer.byteLength + found.metadata.length).toBeLessThan(10_000_000);
    expect(body.toString()).toBe('{"a":1}');
  });
});

it("a number may have at most 65,536 characters", () => {
  const numberOf = (length: number) => Buffer.from(`{"N":0.${"7".repeat(length - 2)}}`);
  const parser = new DocumentParser(null);
  const longest = numberOf(65_536);
  expect(parser.parse(longest, 0, longest.length).body.toString()).toBe(longest.toString());
  const longer = numberOf(65_537);
  expect(() => parser.parse(longer, 0, longer.length)).toThrow(/more than 65536 characters/);
});
