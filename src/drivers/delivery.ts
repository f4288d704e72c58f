/**
 * What carries a message out of this machine. It has no state to converge to, so there is no `apply` and no `remove`: a
 * message is handed over, at least once. Every attempt carries the same id, by which the other side knows a repetition.
 */
import type { DriverStatus } from '../platform/driver-status.ts';

export interface DeliveryDriver<Message> {
  readonly name: string;
  /** False when it only pretends: nothing leaves this machine. */
  readonly real: boolean;
  status(): DriverStatus;
  /**
   * Hands a message over, and resolves with what the other side answered when it took it. Ends within some 30 s.
   * @throws DriverError; its `customerMessage` says what the other side answered, or why it was not reached
   */
  send(message: Message, signal: AbortSignal): Promise<Receipt>;
}

export interface Receipt {
  /** In words, at most `answerLength` characters. */
  answer: string;
}

/** Answers are kept and shown; nobody needs more of them. */
export const answerLength = 500;

export interface Email {
  /** The notification's; the `Message-ID` is made of it. */
  id: string;
  to: string;
  subject: string;
  text: string;
  html: string;
}

export interface WebhookCall {
  /** The notification's: the receiver knows a repetition by it. */
  id: string;
  url: string;
  /** What the body is signed with. */
  secret: string;
  /** JSON. */
  body: string;
}

export type EmailDriver = DeliveryDriver<Email>;
export type WebhookDriver = DeliveryDriver<WebhookCall>;

/** What somebody else said, so that it can be kept and shown: one line, no control characters, not too long. */
export function presentable(text: string): string {
  const plain = text.replace(/[\p{Cc}\s]+/gu, ' ').trim();
  return plain.slice(0, answerLength).toWellFormed();
}
