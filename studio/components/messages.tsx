/** Placeholders for data: empty, failed, or loading. */
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

/** An error with its reason and remedy. */
export function Failure({ error, retry }: { error: Error; retry?: () => void }) {
  const hint = hintOf(error);
  return (
    <div class="note bad" role="alert">
      <Icon name="bad" />
      <div class="stack grow">
        <span>{error.message}</span>
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
  if (error instanceof OfflineError) return "Check that the server is running and reachable.";
  if (!(error instanceof ServerError)) return undefined;
  // Positions are marked in the text.
  if (/^The error (is|occurred) at line/.test(error.hint ?? "")) return undefined;
  if (error.hint !== undefined) return error.hint;
  if (error.status === 403)
    return "Your certificate does not have this access. An operator can grant it.";
  return undefined;
}

/** Placeholder rows, shown after 150 ms. */
export function Skeleton({ rows }: { rows: number }) {
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
