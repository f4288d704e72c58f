/** E-mail and webhooks that only pretend: every message is taken, and goes nowhere. */
import { refuseAborted } from '../command.ts';
import type { DeliveryDriver } from '../delivery.ts';

/** `what` is carried, for people; `why` it only pretends, and the line that would change it. */
export function createSimulatedDeliveryDriver<Message>(
  what: string,
  why: string,
  remedy: string,
): DeliveryDriver<Message> {
  return {
    name: 'simulated',
    real: false,
    status: () => ({
      driver: 'simulated',
      real: false,
      healthy: true,
      detail: `${what} is written down but not sent; ${why}`,
      remedy,
    }),
    async send(_message, signal) {
      refuseAborted(signal);
      return { answer: `not sent: ${why}` };
    },
  };
}
