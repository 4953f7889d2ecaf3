/** Does `npm run test:faults` run? Then nothing is sampled: every call fails, every bit is flipped. */
export const everyFault = process.env["EVERY_FAULT"] === "1";
