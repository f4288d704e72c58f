/**
 * Sends e-mail through an SMTP server. A message has one recipient and the same `Message-ID` in every attempt, so that mail
 * clients can discard duplicates. Text reaches headers only through nodemailer's structured fields, without line breaks.
 */
import { refuseAborted } from '../command.ts';
import { presentable, reasonOf, type Email, type EmailDriver } from '../delivery.ts';
import { DriverError } from '../driver.ts';
import { type Sender, senderOf } from './settings.ts';

const connectMs = 10_000;
const silenceMs = 20_000;
const wholeMs = 60_000;
const late = 'the mail server did not accept the message within';

interface SmtpOptions {
  /** `smtp[s]://[user:password@]host[:port]` */
  url: string;
  /** An address, optionally with a name. */
  from: string;
  /** How long a message may take: a server that sends a line now and then is never silent. */
  limitMs?: number;
}

/** Connects with each message, not before. `mailErrors` has checked `url` and `from`. */
export function createSmtpDriver({ url, from, limitMs = wholeMs }: SmtpOptions): EmailDriver {
  const { host } = new URL(url);
  const sender = senderOf(from);
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
      const limit = AbortSignal.timeout(limitMs);
      try {
        opened ??= openTransport(url);
        const transport = await opened;
        const message = { ...messageOf(email, sender), signal: AbortSignal.any([signal, limit]) };
        const sent = await transport.sendMail(message);
        failureOfServer = null;
        return { answer: presentable(sent.response) };
      } catch (error) {
        refuseAborted(signal);
        const failure = classify(limit.aborted ? new Error(`${late} ${limitMs / 1000} s`) : error);
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

function messageOf({ id, to, subject, text, html }: Email, sender: Sender) {
  return {
    from: sender,
    to: { name: '', address: to },
    subject: presentable(subject),
    text,
    html,
    messageId: `<${id}@${sender.address.split('@')[1]}>`,
    headers: { 'Auto-Submitted': 'auto-generated', 'Cloudyard-Id': id },
  };
}

interface SmtpError {
  code?: string;
  /** The command that the server refused. */
  command?: string;
  responseCode?: number;
  response?: string;
  message?: string;
}

const authenticationRequired = 530;
/** Postfix, Exim and Sendmail refuse a sender without credentials only at the recipient: `554 5.7.1 <…>: Relay access denied`. An address may have the word, too. */
const refusesRelay = /(?<!@\S*)\brelay(?!\S*@)/i;

/** A failure is permanent only if the server permanently rejects this recipient or message. Settings decide the sender. */
function classify(cause: unknown): { error: DriverError; aboutMessage: boolean } {
  const { code, command, responseCode = 0, response = '' } = cause as SmtpError;
  const aboutSender =
    command === 'MAIL FROM' ||
    (command === 'RCPT TO' && (responseCode === authenticationRequired || refusesRelay.test(response)));
  const aboutMessage = code === 'EMESSAGE' || (code === 'EENVELOPE' && !aboutSender);
  const reply = response ? presentable(response) : reasonOf(cause as SmtpError);
  const error = new DriverError(reply, {
    customerMessage: reply,
    retryable: !(aboutMessage && responseCode >= 500),
    cause,
  });
  return { error, aboutMessage };
}
