/** The cluster page with three nodes over real NATS servers; skipped without a nats-server. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "playwright-core";
import { afterAll, describe, expect, test } from "vitest";
import { ClusterServers } from "../../support/cluster-servers.ts";
import { hasNatsServer } from "../../support/nats-cluster.ts";
import { studioBrowser } from "../../support/studio-browser.ts";

const pictures = process.env["PICTURES"];
/** Timeout of a transfer, or of a new copy, on a busy machine. */
const slow = { timeout: 45_000 };

describe.skipIf(!hasNatsServer())("three nodes", () => {
  let nodes: ClusterServers;

  const studio = studioBrowser(async () => {
    nodes = await ClusterServers.start(3, { unsecured: false });
    return nodes.at("A");
  });

  afterAll(() => nodes.stop());

  const rowOf = (page: Page, table: string, name: string) =>
    page
      .getByRole("table", { name: table })
      .getByRole("row")
      .filter({ has: page.getByText(name, { exact: true }) });
  const node = (tag: string, page = studio.page) => rowOf(page, "Nodes", tag);
  const database = (name: string, page = studio.page) => rowOf(page, "Copies of databases", name);
  /** More than the letter alone, because other rows may contain a B, too. */
  const copy = (name: string, tag: string) =>
    database(name).locator(".chip", { hasText: new RegExp(`^\\s*${tag}\\b`) });
  const choose = async (of: string, item: string) => {
    await studio.page.getByRole("button", { name: `Actions for ${of}` }).click();
    await studio.page.getByRole("menuitem", { name: item, exact: true }).click();
  };
  const reported = (text: string) => studio.page.locator(".toast", { hasText: text }).waitFor(slow);
  /** A node other than the leader. */
  const other = (leader: string) => (leader === "B" ? "C" : "B");
  const picture = async (name: string) => {
    if (pictures !== undefined)
      await studio.page.screenshot({ path: `${pictures}/cluster-${name}.png` });
  };
  const admin = async (method: string, path: string, body: object) => {
    // A test server's certificate is registered only where it was the first node.
    const pair = await nodes.at("A").client({ clearance: "ClusterAdmin" });
    const headers = { "content-type": "application/json" };
    const request = { method, headers, body: JSON.stringify(body) };
    const { status } = await nodes.at("A").request(path, request, pair);
    expect(status).toBeLessThan(300);
  };
  /** With copies on all nodes, and a leader. */
  const created = async (name: string) => {
    if (nodes.cluster("A").find(name) === undefined)
      await admin("PUT", `/admin/databases?name=${name}`, { DatabaseName: name });
    return nodes.leaderOf(name);
  };

  test("a new database has a copy on each node, and the page shows its leader", async () => {
    await studio.open("databases");
    await studio.page.getByRole("textbox", { name: "Name" }).fill("shop");
    await studio.page.getByRole("button", { name: "Create shop" }).click();
    await studio.page.getByRole("heading", { name: "No documents in shop yet" }).waitFor(slow);
    await studio.page.getByRole("link", { name: "Cluster" }).click();
    await studio.page.getByRole("heading", { name: "Cluster" }).waitFor();
    for (const tag of ["A", "B", "C"]) await node(tag).getByText("Reachable").waitFor(slow);
    await node("A").getByText("This node").waitFor();
    await database("shop").getByText("OK").waitFor(slow);
    const leader = await nodes.leaderOf("shop");
    await database("shop").getByText(`${leader} leads`).waitFor();
    for (const tag of ["A", "B", "C"]) await copy("shop", tag).waitFor();
    await studio.page.getByText("Copies of each stream").waitFor();
    await picture("light");
    await studio.page.emulateMedia({ colorScheme: "dark" });
    await picture("dark");
    await studio.page.setViewportSize({ width: 360, height: 800 });
    await picture("phone-dark");
    await studio.page.emulateMedia({ colorScheme: "light" });
    await picture("phone");
  }, 120_000);

  test("the list of databases shows copies and leaders", async () => {
    const leader = await created("shop");
    await studio.open("databases");
    const row = rowOf(studio.page, "Databases", "shop");
    await row.getByText(`3, ${leader} leads`).waitFor(slow);
  });

  test("a new leader is chosen with the keyboard only", async () => {
    const leader = await created("shop");
    const to = other(leader);
    await studio.open("databases");
    await studio.page.getByRole("table", { name: "Databases" }).waitFor();
    await studio.page.keyboard.press("g");
    await studio.page.keyboard.press("n");
    const menu = studio.page.getByRole("button", { name: "Actions for shop" });
    await menu.waitFor(slow);
    await menu.focus();
    await studio.page.keyboard.press("ArrowDown");
    const focused = () => studio.page.evaluate("document.activeElement.textContent");
    for (let n = 0; n < 3 && (await focused()) !== `Transfer leadership to ${to}`; n++)
      await studio.page.keyboard.press("ArrowDown");
    await studio.page.keyboard.press("Enter");
    await reported(`shop is led by ${to}`);
    await database("shop").getByText(`${to} leads`).waitFor();
    expect(await nodes.leaderOf("shop")).toBe(to);
  }, 90_000);

  test("all leaderships of a node are handed over in one step", async () => {
    const from = await created("shop");
    await studio.open("cluster");
    await node(from).getByText("Reachable").waitFor(slow);
    await choose(`node ${from}`, "Transfer its leaderships");
    await reported(`${from} leads no database now`);
    expect(await nodes.leaderOf("shop")).not.toBe(from);
  }, 90_000);

  test("a copy is removed after confirmation, and another one added", async () => {
    await created("books");
    await studio.open("cluster");
    await database("books").getByText("OK", { exact: true }).waitFor(slow);
    const leader = await nodes.leaderOf("books");
    const tag = other(leader);
    await choose("books", `Remove the copy on ${tag}…`);
    const question = studio.page.getByRole("alertdialog", {
      name: `Remove the copy of books on ${tag}?`,
    });
    await question.getByText("2 copies remain.").waitFor();
    await question.getByRole("button", { name: `Remove from ${tag}` }).click();
    await reported(`The copy of books on ${tag} was removed`);
    await copy("books", tag).waitFor({ state: "detached" });
    await choose("books", `Add a copy on ${tag}`);
    await reported(`A copy of books was added on ${tag}`);
    await database("books").getByText("OK", { exact: true }).waitFor(slow);
    expect(nodes.cluster("A").find("books")?.registered.members).toContain(tag);
  }, 120_000);

  test("a node is removed after typing its tag, and added again", async () => {
    await created("shop");
    await studio.open("cluster");
    await node("C").getByText("Reachable").waitFor(slow);
    await choose("node C", "Remove…");
    const question = studio.page.getByRole("alertdialog", {
      name: "Remove node C from the cluster?",
    });
    const yes = question.getByRole("button", { name: "Remove C" });
    expect(await yes.isDisabled()).toBe(true);
    await question.getByRole("textbox").fill("C");
    await yes.click();
    await reported("C was removed from the cluster");
    await node("C").getByText("Not a member").waitFor(slow);
    await studio.page.getByText("Node C is not a member of the cluster.").waitFor();
    expect(
      nodes
        .cluster("A")
        .members()
        .map(({ tag }) => tag),
    ).toEqual(["A", "B"]);
    await picture("stranger");
    await choose("node C", "Add C");
    await reported("C was added to the cluster");
    await node("C").getByText("Reachable").waitFor(slow);
    await nodes.complete(3);
  }, 180_000);

  test("a rejection is shown with the server's message", async () => {
    await created("lone");
    for (const tag of ["B", "C"])
      if (nodes.cluster("A").find("lone")?.registered.members.includes(tag))
        await admin("DELETE", "/admin/databases", {
          DatabaseNames: ["lone"],
          HardDelete: true,
          FromNodes: [tag],
        });
    await nodes.until(() => nodes.cluster("A").find("lone")?.registered.members.length === 1);
    await studio.open("cluster");
    await database("lone").getByText("One copy only").waitFor(slow);
    await studio.page.getByRole("button", { name: "Actions for lone" }).click();
    const last = studio.page.getByRole("menuitem", { name: "Remove the copy on A…" });
    expect(await last.getAttribute("aria-disabled")).toBe("true");
    expect(await last.getAttribute("title")).toBe("It is the only copy");
    await studio.page.keyboard.press("Escape");
    // A has the only copy, so it cannot be removed.
    studio.expectRefusal(400);
    studio.expectRefusal(500);
    await choose("node A", "Remove…");
    const question = studio.page.getByRole("alertdialog");
    await question.getByRole("textbox").fill("A");
    await question.getByRole("button", { name: "Remove A" }).click();
    const refusal = question.getByRole("alert");
    await refusal.waitFor(slow);
    expect(await refusal.textContent()).toContain("lone");
    await question.getByRole("button", { name: "Cancel" }).click();
    expect(nodes.cluster("A").members()).toHaveLength(3);
  }, 120_000);

  test("an operator can hand over leadership, but not change nodes", async () => {
    const leader = await created("shop");
    const page = await studio.as({ clearance: "Operator" });
    await page.goto(`${studio.server.url}/studio/cluster`);
    await database("shop", page).waitFor(slow);
    await page.getByRole("button", { name: "Actions for node B" }).click();
    const out = page.getByRole("menuitem", { name: "Remove…" });
    expect(await out.getAttribute("title")).toBe("Requires cluster administrator access");
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Actions for shop" }).click();
    // A node that was taken out and let in again has no copy.
    const { members = [] } = nodes.cluster("A").find("shop")?.registered ?? {};
    const follower = members.find((tag) => tag !== leader);
    const lead = page.getByRole("menuitem", { name: `Transfer leadership to ${follower}` });
    expect(await lead.getAttribute("aria-disabled")).toBe("false");
  }, 90_000);

  test("a certificate for one database shows only that one, and cannot change anything", async () => {
    await created("shop");
    await created("books");
    const page = await studio.as({ permissions: { books: "Read" } });
    await page.goto(`${studio.server.url}/studio/cluster`);
    await database("books", page).waitFor(slow);
    expect(await database("shop", page).count()).toBe(0);
    expect(await page.getByRole("button", { name: /Actions for/ }).count()).toBe(0);
    expect(await page.getByText("Copies of each stream").count()).toBe(0);
  }, 90_000);

  test("the page violates no rule of axe, and fits the window", async () => {
    await created("shop");
    const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
    for (const colorScheme of ["light", "dark"] as const) {
      await studio.page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      for (const width of [360, 1024, 1440]) {
        await studio.page.setViewportSize({ width, height: 800 });
        await studio.open("cluster");
        await database("shop").waitFor(slow);
        expect(await studio.page.evaluate("document.documentElement.scrollWidth")).toBe(width);
        await studio.page.evaluate(axe);
        const { violations } = (await studio.page.evaluate(
          "axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'] })",
        )) as { violations: readonly object[] };
        expect(violations).toEqual([]);
      }
    }
  }, 120_000);

  test("a lost node is shown within seconds, here and in the list of databases", async () => {
    await created("late");
    await studio.open("cluster");
    await node("C").getByText("Reachable").waitFor(slow);
    await nodes.close("C");
    await node("C")
      .getByText(/Unreachable for/)
      .waitFor(slow);
    await studio.page.getByText("Node C is unreachable.").waitFor();
    await database("late").getByText("2 of 3 copies").waitFor(slow);
    await picture("silent");
    await studio.open("databases");
    const attention = studio.page.getByRole("complementary", { name: "Needs attention" });
    await attention.getByRole("link", { name: "Node C is unreachable" }).click();
    await studio.page.getByRole("heading", { name: "Cluster" }).waitFor();
  }, 120_000);
});
