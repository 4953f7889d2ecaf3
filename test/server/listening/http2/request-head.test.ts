/** Which heads are requests, and what is seen of them. */
import { describe, expect, test } from "vitest";
import { headerField } from "../../../../server/listening/http2/header-field.ts";
import { areTrailers, requestHead } from "../../../../server/listening/http2/request-head.ts";

const fieldsOf = (...texts: readonly string[]) => {
  const fields = [];
  for (let at = 0; at < texts.length; at += 2) {
    fields.push(headerField(texts[at] as string, texts[at + 1] as string));
  }
  return fields;
};
const start = [":method", "GET", ":scheme", "https", ":path", "/a?b=c", ":authority", "host:1"];
const without = (name: string) => start.toSpliced(start.indexOf(name), 2);
const replaced = (name: string, value: string) => start.with(start.indexOf(name) + 1, value);

describe("a head", () => {
  test.each<[string, readonly string[]]>([
    ["plain", start],
    ["in another order", [":path", "/", ":authority", "a", ":scheme", "http", ":method", "PUT"]],
    ["without an authority", without(":authority")],
    ["of an unknown method", replaced(":method", "M-SEARCH")],
    ["for all", replaced(":path", "*")],
    ["with a length", [...start, "content-length", "0"]],
    ["with a length twice", [...start, "content-length", "7", "content-length", "7"]],
    ["with te", [...start, "te", "trailers"]],
    ["with values of all kinds", [...start, "a", "", "b", "x\ty z", "c", "\x80\xff", "d", "\x7f"]],
    ["with a name of all kinds", [...start, "!#$%&'*+-.^_`|~09az", "1"]],
    ["CONNECT", [":method", "CONNECT", ":authority", "a:1"]],
    ["extended CONNECT", [...replaced(":method", "CONNECT"), ":protocol", "websocket"]],
  ])("that is a request: %s", (_what, texts) => {
    expect(requestHead(fieldsOf(...texts))).toBeDefined();
  });

  test.each<[string, readonly string[]]>([
    ["nothing", []],
    ["no method", without(":method")],
    ["no scheme", without(":scheme")],
    ["no path", without(":path")],
    ["an empty path", replaced(":path", "")],
    ["a path without a slash", replaced(":path", "a")],
    ["a whole address", replaced(":path", "http://a/")],
    ["a space in the path", replaced(":path", "/a b")],
    ["a line in the path", replaced(":path", "/a\r\nX: 1")],
    ["a NUL in the path", replaced(":path", "/\0")],
    ["a DEL in the path", replaced(":path", "/\x7f")],
    ["more behind the star", replaced(":path", "*a")],
    ["an empty method", replaced(":method", "")],
    ["a method with a space", replaced(":method", "GET /x HTTP/1.1")],
    ["a method with a tab", replaced(":method", "GET\t/x")],
    ["a method with a colon", replaced(":method", "GET:")],
    ["a method of other letters", replaced(":method", "G\xc4T")],
    ["a second method", [...start, ":method", "GET"]],
    ["a second scheme", [...start, ":scheme", "https"]],
    ["a second path", [...start, ":path", "/"]],
    ["a second authority", [...start, ":authority", "host:1"]],
    ["a pseudo-header behind the others", [...without(":path"), "a", "b", ":path", "/"]],
    ["a pseudo-header behind a length", [...without(":path"), "content-length", "0", ":path", "/"]],
    ["a pseudo-header behind te", [...without(":path"), "te", "trailers", ":path", "/"]],
    ["an unknown pseudo-header", [...start, ":other", "1"]],
    ["one of a reply", [...start, ":status", "200"]],
    ["a protocol of another method", [...start, ":protocol", "websocket"]],
    ["a second protocol", [...replaced(":method", "CONNECT"), ":protocol", "a", ":protocol", "a"]],
    ["CONNECT with a path", [":method", "CONNECT", ":authority", "a:1", ":path", "/"]],
    ["CONNECT with a scheme", [":method", "CONNECT", ":authority", "a:1", ":scheme", "http"]],
    ["CONNECT to nowhere", [":method", "CONNECT"]],
    ["connection", [...start, "connection", "close"]],
    ["keep-alive", [...start, "keep-alive", "timeout=5"]],
    ["proxy-connection", [...start, "proxy-connection", "close"]],
    ["transfer-encoding", [...start, "transfer-encoding", "chunked"]],
    ["upgrade", [...start, "upgrade", "h2c"]],
    ["te for more", [...start, "te", "trailers, deflate"]],
    ["an empty name", [...start, "", "1"]],
    ["a name in capitals", [...start, "Name", "1"]],
    ["a name with a space", [...start, "na me", "1"]],
    ["a name with a colon", [...start, "na:me", "1"]],
    ["a name with a line", [...start, "na\nme", "1"]],
    ["a name of other letters", [...start, "n\xe4me", "1"]],
    ["a value with a line feed", [...start, "a", "1\n2"]],
    ["a value with a carriage return", [...start, "a", "1\r2"]],
    ["a value with a NUL", [...start, "a", "1\x002"]],
    ["a value that begins with a space", [...start, "a", " 1"]],
    ["a value that ends with a tab", [...start, "a", "1\t"]],
    ["two lengths", [...start, "content-length", "1", "content-length", "2"]],
    ["lengths in one", [...start, "content-length", "1, 1"]],
    ["a negative length", [...start, "content-length", "-1"]],
    ["a length with a sign", [...start, "content-length", "+1"]],
    ["a length in hexadecimal", [...start, "content-length", "0x1"]],
    ["a length that is no number", [...start, "content-length", "one"]],
    ["an empty length", [...start, "content-length", ""]],
    ["a length beyond all", [...start, "content-length", "9".repeat(16)]],
  ])("that is none: %s", (_what, texts) => {
    expect(requestHead(fieldsOf(...texts))).toBeUndefined();
  });

  test("tells what was asked", () => {
    const head = requestHead(
      fieldsOf(
        ...start,
        "cookie",
        "a=1",
        "x",
        "1",
        "cookie",
        "b=2",
        "x",
        "2",
        "content-length",
        "5",
      ),
    );
    expect(head).toMatchObject({ method: "GET", target: "/a?b=c", authority: "host:1", length: 5 });
    expect(head?.get("cookie")).toBe("a=1; b=2");
    expect(head?.get("x")).toBe("1, 2");
    expect(head?.get("none")).toBeUndefined();
    expect([...(head?.entries() ?? [])]).toEqual([
      ["cookie", "a=1; b=2"],
      ["x", "1, 2"],
      ["content-length", "5"],
    ]);
  });
});

test("trailers have no pseudo-headers, and nothing that no head has", () => {
  expect(areTrailers(fieldsOf("checksum", "1"))).toBe(true);
  expect(areTrailers(fieldsOf("checksum", "1", ":path", "/"))).toBe(false);
  expect(areTrailers(fieldsOf("connection", "close"))).toBe(false);
  expect(areTrailers(fieldsOf("a", "1\n"))).toBe(false);
});
