/** Error bodies, and the choice of an encoding. */
import { describe, expect, test } from "vitest";
import { EngineError } from "../../../engine/base/errors.ts";
import { errorStatus } from "../../../server/http/error-status.ts";
import { overloaded } from "../../../server/http/request-error.ts";
import { chooseEncoding, errorReply } from "../../../server/http/response.ts";

describe("the encoding of a reply", () => {
  test.each([
    [undefined, undefined],
    ["", undefined],
    ["identity", undefined],
    ["gzip", "gzip"],
    ["gzip,deflate", "gzip"],
    ["deflate, gzip;q=0.5", "deflate"],
    ["br", "br"],
    ["gzip;q=0, br", "br"],
    ["gzip;q=0", undefined],
    ["GZIP", "gzip"],
    ["snappy", undefined],
    ["gzip;q=nonsense", undefined],
    ["*;q=0", undefined],
  ] as const)("for '%s' is %s", (header, expected) => {
    expect(chooseEncoding(header)).toBe(expected);
  });
});

describe("an error's reply", () => {
  const nothing = () => undefined;

  test("begins Error with Type and Message, for every code of the engine", () => {
    for (const [code, { status, type }] of Object.entries(errorStatus)) {
      const error = new EngineError(code as keyof typeof errorStatus, "why");
      const reply = errorReply(error, "/x", nothing);
      expect(reply.status).toBe(status);
      const vectors = { Id: null, ExpectedChangeVector: null, ActualChangeVector: null };
      expect(JSON.parse(reply.body)).toEqual({
        Url: "/x",
        Type: type,
        Message: "why",
        Error: `${type}: why`,
        ...(status === 409 ? vectors : {}),
      });
      expect(status, code).not.toBe(404); // Clients read 404 as null.
    }
  });

  test("carries headers", () => {
    expect(errorReply(overloaded(5), "/x", nothing).headers).toEqual({ "retry-after": "1" });
  });

  test("of an unknown error has a reference number and no details", () => {
    const logged: unknown[] = [];
    const error = new Error("secret");
    const reply = errorReply(error, "/x", (reference, what) => logged.push(reference, what));
    expect(reply.status).toBe(500);
    expect(reply.body).not.toContain("secret");
    expect(reply.body).toContain(String(logged[0]));
    expect(logged[1]).toBe(error);
    expect(errorReply("a string", "/x", nothing).status).toBe(500);
  });
});
