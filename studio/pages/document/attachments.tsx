/**
 * The attachments of a document: upload, preview of pictures, text and JSON, and download. Other types are not
 * previewed, because HTML, SVG and PDF can run scripts.
 */

import { useEffect, useState } from "preact/hooks";
import { openStream, send } from "../../base/client.ts";
import { bytes } from "../../base/format.ts";
import { may } from "../../base/identity.ts";
import { Confirmation } from "../../components/confirmation.tsx";
import { FileDrop } from "../../components/file-drop.tsx";
import { Icon } from "../../components/icon.tsx";
import { Failure, Skeleton } from "../../components/messages.tsx";
import { showToast } from "../../components/toast.tsx";
import { type JsonNode, JsonNumber, memberOf } from "../../json/json-source.ts";
import { save } from "../documents/export.tsx";
import type { Version } from "./version.ts";

interface Properties {
  readonly base: string;
  readonly id: string;
  readonly version: Version;
  /** Called after a change, to reload the document. */
  reread(): void;
}

interface Attachment {
  readonly name: string;
  readonly contentType: string;
  readonly size: number;
  readonly hash: string;
}

const pictures = new Set(["image/png", "image/jpeg", "image/gif", "image/webp", "image/avif"]);
const pictureBytesMax = 32 * 1024 * 1024;
const textBytesMax = 1024 * 1024;

export function attachmentsOf({ wholeMetadata }: Version): Attachment[] {
  const listed = wholeMetadata.get("@attachments");
  if (!Array.isArray(listed)) return [];
  const text = (node: JsonNode, name: string) => String(memberOf(node, name) ?? "");
  return listed.map((node) => {
    const size = memberOf(node, "Size");
    return {
      name: text(node, "Name"),
      contentType: text(node, "ContentType"),
      size: size instanceof JsonNumber ? Number(size.digits) : 0,
      hash: text(node, "Hash"),
    };
  });
}

function pathOf(base: string, id: string, name: string): string {
  return `${base}/attachments?${new URLSearchParams({ id, name })}`;
}

export function Attachments({ base, id, version, reread }: Properties) {
  const attachments = attachmentsOf(version);
  const [shown, setShown] = useState<string | null>(null);
  const [removed, setRemoved] = useState<Attachment | null>(null);
  const [adding, setAdding] = useState("");
  const [error, setError] = useState<Error | null>(null);
  const add = async (files: readonly File[]) => {
    setError(null);
    try {
      for (const file of files) {
        setAdding(`Adding ${file.name}, ${bytes(file.size)}`);
        const query = new URLSearchParams({ id, name: file.name, contentType: file.type });
        await send("PUT", `${base}/attachments?${query}`, { data: file });
      }
      showToast(files.length === 1 ? `Added ${files[0]?.name}` : `Added ${files.length} files`);
    } catch (failed) {
      setError(failed as Error);
    } finally {
      setAdding("");
      reread();
    }
  };
  const remove = async ({ name }: Attachment) => {
    await send("DELETE", pathOf(base, id, name)).finally(reread);
    showToast(`Deleted ${name}`);
  };
  return (
    <div class="scroll grow side-body">
      {error !== null && <Failure error={error} />}
      <ul class="parts">
        {attachments.map((attachment) => (
          <One
            key={attachment.name}
            path={pathOf(base, id, attachment.name)}
            attachment={attachment}
            isShown={shown === attachment.name}
            show={() => setShown(shown === attachment.name ? null : attachment.name)}
            remove={() => setRemoved(attachment)}
          />
        ))}
      </ul>
      {adding !== "" && <p role="status">{adding}</p>}
      {may("write") && (
        <FileDrop
          label="Files to attach"
          hint="Pictures, text and JSON can be previewed here."
          isMany
          take={(files) => void add(files)}
        />
      )}
      {removed !== null && (
        <Confirmation
          title={`Delete ${removed.name}?`}
          yes={`Delete ${removed.name}`}
          close={() => setRemoved(null)}
          act={() => remove(removed)}
        >
          <p>{bytes(removed.size)} will be deleted. This cannot be undone.</p>
        </Confirmation>
      )}
    </div>
  );
}

interface OneProperties {
  path: string;
  attachment: Attachment;
  isShown: boolean;
  show: () => void;
  remove: () => void;
}

function previewOf({ contentType, size }: Attachment): "picture" | "text" | undefined {
  const type = contentType.split(";")[0]?.trim().toLowerCase() ?? "";
  if (pictures.has(type)) return size <= pictureBytesMax ? "picture" : undefined;
  const isText = type === "application/json" || type === "text/plain" || type === "text/csv";
  return isText && size <= textBytesMax ? "text" : undefined;
}

function One({ path, attachment, isShown, show, remove }: OneProperties) {
  const { name, contentType, size, hash } = attachment;
  const preview = previewOf(attachment);
  const download = async (event: Event) => {
    event.preventDefault();
    const body = await openStream("GET", path);
    save(await new Response(body).blob(), name);
  };
  return (
    <li>
      <div class="row">
        <Icon name="clip" />
        <b class="cut">{name}</b>
        <span class="muted nowrap" title={hash}>
          {contentType === "" ? "no type" : contentType} · {bytes(size)}
        </span>
        <span class="grow" />
        {preview !== undefined && (
          <button type="button" class="btn quiet" aria-expanded={isShown} onClick={show}>
            {" "}
            Preview{" "}
          </button>
        )}
        <a class="btn quiet" href={path} download={name} onClick={(event) => void download(event)}>
          Download
        </a>
        {may("write") && (
          <button
            type="button"
            class="btn quiet icon danger"
            aria-label={`Delete ${name}`}
            onClick={remove}
          >
            <Icon name="x" />
          </button>
        )}
      </div>
      {isShown && preview !== undefined && (
        <Preview key={hash} path={path} attachment={attachment} kind={preview} />
      )}
    </li>
  );
}

interface PreviewProperties {
  path: string;
  attachment: Attachment;
  kind: "picture" | "text";
}

function Preview({ path, attachment: { name, contentType }, kind }: PreviewProperties) {
  const [picture, setPicture] = useState<string | null>(null);
  const [text, setText] = useState<string | null>(null);
  const [error, setError] = useState<Error | null>(null);
  useEffect(() => {
    const abort = new AbortController();
    let url: string | undefined;
    const load = async () => {
      const body = await openStream("GET", path, { signal: abort.signal });
      const content = await new Response(body).blob();
      if (abort.signal.aborted) return;
      if (kind === "text") return setText(await content.text());
      // Use the checked content type, whatever the reply declares.
      url = URL.createObjectURL(new Blob([content], { type: contentType }));
      setPicture(url);
    };
    load().catch((failed: Error) => {
      if (!abort.signal.aborted) setError(failed);
    });
    return () => {
      abort.abort();
      if (url !== undefined) URL.revokeObjectURL(url);
    };
  }, [path, kind, contentType]);
  if (error !== null) return <Failure error={error} />;
  if (picture !== null) return <img class="preview" src={picture} alt={name} />;
  if (text !== null) return <pre class="peeked preview">{text}</pre>;
  return <Skeleton rows={3} />;
}
