/**
 * Set by `npm run stress faults`, which samples nothing: every call fails, and every bit is flipped.
 */
export const everyFault = process.env["EVERY_FAULT"] === "1";

/** Set by `npm run stress long`: a larger sample than `npm test` takes. */
export const moreFaults = process.env["MORE_FAULTS"] === "1";
