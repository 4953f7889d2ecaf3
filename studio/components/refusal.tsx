/** What stands where a page would be that the caller's certificate has no right to. */
import { identity } from "../base/identity.ts";
import { Empty } from "./messages.tsx";

export function Refusal({ title }: { title: string }) {
  return (
    <Empty icon="cert" title={title}>
      <p>
        Your certificate <i>{identity.value?.name}</i> does not have this right. An operator can
        change that.
      </p>
    </Empty>
  );
}
