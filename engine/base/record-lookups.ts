/** How often a record was looked for in memory, for all databases of the process, and found or not. */
export const recordLookups = { found: 0, missed: 0 };
