/** Set by `npm run test:faults`: nothing is sampled then: every call fails, every bit is flipped. */
export const everyFault = process.env["EVERY_FAULT"] === "1";
