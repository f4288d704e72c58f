/** A real SMTP server (aiosmtpd) on a free port of loopback, whose mailbox is a folder. */
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from './free-port.ts';
import { until } from './until.ts';

export type SmtpServer = Awaited<ReturnType<typeof startSmtpServer>>;

export async function startSmtpServer(port?: number) {
  const at = port ?? (await freePort());
  const folder = mkdtempSync(join(tmpdir(), 'cloudyard-smtp-'));
  const mailbox = join(folder, 'mailbox');
  const args = ['-n', '-l', `127.0.0.1:${at}`, '-c', 'aiosmtpd.handlers.Mailbox', mailbox];
  const child = spawn('aiosmtpd', args, { stdio: 'ignore' });
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  await until(() => answers(at), 20, 'an SMTP server');
  const arrived = join(mailbox, 'new');
  return {
    /** For CLOUDYARD_SMTP_URL. */
    url: `smtp://127.0.0.1:${at}`,
    /** Received messages, unparsed. */
    messages: () =>
      existsSync(arrived) ? readdirSync(arrived).map((name) => readFileSync(join(arrived, name), 'utf8')) : [],
    async stop(): Promise<void> {
      child.kill('SIGKILL');
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('data', () => (socket.destroy(), resolve(true)));
    socket.once('error', () => resolve(false));
  });
}

/** The unfolded headers of a message by lower-case name. */
export function headersOf(message: string): Record<string, string> {
  const [head = ''] = message.split(/\r?\n\r?\n/);
  const lines = head.replace(/\r?\n[ \t]+/g, ' ').split(/\r?\n/);
  return Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
  );
}
