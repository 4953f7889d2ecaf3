/**
 * The official clients read subscriptions over plain TCP and mutual TLS, with both supported
 * versions.
 */
import * as current from "ravendb";
import * as older from "ravendb-5.4";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { authentication } from "../support/client-store.ts";
import { startTestServer, stopTestServers, type TestServer } from "../support/start-test-server.ts";

/** The parts used here are equal in both versions. */
const clients = [
  ["7.2", current],
  ["5.4", older as unknown as typeof current],
] as const;
const ways = clients.flatMap(([version, client]) =>
  ([true, false] as const).map((isSecure) => ({ version, client, isSecure })),
);

let plain: TestServer;
let secure: TestServer;
let databases = 0;

beforeAll(async () => {
  plain = await startTestServer({ unsecured: true });
  secure = await startTestServer();
});
afterAll(stopTestServers);

/** The received items of a worker, and its state. */
interface Taken<Item extends object> {
  readonly worker: current.SubscriptionWorker<Item>;
  readonly items: current.Item<Item>[];
  readonly sizes: number[];
  readonly errors: Error[];
  acknowledgments: number;
  until(count: number): Promise<current.Item<Item>[]>;
}

describe.each(ways)("client $version, secure: $isSecure", ({ client, isSecure }) => {
  class User {
    name: string;
    age: number;
    friend: string | undefined;
    constructor(name: string, age: number, friend?: string) {
      this.name = name;
      this.age = age;
      this.friend = friend;
    }
  }

  let store: current.DocumentStore;
  let server: TestServer;

  beforeEach(async () => {
    server = isSecure ? secure : plain;
    const name = `subscriptions-${++databases}`;
    await server.running.services.databases.create(name, { DatabaseName: name });
    const opened = new client.DocumentStore(server.url, name, authentication(server));
    store = opened;
    store.initialize();
    onTestFinished(() => opened.dispose());
  });

  async function save(...users: readonly User[]): Promise<void> {
    const session = store.openSession();
    for (const user of users) await session.store(user, `users/${user.name}`);
    await session.saveChanges();
  }

  function take<Item extends object = User>(
    options: Omit<current.SubscriptionWorkerOptions<Item>, "documentType"> & {
      documentType?: current.DocumentType<Item>;
    },
    isRevisions = false,
  ): Taken<Item> {
    const all = {
      timeToWaitBeforeConnectionRetry: 50,
      documentType: User as unknown as current.DocumentType<Item>,
      ...options,
    } as current.SubscriptionWorkerOptions<Item>;
    const { subscriptions } = store;
    const worker = isRevisions
      ? (subscriptions.getSubscriptionWorkerForRevisions(
          all as unknown as current.SubscriptionWorkerOptions<User>,
        ) as unknown as current.SubscriptionWorker<Item>)
      : subscriptions.getSubscriptionWorker<Item>(all);
    const taken: Taken<Item> = {
      worker,
      items: [],
      sizes: [],
      errors: [],
      acknowledgments: 0,
      async until(count) {
        await expect
          .poll(() => taken.items.length, { timeout: 8000 })
          .toBeGreaterThanOrEqual(count);
        return taken.items;
      },
    };
    worker.on("batch", (batch, done) => {
      taken.items.push(...batch.items);
      taken.sizes.push(batch.items.length);
      done();
    });
    worker.on("afterAcknowledgment", () => {
      taken.acknowledgments++;
    });
    worker.on("error", (error) => {
      if (error !== undefined) taken.errors.push(error);
    });
    onTestFinished(() => worker.dispose());
    return taken;
  }

  const names = (items: readonly current.Item<User>[]) => items.map(({ result }) => result.name);

  test("receives existing and new documents in batches, and resumes after its acknowledgments", async () => {
    await save(new User("ann", 1), new User("bea", 2), new User("cat", 3));
    const subscriptionName = await store.subscriptions.create(User);
    const first = take({ subscriptionName, maxDocsPerBatch: 2 });
    const items = await first.until(3);
    expect(names(items)).toEqual(["ann", "bea", "cat"]);
    expect(first.sizes).toEqual([2, 1]);
    expect(items[0]).toMatchObject({
      id: "users/ann",
      changeVector: expect.stringMatching(/^A:1-/),
    });
    expect(items[0]?.result).toBeInstanceOf(User);
    await save(new User("dan", 4));
    await first.until(4);
    await expect.poll(() => first.acknowledgments).toBe(3);
    first.worker.dispose();
    await save(new User("eve", 5));
    const second = take({ subscriptionName, strategy: "WaitForFree" });
    expect(names(await second.until(1))).toEqual(["eve"]);
    const state = await store.subscriptions.getSubscriptionState(subscriptionName);
    expect(state).toMatchObject({
      subscriptionName,
      query: expect.stringMatching(/^from '?Users/),
    });
    expect(String(state.lastClientConnectionTime)).toMatch(/^20/);
  });

  test("filters, selects and includes in RQL", async () => {
    await save(new User("ann", 10, "users/bea"), new User("bea", 20), new User("cat", 30));
    const query =
      "from Users as u where u.age >= 10 and u.age < 30 select { who: u.name, twice: u.age * 2 }";
    const selecting = take<{ who: string; twice: number }>({
      subscriptionName: await store.subscriptions.create({ query }),
      documentType: Object as unknown as current.DocumentType<{ who: string; twice: number }>,
    });
    expect((await selecting.until(2)).map(({ result }) => result)).toMatchObject([
      { who: "ann", twice: 20 },
      { who: "bea", twice: 40 },
    ]);
    const including = await store.subscriptions.create({
      query: "from Users where name = 'ann' include friend",
    });
    const worker = store.subscriptions.getSubscriptionWorker<User>({
      subscriptionName: including,
      documentType: User,
    });
    onTestFinished(() => worker.dispose());
    const loaded = new Promise<[string, number]>((resolve, reject) => {
      worker.on("error", reject);
      worker.on("batch", (batch, done) => {
        const session = batch.openSession();
        const [item] = batch.items;
        session
          .load<User>(item?.result.friend ?? "", User)
          .then((friend) => {
            resolve([friend?.name ?? "", session.advanced.numberOfRequests]);
            done();
          })
          .catch(reject);
      });
    });
    expect(await loaded).toEqual(["bea", 0]);
  });

  test("receives documents that its user changes within a batch", async () => {
    await save(new User("ann", 1));
    const subscriptionName = await store.subscriptions.create({
      query: "from Users where age < 3",
    });
    const worker = store.subscriptions.getSubscriptionWorker<User>({
      subscriptionName,
      documentType: User,
    });
    onTestFinished(() => worker.dispose());
    const ages: number[] = [];
    worker.on("batch", (batch, done) => {
      const session = batch.openSession();
      for (const { result } of batch.items) {
        ages.push(result.age);
        result.age++;
      }
      session.saveChanges().then(() => done(), done);
    });
    await expect.poll(() => ages, { timeout: 8000 }).toEqual([1, 2]);
    // The third version is stored after the batch was received.
    const age = async () => (await store.openSession().load<User>("users/ann", User))?.age;
    await expect.poll(age, { timeout: 8000 }).toBe(3);
  });

  test("reports the error of a script for a document", async () => {
    await save(new User("ann", 1), new User("bea", 2));
    const { items, until } = take({
      subscriptionName: await store.subscriptions.create({
        query:
          "declare function f(u) { if (u.age == 1) throw 'no'; return true; } from Users as u where f(u)",
      }),
    });
    await until(2);
    expect(() => items[0]?.result).toThrow(/Failed to process document users\/ann.*/);
    expect(items[1]?.result.name).toBe("bea");
  });

  test("is rejected for a subscription that is in use or does not exist", async () => {
    const subscriptionName = await store.subscriptions.create(User);
    const first = take({ subscriptionName });
    await save(new User("ann", 1));
    await first.until(1);
    const second = take({ subscriptionName });
    const none = take({ subscriptionName: "none" });
    await expect.poll(() => second.errors[0]?.name).toBe("SubscriptionInUseException");
    await expect.poll(() => none.errors[0]?.name).toBe("SubscriptionDoesNotExistException");
    const third = take({ subscriptionName, strategy: "TakeOver" });
    await expect.poll(() => first.errors[0]?.name).toBe("SubscriptionInUseException");
    await save(new User("bea", 2));
    expect(names(await third.until(1)).at(-1)).toBe("bea");
  });

  test("shares a subscription with others", async () => {
    const subscriptionName = await store.subscriptions.create(User);
    const strategy = "Concurrent";
    const first = take({ subscriptionName, strategy, maxDocsPerBatch: 2 });
    const second = take({ subscriptionName, strategy, maxDocsPerBatch: 2 });
    const users = Array.from({ length: 30 }, (_, i) => new User(`user-${i}`, i));
    await save(...users);
    await expect
      .poll(() => first.items.length + second.items.length, { timeout: 8000 })
      .toBe(users.length);
    const seen = new Set([...names(first.items), ...names(second.items)]);
    expect(seen.size).toBe(users.length);
  });

  test("is disconnected, reconnects after a change, and ends when the subscription is deleted", async () => {
    await save(new User("ann", 1), new User("bea", 2));
    const subscriptionName = await store.subscriptions.create({
      query: "from Users where age = 1",
    });
    const dropped = take({ subscriptionName });
    await dropped.until(1);
    await store.subscriptions.dropConnection(subscriptionName);
    await expect.poll(() => dropped.errors[0]?.name).toBe("SubscriptionClosedException");
    const taken = take({ subscriptionName });
    await save(new User("ann", 1));
    await taken.until(1);
    await expect.poll(() => taken.acknowledgments).toBe(1);
    await store.subscriptions.update({
      name: subscriptionName,
      query: "from Users where age = 2",
      changeVector: "BeginningOfTime",
    });
    expect(names(await taken.until(2))).toEqual(["ann", "bea"]);
    expect(taken.errors).toEqual([]);
    await store.subscriptions.disable(subscriptionName);
    await expect.poll(() => taken.errors[0]?.name).toBe("SubscriptionClosedException");
    await store.subscriptions.enable(subscriptionName);
    const last = take({ subscriptionName });
    await save(new User("cat", 2));
    await last.until(1);
    await store.subscriptions.delete(subscriptionName);
    await expect.poll(() => last.errors[0]?.name).toBe("SubscriptionDoesNotExistException");
    expect(await store.subscriptions.getSubscriptions(0, 10)).toEqual([]);
  });

  test("receives revisions in pairs", async () => {
    await store.maintenance.send(
      new client.ConfigureRevisionsOperation(
        Object.assign(new client.RevisionsConfiguration(), {
          defaultConfig: Object.assign(new client.RevisionsCollectionConfiguration(), {
            disabled: false,
          }),
        }),
      ),
    );
    await save(new User("ann", 1));
    await save(new User("ann", 2));
    const taken = take<current.Revision<User>>(
      { subscriptionName: await store.subscriptions.createForRevisions({ documentType: User }) },
      true,
    );
    expect((await taken.until(2)).map(({ result }) => result)).toMatchObject([
      { current: { age: 1 }, previous: null },
      { current: { age: 2 }, previous: { age: 1 } },
    ]);
  });

  test("ends when no document is left, if configured", async () => {
    await save(new User("ann", 1));
    const subscriptionName = await store.subscriptions.create(User);
    const taken = take({ subscriptionName, closeWhenNoDocsLeft: true });
    await expect.poll(() => taken.errors[0]?.name).toBe("SubscriptionClosedException");
    expect(names(taken.items)).toEqual(["ann"]);
  });

  test("continues after an error in user code, if configured", async () => {
    await save(new User("ann", 1), new User("bea", 2));
    const worker = store.subscriptions.getSubscriptionWorker<User>({
      subscriptionName: await store.subscriptions.create(User),
      documentType: User,
      ignoreSubscriberErrors: true,
      maxDocsPerBatch: 1,
    });
    onTestFinished(() => worker.dispose());
    const got: string[] = [];
    worker.on("batch", (batch, done) => {
      got.push(...names(batch.items));
      done(new Error("its user's own"));
    });
    await expect.poll(() => got, { timeout: 8000 }).toEqual(["ann", "bea"]);
  });
});
