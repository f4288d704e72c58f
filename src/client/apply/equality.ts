/** Whether a value that a file describes is that of the server, which writes dates and addresses in its own form. */
import ipaddr from 'ipaddr.js';

/** Every property of `wanted` that the server returns has its value. The order of lists does not count. */
export function isEqual(wanted: unknown, live: unknown): boolean {
  if (Array.isArray(wanted)) {
    if (!Array.isArray(live) || wanted.length !== live.length) return false;
    const open = [...(live as unknown[])];
    return wanted.every((item) => {
      const index = open.findIndex((other) => isEqual(item, other));
      if (index >= 0) open.splice(index, 1);
      return index >= 0;
    });
  }
  if (typeof wanted === 'object' && wanted !== null) {
    if (typeof live !== 'object' || live === null) return false;
    const properties = live as Record<string, unknown>;
    return Object.entries(wanted).every(([name, value]) => !(name in properties) || isEqual(value, properties[name]));
  }
  if (typeof wanted === 'string' && typeof live === 'string') return isEqualText(wanted, live);
  return wanted === (live ?? null);
}

function isEqualText(wanted: string, live: string): boolean {
  if (wanted === live) return true;
  return [secondOf, networkOf].some((valueOf) => {
    const value = valueOf(wanted);
    return value !== undefined && value === valueOf(live);
  });
}

/**
 * The second of a date or of a date and time, because responses have no fraction; without a zone it is UTC, as on the server.
 * Undefined for other text.
 */
function secondOf(text: string): number | undefined {
  const [, day, time, zone = ''] =
    /^(\d{4}-\d\d-\d\d)(?:[T\s](\d\d:\d\d[\d:.]*)(Z|[+-]\d\d(?::?\d\d)?)?)?$/.exec(text.toUpperCase()) ?? [];
  if (day === undefined) return undefined;
  const offset = zone === '' ? 'Z' : zone.length === 3 ? `${zone}:00` : zone;
  const instant = Date.parse(time === undefined ? day : `${day}T${time}${offset}`);
  return Number.isNaN(instant) ? undefined : Math.floor(instant / 1000);
}

/** The same text for equal networks: an address is a network of one, and `::ffff:1.2.3.4` is `1.2.3.4`. Undefined for other text. */
function networkOf(text: string): string | undefined {
  const [address = '', prefix, ...rest] = text.split('/');
  if (rest.length > 0 || !(ipaddr.IPv4.isValidFourPartDecimal(address) || ipaddr.IPv6.isValid(address)))
    return undefined;
  const written = ipaddr.parse(address);
  const bits = written.toByteArray().length * 8;
  if (prefix !== undefined && !/^\d{1,3}$/.test(prefix)) return undefined;
  const [network, length] = [ipaddr.process(address), prefix === undefined ? bits : Number(prefix)];
  return `${network}/${length - bits + network.toByteArray().length * 8}`;
}
