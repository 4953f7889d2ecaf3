/** Formats operations for replies and notifications, with the shapes and type names of RavenDB 7.2.7. */

import { formatTimestamp } from "../../engine/base/timestamp.ts";
import type {
  OperationFailure,
  OperationFigures,
  OperationInfo,
  OperationState,
} from "../../engine/engine.ts";
import { isInterrupted } from "../../engine/engine.ts";
import { errorStatus } from "../http/error-status.ts";

const statusNames: Readonly<Record<OperationState["status"], string>> = {
  running: "InProgress",
  completed: "Completed",
  failed: "Faulted",
  cancelled: "Canceled",
};

/** Result types by operation type; all others are `Operations.BulkOperationResult`. */
const resultTypes: Readonly<Record<string, string>> = {
  DatabaseRevert: "Operations.Revisions.RevertResult",
  EnforceRevisionConfiguration: "Operations.Revisions.EnforceConfigurationResult",
  AdoptOrphanedRevisions: "Operations.Revisions.AdoptOrphanedRevisionsResult",
  DatabaseExport: "Smuggler.SmugglerResult",
  DatabaseImport: "Smuggler.SmugglerResult",
  DatabaseBackup: "Operations.Backups.BackupResult",
  DatabaseRestore: "Raven.Client.ServerWide.Operations.RestoreResult",
  CertificateGeneration:
    "Raven.Client.ServerWide.Operations.Certificates.ClientCertificateGenerationResult",
};

/** Progress types by operation type; all others are `Operations.DeterminateProgress`. */
const progressTypes: Readonly<Record<string, string>> = {
  BulkInsert: "Operations.BulkInsertProgress",
  DatabaseExport: "Smuggler.SmugglerResult+SmugglerProgress",
  DatabaseImport: "Smuggler.SmugglerResult+SmugglerProgress",
  DatabaseBackup: "Operations.Backups.BackupProgress",
  DatabaseRestore: "Raven.Client.ServerWide.Operations.RestoreProgress",
};

/**
 * Returns `{"$type","Progress","Result","Status"}`, with further members for operations that can be paused, limited,
 * undone, or resumed, which RavenDB does not have.
 */
export function operationStateReply(info: OperationInfo): OperationFigures {
  const { kind, state } = info;
  const progressType = progressTypes[kind] ?? "Operations.DeterminateProgress";
  const progress = state.status === "running" ? state.progress : null;
  let result: OperationFigures | null = null;
  if (state.status === "completed") {
    result = typed(resultTypes[kind] ?? "Operations.BulkOperationResult", state.result);
  } else if (state.status === "failed") result = failureReply(state.failure);
  return typed("Operations.OperationState", {
    Progress: progress === null ? null : typed(progressType, progress),
    Result: result,
    ...steeringReply(info),
    Status: statusNames[state.status],
  });
}

/** `Reached` is the last progress of a finished operation. Empty for operations that can only be stopped. */
function steeringReply(info: OperationInfo): OperationFigures {
  const { isPaused, rateMax, reached, facts = {} } = info;
  return {
    ...(isPaused === true ? { IsPaused: true } : {}),
    ...(rateMax == null ? {} : { MaxOpsPerSec: rateMax }),
    ...(info.endedAt === null || reached == null ? {} : { Reached: reachedReply(reached) }),
    ...(isInterrupted(info) ? { CanResume: true } : {}),
    ...(facts["canUndo"] === true ? { CanUndo: true } : {}),
    ...(facts["undoneBy"] === undefined ? {} : { UndoneBy: facts["undoneBy"] }),
    ...(facts["undoes"] === undefined ? {} : { Undoes: facts["undoes"] }),
  };
}

function reachedReply({
  Processed,
  Total,
  Changed,
  Unchanged,
}: OperationFigures): OperationFigures {
  return { Processed, Total, Changed, Unchanged };
}

/**
 * Returns the text of replies about operations. RavenDB writes rates, which are doubles, with a decimal. Our rates are all 0,
 * and inside strings the quotes would be escaped.
 */
export function operationText(reply: unknown): string {
  return JSON.stringify(reply).replaceAll('"BytesPutsPerSec":0,', '"BytesPutsPerSec":0.0,');
}

/** Returns an item of the list of operations. */
export function operationReply(info: OperationInfo): OperationFigures {
  return {
    Id: info.id,
    Description: {
      Description: info.description,
      TaskType: info.kind,
      StartTime: formatTimestamp(info.startedAt),
      EndTime: info.endedAt === null ? null : formatTimestamp(info.endedAt),
      DetailedDescription:
        info.query === undefined
          ? null
          : typed("Operations.BulkOperationResult+OperationDetails", { Query: info.query }),
      ...(info.startedBy === undefined ? {} : { StartedBy: info.startedBy }),
    },
    Killable: true,
    State: operationStateReply(info),
  };
}

/** Errors with status 400 become 500 here, because clients expect 409 or 500. */
function failureReply({ code, message }: OperationFailure): OperationFigures {
  const { status, type } =
    code === undefined ? { status: 500, type: "System.Exception" } : errorStatus[code];
  return typed("Operations.OperationExceptionResult", {
    Type: type,
    Message: message,
    Error: `${type}: ${message}`,
    StatusCode: status === 409 ? 409 : 500,
    LimitType: null,
  });
}

/** Adds the .NET type; `type` is relative to the most common namespace, or complete. */
export function typed(type: string, figures: OperationFigures): OperationFigures {
  const name = type.startsWith("Raven.") ? type : `Raven.Client.Documents.${type}`;
  return { $type: `${name}, Raven.Client`, ...figures };
}
