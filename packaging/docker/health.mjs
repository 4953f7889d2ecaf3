/**
 * The health check of the image: exit code 0 when the server answers. It needs no certificate, and does not check the
 * server's, because the address is of this container.
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
  fail(`${url} answers ${statusCode}`);
});
request.on("timeout", () => fail(`${url} did not answer in 4 seconds`));
request.on("error", ({ message }) => fail(`${url}: ${message}`));
