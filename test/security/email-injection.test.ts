/** Text of tenants in e-mails must not add recipients, headers or SMTP commands. */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createSmtpDriver } from '../../src/drivers/smtp/driver.ts';
import { useCloudyard } from '../harness.ts';
import { requires, skipReason } from '../requires.ts';
import { headersOf, type SmtpServer, startSmtpServer } from '../smtp-server.ts';

const hostileText = [
  'x\r\nBcc: evil@example.com',
  'x\nRCPT TO:<evil@example.com>',
  'x\r\n.\r\nMAIL FROM:<evil@example.com>',
  'x\r\n\r\n<script>evil</script>',
  'x\u2028Bcc: evil@example.com',
  '=?utf-8?q?x=0D=0ABcc:_evil@example.com?=',
];
const hostileAddresses = [
  'a@example.com>\r\nRCPT TO:<evil@example.com',
  'a@example.com,evil@example.com',
  'a@example.com evil@example.com',
  '"a\r\nBcc: evil@example.com"@example.com',
  'Evil <evil@example.com>',
  'a@example.com> NOTIFY=SUCCESS ORCPT=rfc822;evil@example.com',
  '@evil.example.com:a@example.com',
];

const cloud = useCloudyard({ driver: null });

describe('the addresses of a client', () => {
  it.each(hostileAddresses)('reject %j', async (address) => {
    const { clientId, token } = await cloud.newClient();
    const answer = await cloud.patch(`/cloudyard/v1/clients/${clientId}`, { emails: [address] }, { token });
    expect(answer).toMatchObject({ status: 400, body: { errors: [{ path: 'emails.0' }] } });
  });
});

const runs = requires('python3-aiosmtpd');
describe.skipIf(!runs)(skipReason('python3-aiosmtpd') ?? 'an e-mail through a real mail server', () => {
  let server: SmtpServer;
  beforeAll(async () => {
    server = await startSmtpServer();
  });
  afterAll(() => server?.stop());

  const from = 'Cloudyard <alerts@example.com>';
  const never = new AbortController().signal;
  const email = () => ({ id: randomUUID(), to: 'tenant@example.com', subject: 's', text: 't', html: '<p>t</p>' });
  const recipients = (message: string) => headersOf(message)['x-rcptto'];

  it.each(hostileText)('has one recipient and no additional header if the subject is %j', async (subject) => {
    const sent = email();
    await createSmtpDriver({ url: server.url, from }).send(
      { ...sent, subject, text: `${subject}\r\n.\r\nQUIT` },
      never,
    );
    const arrived = server.messages().filter((message) => message.includes(sent.id));
    expect(arrived).toHaveLength(1);
    const headers = headersOf(arrived[0]!);
    expect(headers).not.toHaveProperty('bcc');
    expect(headers['x-mailfrom']).toBe('alerts@example.com');
    expect(headers['to']).toBe('tenant@example.com');
    expect(recipients(arrived[0]!)).toBe('tenant@example.com');
  });

  it.each(hostileAddresses)('goes to no other recipient if the address is %j', async (to) => {
    const sent = { ...email(), to };
    await createSmtpDriver({ url: server.url, from })
      .send(sent, never)
      .catch(() => undefined);
    for (const message of server.messages().filter((text) => text.includes(sent.id))) {
      // Quoted text is part of a name, not an address.
      expect(recipients(message)!.replace(/"[^"]*"/g, '')).not.toContain('evil@example.com');
      expect(headersOf(message)).not.toHaveProperty('bcc');
    }
  });
});
