/** JSON as JavaScript has it, where what it means is another's business. */
export type JsonObject = Readonly<Record<string, unknown>>;
