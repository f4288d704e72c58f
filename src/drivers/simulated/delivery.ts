/** Simulated e-mail and webhooks: every message is accepted and none is sent. */
import { refuseAborted } from '../command.ts';
import type { DeliveryDriver } from '../delivery.ts';
import { simulatedStatus } from './lifecycle.ts';

/** `messages` names them, `reason` is why they are simulated, and `remedy` is the command that makes them real. */
export function createSimulatedDeliveryDriver<Message>(
  messages: string,
  reason: string,
  remedy: string,
): DeliveryDriver<Message> {
  return {
    name: 'simulated',
    real: false,
    status: () => simulatedStatus(`${messages}: recorded but not sent, because ${reason}`, remedy),
    async send(_message, signal) {
      refuseAborted(signal);
      return { answer: `not sent: ${reason}` };
    },
  };
}
