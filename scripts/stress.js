/**
 * `npm run stress NAME`: runs tests that `npm test` omits, because they take minutes, or need a browser, a nats-server or root.
 * Without a name, lists them. Further arguments are forwarded: `npm run stress fuzz -- --requests 1000`.
 *
 * Each entry has the duration on two cores, what it runs, and the arguments of `vitest run` or the built program.
 * `isBuilt`: it needs a build, which is run if a source has changed.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { pathToFileURL } from "node:url";

export const stresses = {
  studio: {
    takes: "3 min",
    about: "the studio in Chromium (CHROMIUM: its path; PICTURES=FOLDER stores screenshots)",
    isBuilt: true,
    vitest: ["--mode", "studio"],
  },
  walks: {
    takes: "2 min",
    about: "every page of the studio with axe and with each access level, and the cluster page",
    isBuilt: true,
    vitest: ["--mode", "walks"],
  },
  cluster: {
    takes: "3 min",
    about: "several nodes; needs node packaging/nats-server.js, or NATS_SERVER=PATH",
    isBuilt: true,
    vitest: ["--mode", "cluster"],
  },
  long: {
    takes: "8 min",
    about: "processes, the package, crashes and faults at many points, slow files",
    isBuilt: true,
    vitest: ["--mode", "long"],
  },
  cold: {
    takes: "10 min",
    about: "all tests without cached records",
    isBuilt: true,
    vitest: ["--mode", "cold"],
  },
  benches: {
    takes: "3 min",
    about: "every bench at a small size",
    isBuilt: true,
    vitest: ["--mode", "benches"],
  },
  nodes: {
    takes: "2 min",
    about: "three servers and NATS servers under ten faults; with Go, checks linearizability",
    isBuilt: true,
    vitest: ["--mode", "nodes"],
  },
  nightly: {
    takes: "50 min",
    about: "the same with 200 faults, on ten clusters; some need root and libfaketime",
    isBuilt: true,
    environment: { CLUSTER_ROUNDS: "200" },
    vitest: ["--mode", "nodes", "cluster-faults"],
  },
  followed: {
    takes: "some minutes",
    about: "the tests of the engine, with each database compared with a follower",
    vitest: ["--mode", "followed"],
  },
  faults: {
    takes: "60 min",
    about: "every failing file system call and every flipped bit",
    isBuilt: true,
    vitest: ["--mode", "faults"],
  },
  crash: {
    takes: "by --rounds=N",
    about: "a server process that is killed N times",
    isBuilt: true,
    program: "dist/test/simulation/kill-loop.js",
  },
  schedules: {
    takes: "10 min per million",
    about: "replication under simulated faults (--schedules N --seed N, --trace, --shrink)",
    isBuilt: true,
    program: "dist/test/simulation/replication-schedules.js",
  },
  fuzz: {
    takes: "1 min per 20,000",
    about: "mutated requests on every route (--seed N --requests N, --from N)",
    isBuilt: true,
    program: "dist/test/fuzz/fuzz.js",
  },
  abuse: {
    takes: "--short: 20 min",
    about: "attacks on a server process, and their effect on other clients",
    isBuilt: true,
    program: "dist/test/abuse/run-abuse.js",
  },
};

/** Returns one line for each entry. */
export function stressLines() {
  return Object.entries(stresses).map(
    ([name, { takes, about }]) => `npm run stress ${name.padEnd(9)}  ${takes.padEnd(18)}  ${about}`,
  );
}

async function run(command, args, environment) {
  const env = { ...process.env, ...environment };
  const [code] = await once(spawn(command, args, { stdio: "inherit", env }), "exit");
  if (code !== 0) process.exit(code ?? 1);
}

async function main([name, ...args]) {
  const one = Object.hasOwn(stresses, name ?? "") ? stresses[name] : undefined;
  if (one === undefined) {
    console.log(stressLines().join("\n"));
    process.exit(name === undefined ? 0 : 1);
  }
  const { isBuilt, environment, vitest, program } = one;
  if (isBuilt) await run(process.execPath, ["scripts/build-if-changed.js"]);
  if (program !== undefined) await run(process.execPath, [program, ...args], environment);
  else await run("npm", ["exec", "--", "vitest", "run", ...vitest, ...args], environment);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  await main(process.argv.slice(2));
}
