/**
 * The studio of a real server in a real browser, for the flows in test/studio/flows: the system's
 * Chromium, or the one in CHROMIUM.
 *
 * After every test, the page must have logged no error, violated no rule of its
 * Content-Security-Policy, and sent no request to another origin.
 */
import { existsSync, mkdirSync } from "node:fs";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, expect } from "vitest";
import type { CertificatePair } from "../../certs/authority.ts";
import type { Grant } from "../../server/security/access.ts";
import {
  startTestServer,
  stopTestServers,
  type TestServer,
  type TestServerOptions,
} from "./start-test-server.ts";

const executablePath = process.env["CHROMIUM"] ?? "/usr/bin/chromium";
/** Folder for screenshots of the pages; none if not set. */
const pictures = process.env["PICTURES"];

interface StudioBrowser {
  readonly server: TestServer;
  readonly browser: Browser;
  /**
   * The administrator's page, shared by all tests of the file to avoid reloading; its storage is
   * cleared for each test.
   */
  readonly context: BrowserContext;
  readonly page: Page;
  /** Opens a page of the studio: the address below `/studio/`. */
  open(path: string): Promise<unknown>;
  /**
   * Declares that the current test has the server reject a request with this status. 404 and 409
   * are always expected.
   */
  expectRefusal(status: number): void;
  /** Declares that the current test closes the connection: the browser's error is expected. */
  expectOffline(): void;
  /** A page of another user, with the same checks; closed when the test ends. */
  as(grant: Partial<Grant>, name?: string): Promise<Page>;
  /** Applies the same checks to a page that the test opened itself. */
  watch(page: Page): void;
}

/**
 * Called once per file of flows; its fields are set while a test runs. By default the server has a
 * database "shop"; `given` may start another server.
 */
export function studioBrowser(
  given: TestServerOptions | (() => Promise<TestServer>) = { databases: [{ name: "shop" }] },
): StudioBrowser {
  let server: TestServer;
  let browser: Browser;
  let context: BrowserContext;
  let page: Page;
  let complaints: string[];
  let refusals: Set<number>;
  let isOffline: boolean;
  const others: BrowserContext[] = [];

  const watch = (watched: Page) => {
    const origin = new URL(server.url).origin;
    watched.on("console", (message) => {
      if (message.type() === "error") complaints.push(message.text());
    });
    watched.on("pageerror", (error) => complaints.push(error.message));
    watched.on("request", (request) => {
      const url = request.url();
      if (url.startsWith("blob:") || url.startsWith("data:")) return;
      if (new URL(url).origin !== origin) complaints.push(`foreign request: ${url}`);
    });
  };

  const contextOf = ({ key, certificate }: CertificatePair) =>
    browser.newContext({
      viewport: { width: 1440, height: 900 },
      ignoreHTTPSErrors: true,
      clientCertificates: [
        { origin: server.url, key: Buffer.from(key), cert: Buffer.from(certificate) },
      ],
    });

  /** Removes the state of the last test from the browser. */
  const forget = async () => {
    await context.setOffline(false);
    const [first = await context.newPage(), ...more] = context.pages();
    const session = await context.newCDPSession(first);
    const { origin } = new URL(server.url);
    await session.send("Storage.clearDataForOrigin", { origin, storageTypes: "local_storage" });
    for (const one of [first, ...more]) await one.close();
  };

  beforeAll(async () => {
    if (!existsSync(executablePath))
      throw new Error(`There is no Chromium at ${executablePath}: install it, or set CHROMIUM.`);
    server = await (typeof given === "function" ? given() : startTestServer(given));
    const flags =
      "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync";
    browser = await chromium.launch({ executablePath, args: flags.split(" ") });
    context = await contextOf(await server.client({ clearance: "ClusterAdmin" }));
    if (pictures !== undefined) mkdirSync(pictures, { recursive: true });
  }, 120_000);

  afterAll(async () => {
    await browser?.close();
    await stopTestServers();
  });

  beforeEach(async () => {
    page = await context.newPage();
    complaints = [];
    refusals = new Set([404, 409]);
    isOffline = false;
    watch(page);
  }, 60_000);

  afterEach(async ({ task }) => {
    if (pictures !== undefined)
      await page.screenshot({ path: `${pictures}/${task.name.replace(/\W+/g, "-")}.png` });
    for (const one of others.splice(0)) await one.close();
    await forget();
    const isExpected = (text: string) => {
      if (isOffline && /ERR_INTERNET_DISCONNECTED|WebSocket connection/.test(text)) return true;
      const status = /status of (\d{3})/.exec(text)?.[1];
      return status !== undefined && refusals.has(Number(status));
    };
    expect(complaints.filter((text) => !isExpected(text))).toEqual([]);
  });

  return {
    get server() {
      return server;
    },
    get browser() {
      return browser;
    },
    get context() {
      return context;
    },
    get page() {
      return page;
    },
    open: (path) => page.goto(`${server.url}/studio/${path}`),
    async as(grant, name) {
      const other = await contextOf(await server.client(grant, name));
      others.push(other);
      const opened = await other.newPage();
      watch(opened);
      return opened;
    },
    expectRefusal: (status) => refusals.add(status),
    expectOffline() {
      isOffline = true;
    },
    watch,
  };
}
