import { expect, test } from "vitest";
import { JsonText } from "../../../../engine/base/json/json-text.ts";

test("appends text, bytes and strings, however small the buffer was", () => {
  const text = new JsonText(1).addText("[").addString('ä"€').addText(",");
  text.addBytes(Buffer.from("x1234x"), 1, 5).addText("]");
  expect(text.bytes.toString()).toBe('["ä\\"€",1234]');
  expect(text.length).toBe(Buffer.byteLength('["ä\\"€",1234]'));
});

test("taken text does not change when more is added", () => {
  const text = new JsonText().addText("first");
  const taken = text.take();
  text.addText("second");
  expect(taken.toString()).toBe("first");
  expect(text.bytes.toString()).toBe("second");
});

test("reserved space starts at the current length, and counts after an advance", () => {
  const text = new JsonText(2).addText("ab");
  const at = text.length;
  const buffer = text.reserve(3);
  buffer.write("cd", at);
  expect(text.bytes.toString()).toBe("ab");
  text.advance(2);
  expect(text.bytes.toString()).toBe("abcd");
});
