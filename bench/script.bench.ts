/**
 * Patch scripts over small documents: arithmetic, a loop over lines, a condition, a push, string concatenation.
 * Compared with parsing and stringifying alone, and with the same change in JavaScript.
 */

import { createHash } from "node:crypto";
import { compileScript } from "../engine/scripting/script.ts";
import type { ScriptHost } from "../engine/scripting/script-host.ts";
import { ScriptDocument } from "../engine/scripting/values/script-document.ts";
import type { BenchSize } from "./harness.ts";

const script = `
  let total = 0;
  for (const line of this.Lines) {
    total += line.Quantity * line.Price;
    if (line.Quantity > 5) line.Discount = 0.1;
  }
  this.Total = total;
  this.Tags.push("seen");
  this.Name = this.Name + "!";
`;

interface Order {
  Name: string;
  Total?: number;
  Lines: { Quantity: number; Price: number; Discount?: number }[];
  Tags: string[];
}

function makeTexts(count: number): string[] {
  const texts: string[] = [];
  for (let i = 0; i < count; i += 1) {
    texts.push(
      JSON.stringify({
        Name: `Order ${i}`,
        Company: `companies/${i % 97}`,
        Freight: (i % 500) / 4,
        ShipTo: { City: "Oslo", Country: "Norway", Zip: String(i) },
        Lines: [
          { Product: `products/${i % 77}`, Quantity: i % 12, Price: 9.5 },
          { Product: `products/${i % 13}`, Quantity: i % 3, Price: 14 },
          { Product: `products/${i % 29}`, Quantity: i % 7, Price: 2.25 },
        ],
        Tags: ["a", "b"],
      }),
    );
  }
  return texts;
}

function refuse(): never {
  throw new Error("the script of this bench calls nothing");
}

const host: ScriptHost = {
  readOnly: true,
  now: () => 0,
  random: () => 0,
  load: refuse,
  put: refuse,
  delete: refuse,
  counter: refuse,
  counterParts: refuse,
  incrementCounter: refuse,
  deleteCounter: refuse,
  timeSeries: refuse,
  compareExchange: refuse,
  include: refuse,
  includeCompareExchange: refuse,
  output: refuse,
};

const metadata = '{"@collection":"Orders"}';

function patchAll(texts: readonly string[]): string[] {
  const compiled = compileScript(script, { kind: "patch" });
  return texts.map((text) => {
    const document = ScriptDocument.fromText(text, metadata, "orders/1", compiled.hint);
    compiled.run({ host, document });
    return document.bodyText();
  });
}

function changeAll(texts: readonly string[]): string[] {
  return texts.map((text) => {
    const order = JSON.parse(text) as Order;
    let total = 0;
    for (const line of order.Lines) {
      total += line.Quantity * line.Price;
      if (line.Quantity > 5) line.Discount = 0.1;
    }
    order.Total = total;
    order.Tags.push("seen");
    order.Name = `${order.Name}!`;
    return JSON.stringify(order);
  });
}

function copyAll(texts: readonly string[]): string[] {
  return texts.map((text) => JSON.stringify(JSON.parse(text)));
}

/** Returns documents per second, the best of several rounds. */
function rate(texts: readonly string[], work: (texts: readonly string[]) => string[]): number {
  let best = 0;
  for (let round = 0; round < 7; round += 1) {
    const start = performance.now();
    work(texts);
    best = Math.max(best, texts.length / ((performance.now() - start) / 1000));
  }
  return Math.round(best);
}

/** Runs the bench; equal hashes mean equal work. */
export function run(size: BenchSize): string[] {
  const texts = makeTexts(size === "smoke" ? 100 : 20_000);
  const hash = createHash("sha256");
  for (const text of patchAll(texts)) hash.update(text);
  const perSecond = (work: (texts: readonly string[]) => string[]) =>
    `${Math.round(rate(texts, work) / 1000)} k documents/s`;
  const lines = [
    `patch script: ${perSecond(patchAll)}`,
    `parse, change, stringify: ${perSecond(changeAll)}`,
    `parse, stringify: ${perSecond(copyAll)}`,
    `result ${hash.digest("hex").slice(0, 16)}`,
  ];
  for (const line of lines) console.log(line);
  return lines;
}
