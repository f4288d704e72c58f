/** Validates certificate revocation lists (RFC 5280, section 5), which `node:crypto` does not support. */
import { createSecureContext } from 'node:tls';
import type { FieldError } from '../../errors/catalogue.ts';
import { withZone } from '../../platform/clock.ts';
import { createPause } from '../../platform/event-loop.ts';
import { child, type Element, readBer, tags } from './ber.ts';
import type { Found } from './certificates.ts';
import { type PemBlock, writePem } from './pem.ts';

export interface RevocationList {
  pem: string;
  /** Null: the list has no end of validity. */
  nextUpdate: Date | null;
}

export async function readRevocationLists(blocks: PemBlock[], path: string, now: Date): Promise<Found<RevocationList>> {
  const found: RevocationList[] = [];
  const errors: FieldError[] = [];
  const pause = createPause();
  for (const [i, { bytes }] of blocks.entries()) {
    await pause();
    const which = blocks.length > 1 ? `revocation list ${i + 1}` : 'the revocation list';
    const list = revocationListOf(bytes);
    if (!list) errors.push({ path, message: `${which} cannot be parsed` });
    else if (list.nextUpdate && now > list.nextUpdate) {
      // With an expired list, OpenSSL refuses every certificate of the issuer.
      errors.push({ path, message: `${which} expired on ${withZone(list.nextUpdate)}` });
    } else found.push(list);
  }
  return { found, errors };
}

function revocationListOf(bytes: Buffer): RevocationList | null {
  const pem = writePem('X509 CRL', bytes);
  try {
    createSecureContext({ crl: pem, ca: [] });
    const list = child(readBer(bytes), 0, tags.sequence);
    const [thisUpdate, nextUpdate] = list.children.filter(isTime).map(timeOf);
    return thisUpdate ? { pem, nextUpdate: nextUpdate ?? null } : null;
  } catch {
    return null;
  }
}

/** The times of revoked certificates are nested deeper. */
function isTime({ tag }: Element): boolean {
  return tag === tags.utcTime || tag === tags.generalizedTime;
}

/** `YYMMDDHHMMSSZ` of 1950 to 2049, or `YYYYMMDDHHMMSSZ`. */
function timeOf({ tag, content }: Element): Date {
  const text = content.toString('latin1');
  const full = tag === tags.generalizedTime ? text : `${text < '50' ? '20' : '19'}${text}`;
  const date = new Date(full.replace(/^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z'));
  if (Number.isNaN(date.getTime())) throw new RangeError('not a time');
  return date;
}
