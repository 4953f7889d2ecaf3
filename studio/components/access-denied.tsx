/** Placeholder for a page that the caller's certificate has no access to. */
import { identity } from "../base/identity.ts";
import { Empty } from "./messages.tsx";

export function AccessDenied({ title }: { title: string }) {
  return (
    <Empty icon="cert" title={title}>
      <p>
        Your certificate <i>{identity.value?.name}</i> does not have this access. An operator can
        grant it.
      </p>
    </Empty>
  );
}
