/**
 * Set by `npm run stress faults`, which samples nothing: every call fails, and every bit is flipped.
 */
export const everyFault = process.env["EVERY_FAULT"] === "1";
