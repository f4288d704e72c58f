/** The settings of ACME. */
import { domainToASCII } from 'node:url';
import type { CoreSettingName } from '../setting-meanings.ts';
import type { SettingReader } from '../setting-reader.ts';

export type AcmeSettings = NonNullable<ReturnType<typeof readAcmeSettings>>;

type Reader = SettingReader<CoreSettingName>;

const defaultServer = 'https://acme-v02.api.letsencrypt.org/directory';
const domainPattern = /^(\*\.)?([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)+[a-z0-9-]*[a-z][a-z0-9-]*$/;

/** Null without CLOUDYARD_ACME_DOMAINS. */
export function readAcmeSettings(reader: Reader) {
  const { text, choice, path, reject } = reader;
  const given = text('CLOUDYARD_ACME_DOMAINS');
  const challenge = choice('CLOUDYARD_ACME_CHALLENGE', ['http-01', 'dns-01'], 'http-01');
  const email = text('CLOUDYARD_ACME_EMAIL') ?? '';
  const checksEmail = given !== undefined || email !== '';
  if (checksEmail && !/^[^\s@/]+@[^\s@/]+$/.test(email)) reject('CLOUDYARD_ACME_EMAIL must be an e-mail address');
  const server = text('CLOUDYARD_ACME_SERVER') ?? defaultServer;
  if (!server.startsWith('https://') || !URL.canParse(server)) reject('CLOUDYARD_ACME_SERVER must be an https URL');
  if (given === undefined) return null;
  const dnsHook = path('CLOUDYARD_ACME_DNS_HOOK') ?? null;
  if ((challenge === 'dns-01') !== (dnsHook !== null)) {
    reject('CLOUDYARD_ACME_DNS_HOOK must be set for CLOUDYARD_ACME_CHALLENGE=dns-01, and only then');
  }
  const domains = domainsIn(given, challenge, reject);
  const dnsResolvers = (text('CLOUDYARD_ACME_DNS_RESOLVERS') ?? '').split(',').filter((each) => each !== '');
  return {
    domains,
    email,
    /** URL of the ACME directory. */
    server,
    challenge,
    /** The program that sets TXT records, for dns-01. Absolute. */
    dnsHook,
    /** `host:port` of the DNS servers that must have a record before it is validated; empty: those of the host. */
    dnsResolvers,
    /** PEM file of the authority of the ACME server; null: those of the system. Absolute. */
    caFile: path('CLOUDYARD_ACME_CA_FILE') ?? null,
  };
}

function domainsIn(given: string, challenge: string, reject: Reader['reject']): string[] {
  return given.split(',').map((part) => {
    const [, wildcard, name] = /^(\*\.)?(.*)$/s.exec(part.trim())!;
    const domain = `${wildcard ?? ''}${domainToASCII(name!)}`;
    if (!domainPattern.test(domain)) {
      reject(`CLOUDYARD_ACME_DOMAINS: ${JSON.stringify(part.trim())} must be a domain name such as cloud.example.org`);
    } else if (domain.startsWith('*.') && challenge === 'http-01') {
      reject(`CLOUDYARD_ACME_DOMAINS: ${domain} requires CLOUDYARD_ACME_CHALLENGE=dns-01`);
    }
    return domain;
  });
}
