/** Batches of the library, encoded as batches of the HTTP interface, so that the engine executes only one format. */
import type { Database as OpenDatabase } from "../engine/engine.ts";
import type { Command, CommandResult } from "./surface.ts";
import { expectedText, membersText, textOf } from "./texts.ts";

/** Result of one command. */
interface Row {
  readonly "@change-vector"?: string;
  readonly "@id"?: string;
  readonly ChangeVector?: string | null;
  readonly DocumentChangeVector?: string | null;
  readonly Type: string;
}

/** Runs a batch. @throws EngineError of the first command that fails; the batch then has no effect */
export async function runBatch(
  { batches }: OpenDatabase,
  commands: readonly Command[],
): Promise<CommandResult[]> {
  if (commands.length === 0) return [];
  const text = `{"Commands":[${commands.map(commandText).join(",")}]}`;
  const batch = await batches.prepare(Buffer.from(text));
  const rows = await batch.run();
  return (JSON.parse(`[${rows.toString()}]`) as Row[]).map((row, at) =>
    resultOf(row, commands[at]?.id ?? ""),
  );
}

function resultOf(row: Row, id: string): CommandResult {
  const changeVector = row["@change-vector"] ?? row.DocumentChangeVector ?? row.ChangeVector;
  return { id: row["@id"] ?? id, changeVector: changeVector ?? null };
}

function commandText(command: Command): string {
  const { id } = command;
  const expected = (vector: string | null | undefined) =>
    vector === undefined ? "" : `,"ChangeVector":${JSON.stringify(expectedText(vector))}`;
  const head = (type: string) => `"Type":"${type}","Id":${JSON.stringify(id)}`;
  switch (command.type) {
    case "put": {
      const text = textOf(command.document, command.collection);
      return `{${head("PUT")}${expected(command.expected)},"Document":${text}}`;
    }
    case "delete":
      return `{${head("DELETE")}${expected(command.expected)}}`;
    case "patch": {
      const script = `"Script":${JSON.stringify(command.script)}`;
      const values = `"Values":${membersText(command.args ?? {})}`;
      return `{${head("PATCH")}${expected(command.expected)},"Patch":{${script},${values}}}`;
    }
    case "increment": {
      const name = `"CounterName":${JSON.stringify(command.counter)}`;
      const operation = `{"Type":"Increment",${name},"Delta":${command.by ?? 1}}`;
      const owner = `"DocumentId":${JSON.stringify(id)}`;
      return `{${head("Counters")},"Counters":{${owner},"Operations":[${operation}]}}`;
    }
  }
}
