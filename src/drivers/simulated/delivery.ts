/** Simulated e-mail and webhooks: every message is accepted and none is sent. */
import { refuseAborted } from '../command.ts';
import type { DeliveryDriver } from '../delivery.ts';

/** `what` names the messages, `why` says why they are simulated, and `remedy` is the command that changes it. */
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
      detail: `${what}: recorded but not sent, because ${why}`,
      remedy,
    }),
    async send(_message, signal) {
      refuseAborted(signal);
      return { answer: `not sent: ${why}` };
    },
  };
}
