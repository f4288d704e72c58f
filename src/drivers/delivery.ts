/**
 * Sends messages. Deliveries are one-shot: no state is reconciled, so their drivers have no `apply` and no `remove`. A message
 * is sent at least once, and every attempt carries the same id, so that the receiver can discard duplicates.
 */
import type { DriverStatus } from '../platform/driver-status.ts';

export interface DeliveryDriver<Message> {
  readonly name: string;
  /** False: simulated, so that nothing leaves this machine. */
  readonly real: boolean;
  status(): DriverStatus;
  /**
   * Sends a message and returns the reply of the receiver, within about a minute.
   * @throws DriverError; its `customerMessage` contains the reply, or why the receiver was not reached
   */
  send(message: Message, signal: AbortSignal): Promise<Receipt>;
}

export interface Receipt {
  /** At most `answerLength` characters. */
  answer: string;
}

/** Replies are stored and shown to clients. */
const answerLength = 500;

export interface Email {
  /** The id of the notification; the `Message-ID` contains it. */
  id: string;
  to: string;
  subject: string;
  text: string;
  html: string;
}

export interface WebhookCall {
  /** The id of the notification; receivers discard duplicates by it. */
  id: string;
  url: string;
  /** Signs the body. */
  secret: string;
  /** JSON. */
  body: string;
  /** Headers of the receiver's choice. They do not replace those of the driver. */
  headers?: Record<string, string>;
}

export type EmailDriver = DeliveryDriver<Email>;
export type WebhookDriver = DeliveryDriver<WebhookCall>;

/** Why a connection failed, without functions of OpenSSL and advice of Node about its options: clients read it. */
export function reasonOf({ code, message = '' }: { code?: string; message?: string }): string {
  const reason = /:SSL routines:[^:]*:([^:]+):/.exec(message)?.[1];
  if (reason) return `TLS failed: ${reason}`;
  return (
    presentable(message.replace(/; if the root CA is installed locally.*/s, '')) || code || 'the connection failed'
  );
}

/** Makes the text of a third party safe to store and show: one line, no control characters, limited length. */
export function presentable(text: string): string {
  const plain = text.replace(/[\p{Cc}\s]+/gu, ' ').trim();
  return plain.slice(0, answerLength).toWellFormed();
}
