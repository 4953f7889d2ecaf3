/** The studio through `jackdaw studio`, in a browser without a certificate. */
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import * as http from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { BrowserContext, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, expect, onTestFinished, test } from "vitest";
import { StudioProxy } from "../../../cli/studio/studio-proxy.ts";
import { studioBrowser } from "../../support/studio-browser.ts";
import { unzip } from "../../support/unzip.ts";

const studio = studioBrowser();
let proxy: StudioProxy;
let page: Page;
let complaints: string[];
const contexts: BrowserContext[] = [];

beforeAll(async () => {
  const { url, admin, authority, request } = studio.server;
  await request("/databases/shop/studio/sample-data", { method: "POST" });
  const connection = {
    url: new URL(url),
    cert: admin.certificate,
    key: admin.key,
    ca: authority.certificate,
  };
  proxy = await StudioProxy.start({ connection, port: 0 });
});
afterAll(() => proxy?.close());

afterEach(async () => {
  for (const context of contexts.splice(0)) await context.close();
});

beforeEach(async () => {
  complaints = [];
  page = await openPage();
});

const origin = () => `http://127.0.0.1:${proxy.port}`;

/** In a separate browser, which is closed after the test. */
async function openPage(): Promise<Page> {
  const context = await studio.browser.newContext({ viewport: { width: 1440, height: 900 } });
  contexts.push(context);
  const opened = await context.newPage();
  opened.on("console", (message) => {
    if (message.type() === "error") complaints.push(message.text());
  });
  opened.on("pageerror", (error) => complaints.push(error.message));
  return opened;
}

/** Opens the page with a session. */
async function signIn(path: string): Promise<void> {
  await page.goto(proxy.newAddress());
  await page.getByRole("link", { name: "shop", exact: true }).waitFor();
  await page.goto(`${origin()}/studio/${path}`);
}

test("the printed URL opens the databases, signed in, and the code is removed from it", async () => {
  await page.goto(proxy.newAddress());
  await page.getByRole("link", { name: "shop", exact: true }).waitFor();
  expect(page.url()).toBe(`${origin()}/studio/databases`);
  await page.reload();
  await page.getByRole("link", { name: "shop", exact: true }).waitFor();
  expect(complaints).toEqual([]);
});

test("another tab of the same browser is signed in, another browser is not", async () => {
  await signIn("databases");
  const tab = await page.context().newPage();
  await tab.goto(`${origin()}/studio/databases`);
  await tab.getByRole("link", { name: "shop", exact: true }).waitFor();
  const stranger = await openPage();
  await stranger.goto(`${origin()}/studio/db/shop/docs`);
  await stranger.getByRole("heading", { name: "This page is not signed in" }).waitFor();
});

test("a used URL is rejected", async () => {
  const address = proxy.newAddress();
  await page.goto(address);
  await page.getByRole("link", { name: "shop", exact: true }).waitFor();
  const stranger = await openPage();
  await stranger.goto(address);
  await stranger.getByRole("heading", { name: "This address has expired" }).waitFor();
  expect(await stranger.context().cookies()).toEqual([]);
});

test("commands and code contain the server's address, not that of the page", async () => {
  await signIn("databases");
  await page.getByRole("region", { name: "This server" }).getByText(studio.server.url).waitFor();
  await page.goto(`${origin()}/studio/certificates`);
  await page.getByRole("button", { name: "New certificate" }).click();
  await page.getByRole("textbox", { name: "Name" }).fill("it's: me");
  const download = page.waitForEvent("download");
  await page.getByRole("button", { name: "Create and download" }).click();
  const folder = mkdtempSync(join(tmpdir(), "jackdaw-certificate-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, "made.zip");
  await (await download).saveAs(path);
  for (const [name, content] of Object.entries(unzip(readFileSync(path))))
    writeFileSync(join(folder, name), content);
  const line = (await page.locator("pre").textContent())?.trim() ?? "";
  const words = ["-c", `${line} --silent --fail`];
  const { stdout } = await promisify(execFile)("sh", words, { cwd: folder });
  expect(JSON.parse(stdout)).toEqual({ Databases: [] });
});

test("a document is changed and saved", async () => {
  await signIn("db/shop/doc/products%2F7-A");
  await page.getByRole("textbox", { name: "Document products/7-A" }).click();
  await page.keyboard.press("Control+Home");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.type('"Through": "the proxy", ');
  await page.getByText("1 field changed").waitFor();
  await page.keyboard.press("Control+s");
  await page.getByText("Saved", { exact: true }).waitFor();
  const { text } = await studio.server.request("/databases/shop/docs?id=products/7-A");
  expect(text).toContain('"Through":"the proxy"');
  expect(complaints).toEqual([]);
});

test("a query returns results", async () => {
  await signIn("db/shop/query?q=from%20Orders%20where%20ShipTo.Country%20%3D%20'France'");
  await page.getByText("77 results").waitFor();
  expect(complaints).toEqual([]);
});

test("a file is downloaded with a ticket, once", async () => {
  await signIn("databases");
  const path = "/databases/shop/streams/queries?query=from%20Regions&format=csv";
  const address = (await page.evaluate(`(async () => {
    const headers = { "X-Jackdaw-Session": sessionStorage.getItem("jackdaw-session") };
    const body = JSON.stringify({ path: ${JSON.stringify(path)} });
    const reply = await fetch("/studio/ticket", { method: "POST", headers, body });
    return ${JSON.stringify(path)} + "&jackdaw-ticket=" + (await reply.json()).Ticket;
  })()`)) as string;
  const follow = `(() => {
    const link = document.createElement("a");
    link.href = ${JSON.stringify(address)};
    document.body.append(link);
    link.click();
  })()`;
  const [download] = await Promise.all([page.waitForEvent("download"), page.evaluate(follow)]);
  const stream = await download.createReadStream();
  let text = "";
  for await (const chunk of stream) text += String(chunk);
  expect(text).toContain("Western");
  const again = await page.goto(origin() + address);
  expect(again?.status()).toBe(401);
});

test("a foreign page can neither read nor write, and cannot embed the studio", async () => {
  await signIn("databases");
  const server = http.createServer((_request, response) => {
    response.writeHead(200, { "content-type": "text/html" });
    response.end("<title>elsewhere</title>");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    // On the same site: cookies of this machine are sent to all of its ports.
    await page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
    const target = `${origin()}/databases/shop/docs?id=evil/1`;
    const tried = (await page.evaluate(`(async () => {
      const target = ${JSON.stringify(target)};
      const outcome = (promise) => promise.then((reply) => reply.type, (error) => error.name);
      const picture = new Image();
      const shown = new Promise((resolve) => {
        picture.onload = () => resolve("shown");
        picture.onerror = () => resolve("refused");
      });
      picture.src = ${JSON.stringify(`${origin()}/studio/favicon.svg`)};
      const socket = new WebSocket(target.replace(/^http/, "ws"));
      const joined = new Promise((resolve) => {
        socket.onopen = () => resolve("open");
        socket.onclose = () => resolve("refused");
      });
      return [
        await outcome(fetch(target, { credentials: "include" })),
        await outcome(fetch(target, { method: "PUT", body: "{}", credentials: "include" })),
        await outcome(fetch(target, { method: "POST", body: "{}", mode: "no-cors", credentials: "include" })),
        await shown,
        await joined,
      ];
    })()`)) as string[];
    expect(tried).toEqual(["TypeError", "TypeError", "opaque", "refused", "refused"]);
    const refused = page.waitForResponse(`${origin()}/studio/databases`);
    await page.evaluate(`location.href = ${JSON.stringify(`${origin()}/studio/databases`)}`);
    expect((await refused).status()).toBe(403);
  } finally {
    server.close();
    server.closeAllConnections();
  }
  expect((await studio.server.request("/databases/shop/docs?id=evil/1")).status).toBe(404);
});

test("an unreachable server is reported on the page", async () => {
  const away = await StudioProxy.start({
    connection: {
      url: new URL("http://127.0.0.1:1"),
      cert: undefined,
      key: undefined,
      ca: undefined,
    },
    port: 0,
  });
  try {
    await page.goto(away.newAddress());
    await page.getByText("Cannot connect to http://127.0.0.1:1").first().waitFor();
    await page.getByText("Not connected").waitFor();
  } finally {
    await away.close();
  }
});

test("without a certificate and without the command, the server's own page shows instructions", async () => {
  const context = await studio.browser.newContext({ ignoreHTTPSErrors: true });
  const direct = await context.newPage();
  await direct.goto(`${studio.server.url}/studio`);
  await direct
    .getByRole("heading", { name: "This server requires a client certificate" })
    .waitFor();
  await direct.getByText(`jackdaw studio --url ${studio.server.url}`).waitFor();
  if (process.env["PICTURES"] !== undefined) {
    for (const [width, scheme] of [
      [1440, "light"],
      [360, "dark"],
    ] as const) {
      await direct.setViewportSize({ width, height: 800 });
      await direct.emulateMedia({ colorScheme: scheme });
      await direct.screenshot({ path: `${process.env["PICTURES"]}/sign-in-${width}.png` });
    }
  }
  await context.close();
});
