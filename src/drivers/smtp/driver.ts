/**
 * Sends e-mail through an SMTP server. A message has one recipient and the same `Message-ID` in every attempt, so that mail
 * clients can discard duplicates. Text reaches headers only through nodemailer's structured fields, without line breaks.
 */
import { refuseAborted } from '../command.ts';
import { presentable, type Email, type EmailDriver } from '../delivery.ts';
import { DriverError } from '../driver.ts';
import { unlessAborted } from '../ends-within.ts';

const connectMs = 10_000;
const silenceMs = 20_000;

/**
 * Connects with each message, not before. `url`: `smtp[s]://[user:password@]host[:port]`; `from`: an address, optionally with
 * a name; `mailErrors` has checked both.
 */
export function createSmtpDriver({ url, from }: { url: string; from: string }): EmailDriver {
  const { host } = new URL(url);
  let opened: ReturnType<typeof openTransport> | undefined;
  /** Why the server does not work; null if it accepted or rejected the last message. */
  let failureOfServer: string | null = null;
  return {
    name: 'smtp',
    real: true,
    status: () => ({
      driver: 'smtp',
      real: true,
      healthy: failureOfServer === null,
      detail: failureOfServer ? `${host}: ${failureOfServer}` : `e-mail is sent through ${host}`,
      ...(failureOfServer && {
        remedy: 'CLOUDYARD_SMTP_URL=smtp://mail.example.com:587 CLOUDYARD_SMTP_FROM=alerts@example.com npm start',
      }),
    }),
    async send(email, signal) {
      refuseAborted(signal);
      try {
        opened ??= openTransport(url);
        const sending = opened.then((transport) => transport.sendMail(messageOf(email, from)));
        // nodemailer does not support signals: an aborted message may still be sent.
        const sent = await unlessAborted(sending, signal);
        failureOfServer = null;
        return { answer: presentable(sent.response) };
      } catch (error) {
        const failure = classify(error);
        failureOfServer = failure.aboutMessage ? null : failure.error.customerMessage;
        throw failure.error;
      }
    },
  };
}

/** Loads nodemailer with the first message, so that the start does not wait for it. */
async function openTransport(url: string) {
  const { createTransport } = await import('nodemailer');
  return createTransport({
    url,
    connectionTimeout: connectMs,
    greetingTimeout: connectMs,
    dnsTimeout: connectMs,
    socketTimeout: silenceMs,
    disableFileAccess: true,
    disableUrlAccess: true,
  });
}

function messageOf({ id, to, subject, text, html }: Email, from: string) {
  return {
    from,
    to: { name: '', address: to },
    subject: presentable(subject),
    text,
    html,
    messageId: `<${id}@${domainOf(from)}>`,
    headers: { 'Auto-Submitted': 'auto-generated', 'Cloudyard-Id': id },
  };
}

/** `example.com` of `Cloudyard <alerts@example.com>`. */
function domainOf(from: string): string {
  return /@([\w.-]+)>?\s*$/.exec(from)?.[1] ?? 'cloudyard';
}

interface SmtpError {
  code?: string;
  /** The command that the server refused. */
  command?: string;
  responseCode?: number;
  response?: string;
  message?: string;
}

/** A failure is permanent only if the server permanently rejects this recipient or message. Settings decide the sender. */
function classify(cause: unknown): { error: DriverError; aboutMessage: boolean } {
  const { code, command, responseCode = 0, response, message = '' } = cause as SmtpError;
  const aboutMessage = code === 'EMESSAGE' || (code === 'EENVELOPE' && command !== 'MAIL FROM');
  const reply = presentable(response ?? message) || 'the connection failed';
  const error = new DriverError(reply, {
    customerMessage: reply,
    retryable: !(aboutMessage && responseCode >= 500),
    cause,
  });
  return { error, aboutMessage };
}
