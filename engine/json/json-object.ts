/** A JSON object as a JavaScript object of unknown content. */
export type JsonObject = Readonly<Record<string, unknown>>;
