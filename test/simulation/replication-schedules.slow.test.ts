import { expect, test } from "vitest";
import { type Mutation, mutatedReplica } from "../support/mutated-replica.ts";
import { findBroken, runSchedules, traceOf } from "./replication-schedules.ts";

test("a thousand schedules violate no invariant, and cover all events", () => {
  const report = runSchedules(1, 1000);
  expect(report.schedules).toBe(1000);
  expect(report.kept).toBeGreaterThan(5000);
  expect(report.epochs).toBeGreaterThan(1000);
  expect(report.voids).toBeGreaterThan(100);
  expect(report.stopped).toBeGreaterThan(5);
});

test("a schedule is reproducible", () => {
  expect(traceOf(7)).toEqual(traceOf(7));
});

const mutations: Readonly<Record<string, Mutation>> = {
  "continues after a void frame in the same epoch": {
    file: "replica.ts",
    from: 'if (this.#isFenced || this.#role === "leader") this.#fenceAgain();',
    to: 'if (this.#role === "leader") { this.#window.rewind(); this.#sent.clear(); this.#pump(); }',
  },
  "continues to lead after another epoch has begun": {
    file: "replica.ts",
    from: "const isReplaced = isLeading && !isClaim && frame.type === frameTypes.epoch;",
    to: "const isReplaced = false; if (isLeading && !isClaim && frame.type === frameTypes.epoch) { this.#chain.position++; this.#window.rewind(); this.#sent.clear(); this.#pump(); return; }",
  },
  "serves before the fence": {
    file: "replica.ts",
    from: "    this.#claim = this.#epochFrame();\n    this.#appendClaim();\n  }\n\n  /** Its slot",
    to: "    this.#isFenced = true; this.#serveWhenApplied();\n  }\n\n  /** Its slot",
  },
  "counts a stored frame as committed before its predecessors": {
    file: "replica.ts",
    from: 'while (this.#window.frames[0]?.state === "stored") {',
    to: 'while (this.#window.frames.some(({ state }) => state === "stored")) {',
  },
  "takes a rejection as final": {
    file: "replica.ts",
    from: "    if (isStored) this.#confirmStored();\n    else this.#readNext();",
    to: '    if (isStored) this.#confirmStored();\n    else if (outcome.kind === "refused") this.#stepDown("lost");\n    else this.#readNext();',
  },
  "takes a missing reply as a rejection": {
    file: "replica.ts",
    from: '    this.#stepDown("unknown");\n  }\n\n  /** @param sent',
    to: '    this.#stepDown("lost");\n  }\n\n  /** @param sent',
  },
  "reuses its incarnation after each start": {
    file: "replica.ts",
    from: "[epochPayload(tag, incarnation)]",
    to: '[epochPayload(tag, incarnation && "")]',
  },
  "keeps the parts of a group when another epoch begins": {
    file: "chain.ts",
    from: "        this.#dropParts();\n        return { delivery: null, epoch: readEpoch",
    to: "        return { delivery: null, epoch: readEpoch",
  },
  "leads although it is not a member": {
    file: "replica.ts",
    from: "    if (this.#isAbstaining) return false;\n",
    to: "",
  },
  "skips frames hidden by the stream": {
    file: "replica.ts",
    from: "const frame = sequence === next ? this.#decode(sequence, bytes) : null;",
    to: "const frame = this.#decode(sequence, bytes);",
  },
  "accepts a frame that does not follow": {
    file: "chain.ts",
    from: '    if (!isLinked) return broken(frame, "does not follow the last valid frame");\n    return this.#onContents',
    to: "    return this.#onContents",
  },
  "accepts the frames after a void one": {
    file: "chain.ts",
    from: "if (frame.epoch < this.epoch || this.#voids > 0) {",
    to: "if (frame.epoch < this.epoch) {",
  },
  "accepts the frames of an earlier epoch": {
    file: "chain.ts",
    from: "if (frame.epoch < this.epoch || this.#voids > 0) {",
    to: "if (frame.epoch < this.epoch) return isValid; if (this.#voids > 0) {",
  },
  "proposes only the rest of a group again": {
    file: "append-window.ts",
    from: "    for (const queued of this.#queue) queued.sent = 0;\n    this.#next = 0;",
    to: "    for (const queued of this.#queue) if (queued.sent === queued.payloads.length) queued.sent = 0;\n    this.#next = 0;",
  },
  "sends a new frame instead of a retry": {
    file: "replica.ts",
    from: '      if (inFlight.state === "doubtful") this.#send(inFlight);\n    }\n  }\n\n  /** The frame at',
    to: '      if (inFlight.state === "doubtful") { this.#fenceAgain(); return; }\n    }\n  }\n\n  /** The frame at',
  },
  "accepts damaged bytes": {
    file: "frame.ts",
    from: '  const own = hash("sha256", bytes.subarray(0, end), "hex");\n  if (own !== bytes.toString("hex", end)) return null;',
    to: '  const own = bytes.toString("hex", end);',
  },
  "accepts the first frame of another log": {
    file: "chain.ts",
    from: "if (isOwn && frame.previous === this.hash && frame.epoch === this.epoch) return isValid;",
    to: "return isValid;",
  },
};

test.for(Object.entries(mutations))("a replica that %s is detected", async ([, spoiling]) => {
  const found = findBroken(7001, 5000, await mutatedReplica(spoiling));
  expect(found).not.toBeNull();
});
