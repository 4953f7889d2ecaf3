import { describe, expect, test } from "vitest";
import { Chain, voidFramesMax } from "../../../../engine/storage/replication/chain.ts";
import {
  contentChunks,
  type EncodedFrame,
  encodeFrame,
  epochPayload,
  type FrameType,
  frameTypes,
  genesisPayload,
  zeroHash,
} from "../../../../engine/storage/replication/frame.ts";
import type { Mark } from "../../../../engine/storage/replication/replica-types.ts";

/** Creates consecutive frames of one leader. */
class Leader {
  readonly #generation: number;
  epoch: number;
  sequence: number;
  hash: string;

  constructor({ generation, epoch, sequence, hash }: Mark) {
    this.#generation = generation;
    this.epoch = epoch;
    this.sequence = sequence;
    this.hash = hash;
  }

  make(type: FrameType, ...pieces: Buffer[]): EncodedFrame {
    const { epoch, hash: previous } = this;
    const place = { generation: this.#generation, epoch, sequence: ++this.sequence, previous };
    const frame = encodeFrame(type, place, pieces);
    this.hash = frame.hash;
    return frame;
  }

  commit(text: string): EncodedFrame {
    return this.make(frameTypes.commit, Buffer.from(text));
  }

  startRequest(tag: string): EncodedFrame {
    this.epoch++;
    return this.make(frameTypes.epoch, epochPayload(tag, "1"));
  }

  /** Another leader that has read all frames of this one so far. */
  rival(): Leader {
    const { epoch, sequence, hash } = this;
    return new Leader({ generation: this.#generation, epoch, sequence, hash });
  }
}

const start: Mark = { generation: 1, sequence: 10, epoch: 4, hash: "11".repeat(32) };

/** A chain that has read up to `start`, and the leader of that epoch. */
function started(): { chain: Chain; leader: Leader } {
  return { chain: new Chain("db", 1, start), leader: new Leader(start) };
}

/** The chain's verdict on each frame. */
function take(chain: Chain, ...frames: EncodedFrame[]): string[] {
  return frames.map((frame) => {
    const verdict = chain.verdictOn(frame);
    if (verdict.kind === "void") chain.skip(frame);
    if (verdict.kind !== "valid") return "reason" in verdict ? verdict.reason : verdict.kind;
    const { delivery, epoch } = chain.take(frame);
    if (epoch !== null) return `led by ${epoch.tag}`;
    if (delivery === null) return "valid";
    return delivery.kind === "group" ? `${Buffer.concat(delivery.pieces)}` : delivery.kind;
  });
}

describe("a chain", () => {
  test("accepts groups and contents in order, and tracks its position", () => {
    const { chain, leader } = started();
    const parts = ["one ", "two "].map((text) => leader.make(frameTypes.part, Buffer.from(text)));
    expect(take(chain, ...parts, leader.commit("three"))).toEqual([
      "valid",
      "valid",
      "one two three",
    ]);
    expect(chain.mark).toEqual({ generation: 1, sequence: 13, epoch: 4, hash: leader.hash });
    const chunk = { sha256: "22".repeat(32), offset: 0, total: 1, bytes: Buffer.from("x") };
    const content = leader.make(frameTypes.content, ...contentChunks(chunk));
    const barrier = leader.make(frameTypes.barrier);
    expect(take(chain, content, barrier)).toEqual(["content", "valid"]);
    expect([chain.position, chain.tip]).toEqual([15, 15]);
  });

  test("skips frames that a replaced leader had in flight", () => {
    const { chain, leader } = started();
    const next = leader.rival();
    const startRequest = next.startRequest("B");
    leader.commit("lost its slot");
    const late = [leader.commit("a"), leader.commit("b")];
    expect(take(chain, startRequest, ...late)).toEqual(["led by B", "void", "void"]);
    expect([chain.position, chain.tip, chain.epoch]).toEqual([13, 11, 5]);
  });

  test("skips frames that the new leader sent for earlier positions, until another epoch begins", () => {
    const { chain, leader } = started();
    const next = leader.rival();
    const startRequest = next.startRequest("B");
    leader.commit("lost its slot");
    const late = leader.commit("late");
    const again = next.rival();
    next.commit("lost its slot");
    const own = next.commit("own");
    again.sequence = own.sequence;
    const rebuilt = again.startRequest("B");
    const verdicts = take(chain, startRequest, late, own, rebuilt, again.commit("own"));
    expect(verdicts).toEqual(["led by B", "void", "void", "led by B", "own"]);
  });

  test("drops the parts of a group that another epoch interrupts", () => {
    const { chain, leader } = started();
    const part = leader.make(frameTypes.part, Buffer.from("cut "));
    const next = leader.rival();
    expect(take(chain, part, next.startRequest("B"), next.commit("whole"))).toEqual([
      "valid",
      "led by B",
      "whole",
    ]);
  });

  test("starts in the middle and gives the same verdicts", () => {
    const { chain, leader } = started();
    take(chain, leader.commit("one"), leader.rival().startRequest("B"));
    const behind = new Chain("db", 1, { ...start, sequence: 11, hash: leader.hash });
    const next = leader.rival().startRequest("B");
    leader.commit("lost its slot");
    const late = leader.commit("late");
    expect(take(chain, late)).toEqual(["void"]);
    expect(take(behind, next, late)).toEqual(["led by B", "void"]);
    expect(behind.mark).toEqual(chain.mark);
  });
});

describe("a broken stream", () => {
  test.each<[string, (leader: Leader) => EncodedFrame, string]>([
    [
      "a frame that does not follow",
      (leader) => {
        leader.hash = zeroHash;
        return leader.commit("x");
      },
      "frame 11 of epoch 4 does not follow the last valid frame",
    ],
    [
      "a frame of a future epoch",
      (leader) => {
        leader.epoch++;
        return leader.commit("x");
      },
      "frame 11 of epoch 5 is of an epoch that has not begun",
    ],
    [
      "a frame of a past epoch",
      (leader) => {
        leader.epoch -= 2;
        return leader.startRequest("B");
      },
      "frame 11 of epoch 3 does not follow epoch 4",
    ],
    [
      "an epoch after another frame",
      (leader) => {
        leader.hash = zeroHash;
        return leader.startRequest("B");
      },
      "frame 11 of epoch 5 does not follow the last valid frame",
    ],
    [
      "an epoch without a leader",
      (leader) => {
        leader.epoch++;
        return leader.make(frameTypes.epoch);
      },
      "frame 11 of epoch 5 names no leader",
    ],
    [
      "a content without a head",
      (leader) => leader.make(frameTypes.content),
      "frame 11 of epoch 4 has no content",
    ],
    [
      "another first frame",
      (leader) => leader.make(frameTypes.genesis, genesisPayload("db", null)),
      "frame 11 of epoch 4 is not the first frame",
    ],
  ])("has %s", (_name, make, reason) => {
    const { chain, leader } = started();
    expect(take(chain, make(leader))).toEqual([reason]);
    expect(chain.mark).toEqual(start);
  });

  test("has another frame between the parts of a group", () => {
    const { chain, leader } = started();
    const part = leader.make(frameTypes.part, Buffer.from("x"));
    expect(take(chain, part, leader.make(frameTypes.barrier))).toEqual([
      "valid",
      "frame 12 of epoch 4 is between the parts of a group",
    ]);
  });

  test("has more void frames than a leader can have in flight", () => {
    const { chain, leader } = started();
    leader.epoch--;
    const frames = Array.from({ length: voidFramesMax + 1 }, () => leader.commit("x"));
    const verdicts = take(chain, ...frames);
    expect(verdicts.slice(0, -1)).toEqual(Array(voidFramesMax).fill("void"));
    expect(verdicts.at(-1)).toContain("is one of more than 16 that do not count");
  });
});

describe("a generation", () => {
  const first = (databaseId: string, mark: Mark | null) =>
    encodeFrame(
      frameTypes.genesis,
      { generation: 2, epoch: mark?.epoch ?? 0, sequence: 1, previous: mark?.hash ?? zeroHash },
      [genesisPayload(databaseId, mark)],
    );

  test("continues the mark that it was created from, including the epoch", () => {
    const chain = new Chain("db", 2, start);
    const genesis = first("db", start);
    const leader = new Leader({ generation: 2, sequence: 1, epoch: 4, hash: genesis.hash });
    expect(take(chain, genesis, leader.startRequest("A"), leader.commit("x"))).toEqual([
      "valid",
      "led by A",
      "x",
    ]);
    expect(chain.mark).toMatchObject({ generation: 2, sequence: 3, epoch: 5 });
  });

  test("of a new database starts empty", () => {
    expect(take(new Chain("db", 2, null), first("db", null))).toEqual(["valid"]);
  });

  test("is unreachable for a log that ends before it", () => {
    const reason = (own: Mark | null) => new Chain("db", 2, own).verdictOn(first("db", start));
    expect(reason(null)).toMatchObject({ kind: "behind" });
    expect(reason({ ...start, sequence: 9 })).toEqual({
      kind: "behind",
      reason:
        "generation 2 continues sequence 10 of generation 1, and the own log ends at sequence 9 of generation 1",
    });
  });

  test("contradicts a log that is longer, different, or of another database", () => {
    const kind = (own: Mark, id = "db") => new Chain(id, 2, own).verdictOn(first("db", start)).kind;
    expect(kind({ ...start, sequence: 11 })).toBe("broken");
    expect(kind({ ...start, hash: zeroHash })).toBe("broken");
    expect(kind({ ...start, epoch: 3 })).toBe("broken");
    expect(kind(start, "other")).toBe("broken");
    expect(kind(start)).toBe("valid");
  });
});
