/** Members that attack HAProxy, which serves all tenants, by TLS. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { requires, skipReason } from '../../../test/requires.ts';
import { aCertificate, aKey } from '../../resources/secrets/test-certificates.ts';
import { balancer, member, testHost } from './test-host.ts';
import { ask, closeMembers, httpsMember } from './test-members.ts';

const parts = ['haproxy', 'root'] as const;

describe.skipIf(!requires(...parts))(skipReason(...parts) ?? 'TLS to members', () => {
  it('has no key exchange whose cost a member decides', async () => {
    const host = testHost();
    const driver = host.driver();
    onTestFinished(async () => {
      await closeMembers();
      await driver.stop();
      host.cleanUp();
    });
    await driver.start();
    const { pem, keyPem } = aCertificate({ key: aKey('rsa') });
    const answerOf = async (ciphers: string) => {
      const more = { dhparam: 'auto', ciphers, maxVersion: 'TLSv1.2' } as const;
      const { port } = await httpsMember('a', `${pem}\n${keyPem}`, undefined, more);
      const made = balancer({ protocol: 'HTTPS', members: [member(port)] });
      await driver.apply(made, new AbortController().signal);
      return (await ask(made.address)).status;
    };
    expect(await answerOf('ECDHE-RSA-AES256-GCM-SHA384')).toBe(200);
    // With parameters of 8,192 bits, which a member may choose, the exchange takes a processor for 0.25 s.
    expect(await answerOf('DHE-RSA-AES256-GCM-SHA384')).toBe(503);
  });
});
