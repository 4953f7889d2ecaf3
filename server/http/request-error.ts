/**
 * Errors of the HTTP layer itself, for which the engine has no code: routes, access, transport. The engine reports
 * caller errors as `EngineError`s; `response.ts` turns both into replies.
 */
export class RequestError extends Error {
  override readonly name = "RequestError";
  readonly status: number;
  /** The type name in the error body. */
  readonly type: string;
  readonly headers: Readonly<Record<string, string>> | undefined;

  constructor(
    status: number,
    type: string,
    message: string,
    options?: { headers?: Readonly<Record<string, string>>; cause?: unknown },
  ) {
    super(message, options);
    this.status = status;
    this.type = type;
    this.headers = options?.headers;
  }
}

const client = "Raven.Client.Exceptions";

export function routeNotFound(method: string, target: string): RequestError {
  return new RequestError(
    400,
    `${client}.Routing.RouteNotFoundException`,
    `There is no handler for path: ${method} ${target}`,
  );
}

export function methodNotAllowed(
  method: string,
  target: string,
  allowed: readonly string[],
): RequestError {
  const list = allowed.join(", ");
  return new RequestError(
    400,
    `${client}.Routing.RouteNotFoundException`,
    `There is no handler for path: ${method} ${target}. This path takes ${list}.`,
    { headers: { allow: list } },
  );
}

export function forbidden(message: string): RequestError {
  return new RequestError(403, "InvalidAuth", message);
}

export function databaseMissing(name: string): RequestError {
  return new RequestError(
    400,
    `${client}.Database.DatabaseDoesNotExistException`,
    `Database '${name}' does not exist.`,
  );
}

export function databaseDisabled(name: string): RequestError {
  return new RequestError(
    503,
    `${client}.Database.DatabaseDisabledException`,
    `The database '${name}' has been disabled by the administrator. Enable it to use it.`,
  );
}

export function databaseRestoring(name: string): RequestError {
  return new RequestError(
    503,
    `${client}.Database.DatabaseRestoringException`,
    `${name} is currently being restored`,
  );
}

export function bodyTooLarge(bytesMax: number): RequestError {
  return new RequestError(
    413,
    `${client}.BadRequestException`,
    `The request's body is larger than the ${bytesMax} bytes that this server takes ` +
      "(setting Http.MaxRequestBodySizeInMb).",
  );
}

export function jsonTooLarge(bytesMax: number): RequestError {
  return new RequestError(
    413,
    `${client}.BadRequestException`,
    `The request's object is larger than the ${bytesMax} bytes that this server reads at once ` +
      "(setting Http.MaxJsonRequestSizeInMb). Ask for less at once.",
  );
}

export function bodyTooSlow(detail: string): RequestError {
  return new RequestError(408, `${client}.BadRequestException`, `The request's body ${detail}.`);
}

/**
 * Recognizes a stack overflow of recursive code: documents may be nested more deeply than every recursion here can
 * follow.
 * @returns the error to reply with; undefined: it is another error
 */
export function tooDeep(error: unknown): RequestError | undefined {
  const isOverflow = error instanceof RangeError && /call stack/.test(error.message);
  if (!isOverflow) return undefined;
  return new RequestError(
    400,
    "System.ArgumentException",
    "The request, or a document that it reads, has objects or arrays inside each other more deeply than this can follow.",
    { cause: error },
  );
}

export function bodyBroken(encoding: string, cause: unknown): RequestError {
  return new RequestError(
    400,
    "System.IO.InvalidDataException",
    `The request's body is not valid ${encoding} data.`,
    { cause },
  );
}

export function encodingUnknown(encoding: string): RequestError {
  return new RequestError(
    415,
    "System.NotSupportedException",
    `Content-Encoding '${encoding}' is not known here; gzip, br, deflate, zstd and identity are.`,
  );
}

export function overloaded(requestsMax: number): RequestError {
  return new RequestError(
    503,
    `${client}.RavenException`,
    `${requestsMax} requests are being worked on, or three quarters of that for this client, which is this server's ` +
      "limit (setting Http.MaxRequestsInFlight). Try again.",
    { headers: { "retry-after": "1" } },
  );
}

export function noRoomForReplies(): RequestError {
  return new RequestError(
    503,
    `${client}.RavenException`,
    "There is no memory for a large reply: others that were made are not read (setting Http.MaxHeldRepliesInMb). " +
      "Try again, or ask for less at once.",
    { headers: { "retry-after": "2" } },
  );
}

export function noRoomForBodies(): RequestError {
  return new RequestError(
    503,
    `${client}.RavenException`,
    "There is no memory for the request's body beside the others that are under way (setting Http.MaxHeldBodiesInMb). " +
      "Try again, or send less at once.",
    { headers: { "retry-after": "2" } },
  );
}
