/**
 * Health check of the image: exits with code 0 if the server replies. It needs no certificate, and does not verify
 * the server's certificate, because the address is local.
 */
import { get as getPlain } from "node:http";
import { get as getSecure } from "node:https";
import { insideUrl } from "./container.mjs";

function fail(message) {
  console.error(`unhealthy: ${message}`);
  process.exit(1);
}

const url = new URL("/livez", insideUrl());
const get = url.protocol === "https:" ? getSecure : getPlain;
const request = get(url, { rejectUnauthorized: false, timeout: 4000 }, ({ statusCode }) => {
  if (statusCode === 200) process.exit(0);
  fail(`${url} returned status ${statusCode}`);
});
request.on("timeout", () => fail(`${url} did not respond within 4 seconds`));
request.on("error", ({ message }) => fail(`${url}: ${message}`));
