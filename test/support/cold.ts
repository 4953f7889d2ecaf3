/**
 * `npm run stress cold`: the same tests with no record in memory. Test databases have tiny segments and an empty cache
 * (cold-databases.ts), every one has files, and servers reopen theirs before every read (restarting-routes.ts).
 */
export const isCold = process.env["COLD"] === "1";
