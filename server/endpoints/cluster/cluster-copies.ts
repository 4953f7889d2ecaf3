/**
 * Copies of databases for other nodes of the cluster, the only permitted callers: a base, which is the log of a database
 * at one moment (engine/shipping), and the contents of attachments by hash. The fetching side is
 * server/cluster/copy-fetch.ts.
 *
 *     GET    /cluster/copies/<id>/base?node=B            the base; headers contain the copy's key, and its position
 *     GET    /cluster/copies/<id>/contents?copy=<key>    names of the base's contents, one per line
 *     GET    /cluster/copies/<id>/contents/<name>        a content; ?copy=<key> also keeps that copy open
 *     DELETE /cluster/copies/<id>/base?copy=<key>        the copy is complete
 */
import { EngineError, invalidArgument } from "../../../engine/base/errors.ts";
import { nodeTagPattern } from "../../../engine/base/names.ts";
import type { OpenCopies, OpenCopy } from "../../cluster/open-copies.ts";
import type { Exchange } from "../../http/exchange.ts";
import { takeRoom } from "../../http/reply-room.ts";
import { type ReplyStream, streamHeldBytes } from "../../http/reply-stream.ts";
import { RequestError } from "../../http/request-error.ts";
import type { Context, Route } from "../../routing/route.ts";

const path = "/cluster/copies/*";

export const clusterCopyRoutes: readonly Route[] = [
  { kind: "server", method: "GET", path, access: "cluster-admin", handle: getPart },
  { kind: "server", method: "DELETE", path, access: "cluster-admin", handle: endCopy },
];

const bytesHeaders = { "content-type": "application/octet-stream" };
const namesPerPiece = 1000;

/** A parsed path: `<id>/base`, `<id>/contents` or `<id>/contents/<name>`. */
interface RequestedPart {
  readonly id: string;
  readonly part: string;
  readonly name: string | undefined;
}

/** GET /cluster/copies/*: 200; 404 for a closed copy, or a content that does not exist */
async function getPart(exchange: Exchange, { server }: Context): Promise<void> {
  const { id, part, name } = requestedPart(exchange);
  const copies = copiesOf(server.copies);
  if (part === "base") await sendBase(exchange, copies, id);
  else if (name === undefined) await sendNames(exchange, copies);
  else await sendContent(exchange, copies, id, name);
}

/** DELETE /cluster/copies/<id>/base?copy=…: 204, also if it is closed already */
function endCopy(exchange: Exchange, { server }: Context): void {
  copiesOf(server.copies).end(exchange.query.required("copy"));
  exchange.reply(204);
}

async function sendBase(exchange: Exchange, copies: OpenCopies, id: string): Promise<void> {
  const tag = exchange.query.required("node");
  if (!nodeTagPattern.test(tag)) throw invalidArgument(`'${tag}' is not the tag of a node.`);
  const releaseRoom = await takeRoom("replies", streamHeldBytes, exchange);
  const { copy, release } = openCopy(copies, id, tag, releaseRoom);
  const { key, base, mark } = copy;
  try {
    const stream = exchange.stream(
      200,
      {
        ...bytesHeaders,
        "x-jackdaw-copy": key,
        "x-jackdaw-mark": mark === null ? "" : `${mark.generation}:${mark.sequence}`,
        "x-jackdaw-contents": base.contents.length,
      },
      releaseRoom,
    );
    await sendAll(stream, base.bytes);
  } finally {
    copies.baseEnded(key);
    release();
  }
}

/** Opens a copy, or releases the reserved memory if that fails. */
function openCopy(copies: OpenCopies, id: string, tag: string, releaseRoom: () => void) {
  try {
    return copies.begin(id, tag);
  } catch (error) {
    releaseRoom();
    throw error;
  }
}

async function sendNames(exchange: Exchange, copies: OpenCopies): Promise<void> {
  const key = exchange.query.required("copy");
  const used = copies.use(key);
  if (used === undefined) throw copyEnded(key);
  try {
    const { contents } = used.copy.base;
    const releaseRoom = await takeRoom("replies", streamHeldBytes, exchange);
    const stream = exchange.stream(200, { "content-type": "text/plain" }, releaseRoom);
    for (let at = 0; at < contents.length && !stream.isClosed; at += namesPerPiece) {
      await stream.write(`${contents.slice(at, at + namesPerPiece).join("\n")}\n`);
    }
    await stream.end();
  } finally {
    used.release();
  }
}

async function sendContent(
  exchange: Exchange,
  copies: OpenCopies,
  id: string,
  name: string,
): Promise<void> {
  const used = copies.use(exchange.query.get("copy") ?? "");
  try {
    const content = await openContent(copies, id, name);
    try {
      const releaseRoom = await takeRoom("replies", streamHeldBytes, exchange);
      const stream = exchange.stream(
        200,
        { ...bytesHeaders, "content-length": content.size },
        releaseRoom,
      );
      await sendAll(stream, content.read(0, content.size));
    } finally {
      await content.close();
    }
  } finally {
    used?.release();
  }
}

/** @throws RequestError 404, EngineError */
async function openContent(copies: OpenCopies, id: string, name: string) {
  try {
    return await copies.database(id).shipping.openContent(name);
  } catch (error) {
    if (!(error instanceof EngineError) || error.code !== "record-damaged") throw error;
    throw missing(`The content ${name} does not exist.`);
  }
}

/** Sends all bytes, unless the other node disconnects, which closes `bytes`. */
async function sendAll(stream: ReplyStream, bytes: AsyncGenerator<Buffer>): Promise<void> {
  for await (const piece of bytes) {
    await stream.write(piece);
    if (stream.isClosed) return;
  }
  await stream.end();
}

function copiesOf(copies: OpenCopies | undefined): OpenCopies {
  if (copies !== undefined) return copies;
  throw new EngineError("not-supported", "This server is a single node and provides no copies.");
}

/** @throws RequestError 404 */
function requestedPart(exchange: Exchange): RequestedPart {
  const found =
    /^\/cluster\/copies\/([0-9a-f]{32})\/(?:(base)|(contents)(?:\/([0-9a-f]{64}))?)$/.exec(
      exchange.path,
    );
  if (found === null) throw missing(`The path ${exchange.path} does not exist.`);
  const [, id = "", base, contents = "", name] = found;
  return { id, part: base ?? contents, name };
}

function copyEnded(key: OpenCopy["key"]): RequestError {
  return missing(
    `The copy ${key} was closed after a long time without requests. Open another one.`,
  );
}

function missing(message: string): RequestError {
  return new RequestError(404, "Raven.Client.Exceptions.RavenException", message);
}
