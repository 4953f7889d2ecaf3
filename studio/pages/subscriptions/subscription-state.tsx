/** The state of a subscription. */
import { Icon } from "../../components/icon.tsx";
import type { Subscription } from "./subscription-info.ts";

export function SubscriptionState({ subscription }: { subscription: Subscription }) {
  if (subscription.Disabled)
    return (
      <span class="state muted">
        <Icon name="pause" />
        Disabled
      </span>
    );
  if (subscription.Connections.length > 0)
    return (
      <span class="state ok">
        <Icon name="check" />
        Connected
      </span>
    );
  return (
    <span class="state warn">
      <Icon name="clock" />
      Enabled, no worker
    </span>
  );
}
