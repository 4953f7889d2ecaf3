/**
 * Saves a reply of the server as a download. It uses a blob, which browsers keep on disk if it is large: the content
 * security policy forbids a form, and a link cannot POST.
 */
import { type ErrorBody, ServerError } from "./client.ts";
import { sessionHeaders } from "./session.ts";

interface Download {
  readonly method: string;
  readonly path: string;
  readonly json?: unknown;
  /** File name if the server sends none. */
  readonly name: string;
  readonly signal: AbortSignal;
  /** Converts a line of text; "" omits the line. */
  line?(text: string): string;
  received(bytes: number): void;
}

/** Downloads a file. @returns its name. @throws ServerError */
export async function saveDownload(wanted: Download): Promise<string> {
  const response = await fetch(wanted.path, {
    method: wanted.method,
    headers: {
      ...(await sessionHeaders()),
      ...(wanted.method === "GET" ? {} : { "X-Jackdaw-Studio": "1" }),
      ...(wanted.json === undefined ? {} : { "Content-Type": "application/json" }),
    },
    signal: wanted.signal,
    cache: "no-store",
    ...(wanted.json === undefined ? {} : { body: JSON.stringify(wanted.json) }),
  });
  if (!response.ok || response.body === null) {
    const text = await response.text();
    let body: ErrorBody = { Message: text };
    try {
      body = JSON.parse(text) as ErrorBody;
    } catch {
      // The error is not JSON.
    }
    throw new ServerError(response.status, body);
  }
  let bytes = 0;
  const counting = new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
    transform(chunk, controller) {
      bytes += chunk.byteLength;
      wanted.received(bytes);
      controller.enqueue(chunk);
    },
  });
  let content: ReadableStream<Uint8Array<ArrayBuffer>> = response.body.pipeThrough(counting);
  if (wanted.line !== undefined) content = changedLines(content, wanted.line);
  const blob = await new Response(content).blob();
  const name = fileNameOf(response.headers.get("content-disposition")) ?? wanted.name;
  saveBlob(blob, name);
  return name;
}

/** Saves data of the page. */
function saveBlob(blob: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = safeName(name);
  link.click();
  // The browser starts to read the URL within this time.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

function changedLines(
  source: ReadableStream<Uint8Array<ArrayBuffer>>,
  change: (line: string) => string,
): ReadableStream<Uint8Array<ArrayBuffer>> {
  let held = "";
  const lines = new TransformStream<string, string>({
    transform(piece, controller) {
      const found = (held + piece).split("\n");
      held = found.pop() as string; // a split gives one at least
      const kept = found.map((line) => change(line.replace(/\r$/, "")));
      const text = kept.filter((line) => line !== "").join("\n");
      if (text !== "") controller.enqueue(`${text}\n`);
    },
    flush(controller) {
      const last = change(held);
      if (last !== "") controller.enqueue(`${last}\n`);
    },
  });
  return source
    .pipeThrough(new TextDecoderStream())
    .pipeThrough(lines)
    .pipeThrough(new TextEncoderStream()) as ReadableStream<Uint8Array<ArrayBuffer>>;
}

function fileNameOf(disposition: string | null): string | null {
  const found = /filename="?([^";]+)"?/.exec(disposition ?? "")?.[1];
  if (found === undefined) return null;
  try {
    return decodeURIComponent(found);
  } catch {
    return found;
  }
}

/** Removes path separators, control characters and leading dots. */
function safeName(name: string): string {
  return name.replace(/[/\\\p{Cc}]/gu, "_").replace(/^\.+/, "");
}
