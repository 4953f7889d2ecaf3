/** Form fields for the target of backups: a folder of the server or S3, and encryption with a key of the user. */
import { useState } from "preact/hooks";
import type { BackupDefinition } from "../base/backup-tasks.ts";
import { TextField } from "../components/text-field.tsx";

type Target = "folder" | "s3";

export interface TypedTarget {
  readonly target: Target;
  readonly folder: string;
  readonly s3: Readonly<Record<S3Field, string>>;
  readonly isEncrypted: boolean;
  /** In Base64; "" retains the stored key. */
  readonly key: string;
}

const s3Fields = [
  { name: "BucketName", label: "Bucket", isRequired: true },
  { name: "AwsRegionName", label: "Region", isRequired: true },
  { name: "RemoteFolderName", label: "Folder in the bucket", isRequired: false },
  { name: "AwsAccessKey", label: "Access key", isRequired: true },
  { name: "AwsSecretKey", label: "Secret key", isRequired: false },
  { name: "CustomServerUrl", label: "Server, if it is not Amazon's", isRequired: false },
] as const;
type S3Field = (typeof s3Fields)[number]["name"];

const keyBytes = 32;

/** The target of an existing schedule, or an empty one with this folder. */
export function useTarget(definition: BackupDefinition | null, folder: string) {
  const stored = (definition?.S3Settings ?? {}) as Partial<Record<S3Field, string | null>>;
  const [typed, setTyped] = useState<TypedTarget>(() => ({
    target: definition?.S3Settings == null ? "folder" : "s3",
    folder: definition?.LocalSettings?.FolderPath ?? folder,
    s3: Object.fromEntries(s3Fields.map(({ name }) => [name, stored[name] ?? ""])) as Record<
      S3Field,
      string
    >,
    isEncrypted: definition?.BackupEncryptionSettings != null,
    key: "",
  }));
  const { target, s3, isEncrypted, key } = typed;
  const hasKey = key !== "" || (isEncrypted && definition?.BackupEncryptionSettings != null);
  // A stored secret is retained if it is not sent.
  const hasSecret = s3.AwsSecretKey !== "" || definition?.S3Settings != null;
  const isComplete =
    target === "folder"
      ? typed.folder !== ""
      : hasSecret && s3Fields.every(({ name, isRequired }) => !isRequired || s3[name] !== "");
  return { typed, setTyped, isReady: isComplete && (!isEncrypted || hasKey) };
}

/** Returns the settings of S3 that were typed. */
export function s3Settings(s3: TypedTarget["s3"]): object {
  return {
    ...Object.fromEntries(Object.entries(s3).filter(([, value]) => value !== "")),
    // Other servers rarely have a host name for each bucket.
    ...(s3.CustomServerUrl === "" ? {} : { ForcePathStyle: true }),
  };
}

/** Returns the members of a definition. */
export function targetSettings(
  { target, folder, s3, isEncrypted, key }: TypedTarget,
  before: BackupDefinition | null,
): object {
  return {
    LocalSettings: target === "folder" ? { FolderPath: folder } : null,
    S3Settings: target === "s3" ? { ...before?.S3Settings, ...s3Settings(s3) } : null,
    BackupEncryptionSettings: isEncrypted
      ? { ...(key === "" ? {} : { Key: key }), EncryptionMode: "UseProvidedKey" }
      : null,
  };
}

export function TargetFields({
  typed,
  change,
  root,
  isStored,
}: {
  typed: TypedTarget;
  change: (typed: TypedTarget) => void;
  /** The only folder that the settings of the server allow; null for any. */
  root: string | null | undefined;
  /** True if the server has stored secrets of this target. */
  isStored: boolean;
}) {
  return (
    <>
      <PlaceFields
        label="Target"
        typed={typed}
        change={change}
        placeholder={root ?? undefined}
        hint={
          root == null
            ? "An absolute path, preferably on another disk than the data."
            : `Below ${root}: the server's settings allow no other folder.`
        }
        isStored={isStored}
      />
      <Encryption typed={typed} change={change} isStored={isStored} />
    </>
  );
}

/** A folder of the server, or S3. */
export function PlaceFields({
  label,
  typed,
  change,
  placeholder,
  hint,
  isStored = false,
}: {
  label: string;
  typed: TypedTarget;
  change: (typed: TypedTarget) => void;
  /** Text of the empty folder field. */
  placeholder?: string | undefined;
  /** Note about the folder. */
  hint: string;
  isStored?: boolean;
}) {
  const { target, folder, s3 } = typed;
  return (
    <>
      <label class="form">
        {label}
        <select
          class="field"
          value={target}
          onChange={(event) => change({ ...typed, target: event.currentTarget.value as Target })}
        >
          <option value="folder">Folder on the server</option>
          <option value="s3">S3, or a server with its interface</option>
        </select>
      </label>
      {target === "folder" ? (
        <TextField
          label="Folder on the server"
          value={folder}
          change={(value) => change({ ...typed, folder: value })}
          placeholder={placeholder ?? "/var/backups/jackdaw"}
          autocomplete="off"
          hint={hint}
        />
      ) : (
        s3Fields.map((one) => (
          <TextField
            key={one.name}
            label={one.label}
            value={s3[one.name]}
            change={(value) => change({ ...typed, s3: { ...s3, [one.name]: value } })}
            type={one.name === "AwsSecretKey" ? "password" : "text"}
            autocomplete="off"
            {...(one.name === "AwsSecretKey" && isStored ? { hint: "Empty: unchanged." } : {})}
          />
        ))
      )}
    </>
  );
}

function Encryption({
  typed,
  change,
  isStored,
}: {
  typed: TypedTarget;
  change: (typed: TypedTarget) => void;
  isStored: boolean;
}) {
  const { isEncrypted, key } = typed;
  const generate = () => {
    const bytes = crypto.getRandomValues(new Uint8Array(keyBytes));
    change({ ...typed, key: btoa(String.fromCharCode(...bytes)) });
  };
  return (
    <>
      <label class="check">
        <input
          type="checkbox"
          checked={isEncrypted}
          onChange={(event) => change({ ...typed, isEncrypted: event.currentTarget.checked })}
        />
        <span>Encrypt backups</span>
      </label>
      {isEncrypted && (
        <>
          <TextField
            label="Key: 32 bytes, in Base64"
            value={key}
            change={(value) => change({ ...typed, key: value })}
            autocomplete="off"
            hint={`Store it elsewhere: without it, a backup cannot be restored.${isStored ? " Empty: unchanged." : ""}`}
          />
          <div>
            <button type="button" class="btn" onClick={generate}>
              Generate a key
            </button>
          </div>
        </>
      )}
    </>
  );
}
