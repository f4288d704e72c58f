/**
 * E-mail through an SMTP server. A message has one recipient, and the `Message-ID` of every attempt is the same, so that
 * mailboxes which look at it show a repetition once. Nothing of a message reaches a header but through nodemailer's
 * structured fields, and line breaks are taken out before that.
 */
import { refuseAborted } from '../command.ts';
import { presentable } from '../delivery.ts';
import type { Email, EmailDriver } from '../delivery.ts';
import { DriverError } from '../driver.ts';

const connectMs = 10_000;
const silenceMs = 20_000;

/** `url` is `smtp[s]://[user:password@]host[:port]`, `from` an address, with a name if wanted. */
export function createSmtpDriver({ url, from }: { url: string; from: string }): EmailDriver {
  const { host } = new URL(url);
  let opened: ReturnType<typeof openTransport> | undefined;
  /** What is wrong with the server, not with a message; null when the last message was judged by it. */
  let trouble: string | null = null;
  return {
    name: 'smtp',
    real: true,
    status: () => ({
      driver: 'smtp',
      real: true,
      healthy: trouble === null,
      detail: trouble ? `${host}: ${trouble}` : `e-mail is sent through ${host}`,
      ...(trouble && { remedy: 'set CLOUDYARD_SMTP_URL to a server that takes mail' }),
    }),
    async send(email, signal) {
      refuseAborted(signal);
      try {
        opened ??= openTransport(url);
        const sending = opened.then((transport) => transport.sendMail(messageOf(email, from)));
        const sent = await unlessAborted(sending, signal);
        trouble = null;
        return { answer: presentable(sent.response) };
      } catch (error) {
        const failure = judge(error);
        trouble = failure.aboutMessage ? null : failure.error.customerMessage;
        throw failure.error;
      }
    },
  };
}

/** Loaded by the first message: a server that sends none starts the sooner. */
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

/** nodemailer knows no signal: what is under way is left to itself. */
async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const abort = () => reject(signal.reason as Error);
  signal.addEventListener('abort', abort);
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
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

/** `Cloudyard <alerts@example.com>` is of `example.com`. */
function domainOf(from: string): string {
  return /@([\w.-]+)>?\s*$/.exec(from)?.[1] ?? 'cloudyard';
}

interface SmtpError {
  code?: string;
  responseCode?: number;
  response?: string;
  message?: string;
}

/** Only a server that was reached, and refused this very recipient or message for good, ends the trying. */
function judge(cause: unknown): { error: DriverError; aboutMessage: boolean } {
  const { code, responseCode = 0, response, message = '' } = cause as SmtpError;
  const aboutMessage = code === 'EENVELOPE' || code === 'EMESSAGE';
  const said = presentable(response ?? message) || 'the connection failed';
  const error = new DriverError(said, {
    customerMessage: said,
    retryable: !(aboutMessage && responseCode >= 500),
    cause,
  });
  return { error, aboutMessage };
}
