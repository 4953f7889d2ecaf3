/** What stands where data would be: nothing yet, an error, or the shape of what is coming. */
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { OfflineError, ServerError } from "../base/client.ts";
import { Icon, type IconName } from "./icon.tsx";

export function Empty({
  icon,
  title,
  children,
}: {
  icon: IconName;
  title: string;
  children?: ComponentChildren;
}) {
  return (
    <div class="empty">
      <Icon name={icon} />
      <h2>{title}</h2>
      {children}
    </div>
  );
}

/** What happened, why, and what to do. */
export function Failure({ error, retry }: { error: Error; retry?: () => void }) {
  const type = error instanceof ServerError ? error.type : "";
  const hint = hintOf(error);
  return (
    <div class="note bad" role="alert">
      <Icon name="bad" />
      <div class="stack grow">
        <span>{error.message}</span>
        {type !== "" && <code class="muted">{type}</code>}
        {hint !== undefined && <span class="soft">{hint}</span>}
      </div>
      {retry !== undefined && (
        <button type="button" class="btn" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}

function hintOf(error: Error): string | undefined {
  if (error instanceof OfflineError) return "Is the server running, and reachable from here?";
  if (!(error instanceof ServerError)) return undefined;
  if (error.hint !== undefined) return error.hint;
  if (error.status === 403)
    return "Your certificate does not have this right. An operator can change that.";
  return undefined;
}

/** Rows of bones, after 150 ms. */
export function Bones({ rows }: { rows: number }) {
  const [isShown, setShown] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setShown(true), 150);
    return () => clearTimeout(timer);
  }, []);
  if (!isShown) return null;
  return (
    <div class="bones" aria-hidden="true">
      {Array.from({ length: rows }, (_, n) => (
        <div key={n} class="bone" />
      ))}
    </div>
  );
}
