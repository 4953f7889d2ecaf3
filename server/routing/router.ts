/**
 * Matches a method and path to a route, with tables built once. Matching is a map look-up by literal path, after the
 * database name has been cut out of the path.
 *
 * Invariants:
 * - No two routes match the same method and path (asserted when the table is built).
 * - A trailing slash makes a different path. Paths are case-sensitive, except below a database, as in RavenDB 7.2.7.
 */
import { assert } from "../../engine/base/assert.ts";
import { type Requirement, requirements } from "../security/access.ts";
import { databasePrefix, type Route } from "./route.ts";

/** One path and its endpoints by method. */
interface PathEntry {
  readonly methods: Map<string, Endpoint>;
}

/** Maximum number of cached paths, and maximum length of one. */
const knownPathsMax = 256;
const knownPathLengthMax = 256;

/** A parsed path. */
interface KnownPath {
  readonly entry: PathEntry;
  readonly database: string | undefined;
}

/** A route with the data that the pipeline needs for each request. */
export interface Endpoint {
  readonly route: Route;
  readonly requirement: Requirement;
  /** The position of the route in the table. */
  readonly number: number;
}

/** The result of matching. `endpoint` is undefined if the route does not exist or (with `allowed`) not for this method. */
export interface Match {
  readonly endpoint: Endpoint | undefined;
  readonly allowed: readonly string[] | undefined;
  /** The database's name in the path, percent-decoded; undefined for server routes. */
  readonly database: string | undefined;
}

export class RouteTable {
  readonly routes: readonly Route[];
  private readonly serverPaths = new Map<string, PathEntry>();
  private readonly databasePaths = new Map<string, PathEntry>();
  /** Paths that end in `/*`, without the star, longest first. */
  private readonly prefixes: { readonly prefix: string; readonly entry: PathEntry }[] = [];
  /** Cache of parsed paths: clients use few paths repeatedly. Unknown paths are not cached. */
  private readonly known = new Map<string, KnownPath>();

  constructor(routes: readonly Route[]) {
    this.routes = routes;
    for (const [number, route] of routes.entries()) this.add(route, number);
    this.prefixes.sort((one, other) => other.prefix.length - one.prefix.length);
  }

  /** Finds the endpoint for `method` on `path` (percent-encoded, without query). Hot: two map look-ups. */
  match(method: string, path: string): Match {
    const { entry, database } = this.known.get(path) ?? this.find(path);
    if (entry === undefined) return { endpoint: undefined, allowed: undefined, database };
    const endpoint = entry.methods.get(method);
    if (endpoint !== undefined) return { endpoint, allowed: undefined, database };
    return { endpoint: undefined, allowed: [...entry.methods.keys()], database };
  }

  private find(path: string): { entry: PathEntry | undefined; database: string | undefined } {
    let entry: PathEntry | undefined;
    let database: string | undefined;
    if (path.startsWith("/databases/")) {
      const end = path.indexOf("/", 11);
      if (end >= 11) {
        database = decodeName(path.slice(11, end));
        const rest = path.slice(end + 1);
        entry = this.databasePaths.get(rest) ?? this.databasePaths.get(rest.toLowerCase());
      }
    } else {
      entry = this.serverPaths.get(path) ?? this.matchPrefix(path);
    }
    if (entry !== undefined && path.length <= knownPathLengthMax) {
      if (this.known.size === knownPathsMax) this.known.clear();
      this.known.set(path, { entry, database });
    }
    return { entry, database };
  }

  private matchPrefix(path: string): PathEntry | undefined {
    for (const { prefix, entry } of this.prefixes) {
      if (path.startsWith(prefix)) return entry;
    }
    return undefined;
  }

  private add(route: Route, number: number): void {
    const isDatabasePath = route.path.startsWith(databasePrefix);
    assert(
      (route.kind === "server") !== isDatabasePath || route.kind === "websocket",
      `a database route must be under ${databasePrefix}: ${route.path}`,
    );
    assert(
      isDatabasePath || requirements[route.access].permission === 0,
      `a database permission needs a database: ${route.path}`,
    );
    assert(
      !isDatabasePath || route.path === route.path.toLowerCase(),
      `a database path must be in lower case: ${route.path}`,
    );
    const entry = isDatabasePath
      ? this.entryIn(this.databasePaths, route.path.slice(databasePrefix.length))
      : this.serverEntry(route.path);
    assert(!entry.methods.has(route.method), `two routes are ${route.method} ${route.path}`);
    entry.methods.set(route.method, { route, requirement: requirements[route.access], number });
  }

  private serverEntry(path: string): PathEntry {
    if (!path.endsWith("/*")) return this.entryIn(this.serverPaths, path);
    const prefix = path.slice(0, -1);
    const known = this.prefixes.find((one) => one.prefix === prefix);
    if (known !== undefined) return known.entry;
    const entry: PathEntry = { methods: new Map() };
    this.prefixes.push({ prefix, entry });
    return entry;
  }

  private entryIn(paths: Map<string, PathEntry>, path: string): PathEntry {
    let entry = paths.get(path);
    if (entry === undefined) {
      entry = { methods: new Map() };
      paths.set(path, entry);
    }
    return entry;
  }
}

function decodeName(text: string): string {
  if (!text.includes("%")) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
