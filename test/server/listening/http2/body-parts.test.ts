/** Pieces of a body, against an array. */
import { describe, expect, test } from "vitest";
import { BodyParts } from "../../../../server/listening/http2/body-parts.ts";
import { SeededRandom } from "../../../support/random.ts";

describe("what has come of a body", () => {
  test("is taken as it was added, in any order of adding and taking", () => {
    for (let seed = 1; seed <= 200; seed++) {
      const seeded = new SeededRandom(seed);
      const random = () => seeded.next();
      const parts = new BodyParts();
      const added: Buffer[] = [];
      const taken: Buffer[] = [];
      for (let step = 0; step < 100; step++) {
        if (random() < 0.7) {
          const length = 1 + Math.floor(random() ** 4 * 16_384);
          const piece = Buffer.alloc(length, step);
          added.push(piece);
          parts.add(piece, random() < 0.1 ? 0 : Math.max(length, Math.floor(random() * 65_536)));
        } else if (random() < 0.8) {
          const part = parts.take();
          if (part !== undefined) taken.push(part);
        } else taken.push(parts.takeAll());
        const held = Buffer.concat(added).length - Buffer.concat(taken).length;
        expect(parts.bytes, `seed ${seed}`).toBe(held);
      }
      taken.push(parts.takeAll());
      expect(parts.take()).toBeUndefined();
      expect(Buffer.concat(taken).equals(Buffer.concat(added)), `seed ${seed}`).toBe(true);
    }
  });

  test("is not copied when it is all of the body, or most of its chunk", () => {
    const parts = new BodyParts();
    const small = Buffer.from("small");
    parts.add(small, 0);
    expect(parts.takeAll()).toBe(small);
    const large = Buffer.alloc(16_384);
    parts.add(large, 65_536);
    expect(parts.take()).toBe(large);
  });
});
