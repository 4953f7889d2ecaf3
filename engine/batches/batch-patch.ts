/** Batch commands that patch documents, by script or by JSON Patch. Result rows equal those of RavenDB 7.2.7. */
import { EngineError } from "../base/errors.ts";
import { quoteString } from "../base/json/escape.ts";
import { decodeString, findMember, ValueSpan, valueKind } from "../base/json/field-access.ts";
import { readTree } from "../base/json/text-tree.ts";
import type { Work } from "../base/scheduling/work-budget.ts";
import { formatTimestamp, neverText } from "../base/timestamp.ts";
import { patchByJson } from "../patching/json-patch.ts";
import { type PatchScript, patchDocument } from "../patching/patch.ts";
import type { DocumentParser } from "../state/documents/document-parser.ts";
import type { BatchRun } from "./batch.ts";
import type { BatchCommand } from "./batch-parser.ts";
import type { BatchRow } from "./batch-rows.ts";

const scriptKey = quoteString("Script");
const valuesKey = quoteString("Values");

/** `{"Type":"PATCH","Id","Patch","PatchIfMissing"?,"CreateIfMissing"?,"ChangeVector"?,"ReturnDocument"?}` */
export function patchOne({ transaction }: BatchRun, command: BatchCommand): BatchRow {
  const { parser } = transaction.state;
  const id = command.text("Id") ?? "";
  const result = patchDocument(transaction, {
    id,
    patch: requiredScript(parser, command),
    ifMissing: scriptOf(parser, command, "PatchIfMissing"),
    createIfMissing: objectText(parser, command, "CreateIfMissing"),
    expectedChangeVector: command.text("ChangeVector") ?? undefined,
  });
  const { changeVector, lastModified, status } = result;
  const modified = command.isSet("ReturnDocument") ? `,"ModifiedDocument":${result.modified}` : "";
  const modifiedAt = changeVector === null ? neverText : formatTimestamp(lastModified);
  const row =
    `{"Id":${JSON.stringify(id)},"ChangeVector":${JSON.stringify(changeVector)},"LastModified":"${modifiedAt}"` +
    `,"Type":"PATCH","PatchStatus":"${status}","Debug":null${modified}}`;
  return row;
}

/** `{"Type":"BatchPATCH","Ids":[{"Id","ChangeVector"?}],"Patch","PatchIfMissing"?}` */
export function* patchMany({ transaction }: BatchRun, command: BatchCommand): Work<BatchRow> {
  const ids = command.value("Ids");
  if (!Array.isArray(ids)) {
    throw new EngineError(
      ids === undefined ? "invalid-operation" : "json-not-object",
      "BatchPATCH command must have an 'Ids' array",
    );
  }
  const { parser } = transaction.state;
  const patch = requiredScript(parser, command);
  const ifMissing = scriptOf(parser, command, "PatchIfMissing");
  for (const item of ids) {
    const { Id, ChangeVector } = (item ?? {}) as Record<string, unknown>;
    if (typeof Id !== "string") {
      throw new EngineError("invalid-operation", "Each of BatchPATCH's 'Ids' must have an 'Id'");
    }
    patchDocument(transaction, {
      id: Id,
      patch,
      ifMissing,
      expectedChangeVector: typeof ChangeVector === "string" ? ChangeVector : undefined,
    });
    yield;
  }
  return '{"Type":"BatchPATCH"}';
}

/** `{"Type":"JsonPatch","Id","JsonPatch":{"Operations":[…]},"ChangeVector"?,"ReturnDocument"?}` */
export function patchJson({ transaction }: BatchRun, command: BatchCommand): BatchRow {
  const span = command.span("JsonPatch");
  if (span === undefined) {
    throw new EngineError(
      "invalid-operation",
      "JsonPatch command must have a 'JsonPatch' property",
    );
  }
  const id = command.text("Id") ?? "";
  const { parser } = transaction.state;
  const request = readTree(parser.parseValue(command.bytes, span.from, span.to).body, 0);
  const operations = request instanceof Map ? request.get("Operations") : undefined;
  const expected = command.text("ChangeVector") ?? undefined;
  const result = patchByJson(transaction, id, operations, expected);
  const { changeVector, lastModified, status, etag } = result;
  const modified = command.isSet("ReturnDocument") ? `,"ModifiedDocument":${result.modified}` : "";
  const modifiedAt = changeVector === null ? neverText : formatTimestamp(lastModified);
  const row =
    `{"Id":${JSON.stringify(id)},"ChangeVector":${JSON.stringify(changeVector)},"LastModified":"${modifiedAt}"` +
    `,"Type":"JsonPatch","PatchStatus":"${status}","Etag":${etag}${modified}}`;
  return row;
}

function requiredScript(parser: DocumentParser, command: BatchCommand): PatchScript {
  const patch = scriptOf(parser, command, "Patch");
  if (patch === undefined) {
    throw new EngineError(
      "invalid-operation",
      `${command.type} command must have a 'Patch' property`,
    );
  }
  return patch;
}

/** `{"Script":…,"Values":…}`, the arguments in their own spelling. @throws EngineError json-invalid without a script */
function scriptOf(
  parser: DocumentParser,
  command: BatchCommand,
  key: string,
): PatchScript | undefined {
  const span = command.span(key);
  if (span === undefined) return undefined;
  if (valueKind(command.bytes, span.from) !== "object") {
    throw new EngineError("json-not-object", `'${key}' of a command must be an object.`);
  }
  const text = parser.parseValue(command.bytes, span.from, span.to).body;
  const found = new ValueSpan();
  if (!findMember(text, 0, scriptKey, found) || valueKind(text, found.from) !== "string") {
    throw new EngineError("json-invalid", `Missing 'Script' property on '${key}'`);
  }
  const script = decodeString(text, found.from, found.to);
  const kind = findMember(text, 0, valuesKey, found) ? valueKind(text, found.from) : "null";
  if (kind !== "object" && kind !== "null") {
    throw new EngineError("invalid-format", `'Values' of '${key}' must be an object.`);
  }
  const hasValues = kind === "object";
  return { script, values: hasValues ? text.utf8Slice(found.from, found.to) : "{}" };
}

/** Returns the minified text of a member that is an object; undefined when it is absent or something else. */
function objectText(
  parser: DocumentParser,
  command: BatchCommand,
  key: string,
): string | undefined {
  const span = command.span(key);
  if (span === undefined || valueKind(command.bytes, span.from) !== "object") return undefined;
  return parser.parseValue(command.bytes, span.from, span.to).body.utf8Slice();
}
