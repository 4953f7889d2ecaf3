/** Options of a requested certificate are parsed, or rejected with the reason. */
import { expect, test } from "vitest";
import {
  bytesOf,
  readCertificate,
  readNotAfter,
  readTerms,
} from "../../../server/security/certificate-terms.ts";

const body = { Name: "ann", SecurityClearance: "ValidUser", Permissions: { shop: "Read" } };

test("returns the options as requested", () => {
  expect(readTerms(body)).toEqual({ ...body, Disabled: false });
  expect(readTerms({ ...body, Permissions: null, Disabled: true })).toEqual({
    ...body,
    Permissions: {},
    Disabled: true,
  });
});

test.each([
  [{ Name: "  " }, "Name is a required field"],
  [{ Name: "../up" }, "no '/'"],
  [{ Name: "x".repeat(257) }, "at most 256 characters"],
  [{ SecurityClearance: "King" }, "SecurityClearance must be one of"],
  [{ Permissions: ["shop"] }, "Permissions must be an object"],
  [{ Permissions: { shop: "All" } }, "The permission on 'shop' must be one of"],
  [{ TwoFactorAuthenticationKey: "k" }, "Two-factor authentication"],
])("rejects %j", (change, message) => {
  expect(() => readTerms({ ...body, ...change })).toThrow(message);
});

test("the end is a future date, also with .NET's decimals", () => {
  expect(readNotAfter(undefined)).toBeUndefined();
  expect(readNotAfter("2999-01-01T00:00:00.1234567Z")).toEqual(
    new Date("2999-01-01T00:00:00.123Z"),
  );
  expect(() => readNotAfter("2001-01-01")).toThrow("a date in the future");
  expect(() => readNotAfter(5)).toThrow("a date in the future");
});

test("a certificate is PEM or base64, and anything else is rejected", () => {
  expect(bytesOf("aGk=").toString()).toBe("hi");
  expect(bytesOf("-----BEGIN x").toString()).toBe("-----BEGIN x");
  expect(() => readCertificate("aGk=")).toThrow("Unable to load the provided certificate");
  expect(() => readCertificate(undefined)).toThrow("Unable to load the provided certificate");
});
