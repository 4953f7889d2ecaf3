/**
 * `npm run test:cold`: the same tests while no record is in memory. Databases of tests have tiny segments and a cache without
 * room (cold-databases.ts), none is without files, and servers open theirs again before every read (restarting-routes.ts).
 */
export const isCold = process.env["COLD"] === "1";
