/** The official client's sessions: loading, storing, deleting, tracking and events. */
import type { DocumentStore } from "ravendb";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { closeStores, openStore, startServer, ways } from "../support/client-store.ts";

class User {
  id?: string;
  name: string;
  city: string | null;
  constructor(name: string, city: string | null = null) {
    this.name = name;
    this.city = city;
  }
}

class City {
  id?: string;
  title: string;
  constructor(title: string) {
    this.title = title;
  }
}

afterAll(closeStores);

describe.each(ways)("a session $name", (way) => {
  let store: DocumentStore;
  beforeAll(async () => {
    store = await openStore(await startServer(way));
    const session = store.openSession();
    await session.store(new City("Paris"), "cities/1");
    await session.store(new User("Ann", "cities/1"), "users/a");
    await session.store(new User("Bob"), "users/b");
    await session.saveChanges();
  });

  test("loads one document and many, each once, and null for missing ones", async () => {
    const session = store.openSession();
    const ann = await session.load<User>("users/a", User);
    expect(ann).toBeInstanceOf(User);
    expect(ann).toMatchObject({ id: "users/a", name: "Ann" });
    expect(await session.load("users/a")).toBe(ann);
    expect(session.advanced.numberOfRequests).toBe(1);
    const many = await session.load<User>(["users/a", "users/b", "users/zz"], User);
    expect(many["users/b"]?.name).toBe("Bob");
    expect(many["users/zz"]).toBeNull();
    expect(await session.load("users/none")).toBeNull();
    const listed = await session.advanced.loadStartingWith<User>("users/", { pageSize: 1 });
    expect(listed.map(({ name }) => name)).toEqual(["Ann"]);
  });

  test("loads more documents than fit into a URL", async () => {
    const session = store.openSession();
    const ids = Array.from({ length: 200 }, (_, i) => `users/${"long".repeat(5)}/${i}`);
    const found = await session.load<User>([...ids, "users/b"], User);
    expect(found["users/b"]?.name).toBe("Bob");
    expect(Object.values(found).filter((user) => user !== null)).toHaveLength(1);
  });

  test("loads referenced documents in the same request", async () => {
    const session = store.openSession();
    await session.include("city").load("users/a", User);
    expect((await session.load<City>("cities/1", City))?.title).toBe("Paris");
    expect(session.advanced.numberOfRequests).toBe(1);
  });

  test("loads lazily, all in one request, also missing documents", async () => {
    const session = store.openSession();
    const ann = session.advanced.lazily.load<User>("users/a", User);
    const nobody = session.advanced.lazily.load<User>("users/none", User);
    const both = session.advanced.lazily.load<User>(["users/a", "users/b"], User);
    const found = session.query<User>({ collection: "Users" }).whereEquals("name", "Bob").lazily();
    await session.advanced.eagerly.executeAllPendingLazyOperations();
    expect((await ann.getValue())?.name).toBe("Ann");
    expect(await nobody.getValue()).toBeNull();
    expect(Object.keys(await both.getValue())).toEqual(["users/a", "users/b"]);
    expect((await found.getValue()).map(({ name }) => name)).toEqual(["Bob"]);
    expect(session.advanced.numberOfRequests).toBe(1);
  });

  test("loads a document only if it has changed", async () => {
    const first = store.openSession();
    const ann = (await first.load<User>("users/a", User)) as User;
    const vector = first.advanced.getChangeVectorFor(ann);
    const same = await store.openSession().advanced.conditionalLoad<User>("users/a", vector, User);
    expect(same.entity).toBeNull();
    const other = await store
      .openSession()
      .advanced.conditionalLoad<User>("users/a", "A:1-other", User);
    expect(other.entity?.name).toBe("Ann");
  });

  test("deletes by id and by entity", async () => {
    const session = store.openSession();
    const entity = new User("gone");
    await session.store(entity, "users/gone/1");
    await session.store(new User("gone"), "users/gone/2");
    await session.saveChanges();
    await session.delete(entity);
    await session.delete("users/gone/2");
    await session.saveChanges();
    expect(await session.advanced.exists("users/gone/1")).toBe(false);
    expect(await session.advanced.exists("users/gone/2")).toBe(false);
    expect(await session.advanced.exists("users/a")).toBe(true);
  });

  test("does not overwrite changes of others if concurrency checks are enabled", async () => {
    const setup = store.openSession();
    await setup.store(new User("first"), "users/contested");
    await setup.saveChanges();
    const one = store.openSession();
    const two = store.openSession();
    one.advanced.useOptimisticConcurrency = true;
    const mine = (await one.load<User>("users/contested", User)) as User;
    const theirs = (await two.load<User>("users/contested", User)) as User;
    theirs.name = "theirs";
    await two.saveChanges();
    mine.name = "mine";
    await expect(one.saveChanges()).rejects.toMatchObject({ name: "ConcurrencyException" });
    const fresh = store.openSession();
    await fresh.store(new User("again"), "users/contested", { changeVector: "" });
    await expect(fresh.saveChanges()).rejects.toMatchObject({ name: "ConcurrencyException" });
    expect((await store.openSession().load<User>("users/contested", User))?.name).toBe("theirs");
  });

  test("creates ids from ranges, by the server, and from identities", async () => {
    const session = store.openSession();
    const ranged = new User("ranged");
    const second = new User("second");
    const numbered = new User("server");
    const identity = new User("identity");
    await session.store(ranged);
    await session.store(second);
    await session.store(numbered, "users/");
    await session.store(identity, "members|");
    await session.saveChanges();
    expect([ranged.id, second.id]).toEqual(["users/1-A", "users/2-A"]);
    expect(numbered.id).toMatch(/^users\/\d{19}-A$/);
    expect(identity.id).toBe("members/1");
  });

  test("reports changes, and discards them on request", async () => {
    const session = store.openSession();
    const ann = (await session.load<User>("users/a", User)) as User;
    expect(session.advanced.hasChanges()).toBe(false);
    ann.name = "Anna";
    await session.store(new User("new"), "users/new");
    const changes = session.advanced.whatChanged();
    expect(Object.keys(changes).sort()).toEqual(["users/a", "users/new"]);
    expect(changes["users/a"]).toMatchObject([
      { change: "FieldChanged", fieldName: "name", fieldOldValue: "Ann", fieldNewValue: "Anna" },
    ]);
    expect(session.advanced.hasChanged(ann)).toBe(true);
    session.advanced.evict(ann);
    session.advanced.clear();
    expect(session.advanced.hasChanges()).toBe(false);
  });

  test("reads a document again", async () => {
    const session = store.openSession();
    const bob = (await session.load<User>("users/b", User)) as User;
    const other = store.openSession();
    ((await other.load<User>("users/b", User)) as User).name = "Robert";
    await other.saveChanges();
    await session.advanced.refresh(bob);
    expect(bob.name).toBe("Robert");
    bob.name = "Bob";
    await session.saveChanges();
  });

  test("stores its own metadata", async () => {
    const session = store.openSession();
    const user = new User("meta");
    await session.store(user, "users/meta");
    session.advanced.getMetadataFor(user)["Colour"] = "green";
    await session.saveChanges();
    const other = store.openSession();
    const loaded = (await other.load<User>("users/meta", User)) as User;
    const metadata = other.advanced.getMetadataFor(loaded);
    expect(metadata).toMatchObject({
      "@id": "users/meta",
      "@collection": "Users",
      Colour: "green",
    });
    expect(other.advanced.getChangeVectorFor(loaded)).toMatch(/^A:\d+-/);
    expect(other.advanced.getLastModifiedFor(loaded)).toBeInstanceOf(Date);
    metadata["Colour"] = "blue";
    await other.saveChanges();
    const third = store.openSession();
    const again = (await third.load<User>("users/meta", User)) as User;
    expect(third.advanced.getMetadataFor(again)).toMatchObject({ Colour: "blue" });
  });

  test("does not track loaded documents if configured", async () => {
    const session = store.openSession({ noTracking: true });
    const first = await session.load("users/a", User);
    expect(await session.load("users/a", User)).not.toBe(first);
    expect(session.advanced.numberOfRequests).toBe(2);
    const tracking = store.openSession();
    const [found] = await tracking.query<User>(User).whereEquals("name", "Ann").noTracking().all();
    expect(found?.name).toBe("Ann");
    expect(tracking.advanced.isLoaded("users/a")).toBe(false);
  });

  test("notifies listeners of its actions", async () => {
    const seen: string[] = [];
    const session = store.openSession();
    session.advanced.on("beforeStore", ({ documentId }) => seen.push(`store ${documentId}`));
    session.advanced.on("afterSaveChanges", ({ documentId }) => seen.push(`saved ${documentId}`));
    session.advanced.on("beforeDelete", ({ documentId }) => seen.push(`delete ${documentId}`));
    session.advanced.on("beforeQuery", () => seen.push("query"));
    await session.store(new User("heard"), "users/heard");
    await session.saveChanges();
    await session.query(User).whereEquals("name", "heard").all();
    await session.delete("users/heard");
    await session.saveChanges();
    expect(seen).toEqual(["store users/heard", "saved users/heard", "query", "delete users/heard"]);
  });
});
