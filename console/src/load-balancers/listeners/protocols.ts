/** What each protocol of a listener allows; the server checks the same. */
export const hasCertificate = (protocol: unknown) => protocol === 'TERMINATED_HTTPS' || protocol === 'PROMETHEUS';
export const hasHeaders = (protocol: unknown) => protocol === 'HTTP' || protocol === 'TERMINATED_HTTPS';
export const hasUsers = (protocol: unknown) => hasHeaders(protocol) || protocol === 'PROMETHEUS';
/** PROMETHEUS listeners answer by themselves. */
export const hasPool = (protocol: unknown) => protocol !== 'PROMETHEUS';

const POOL_PROTOCOLS: Readonly<Record<string, readonly string[]>> = {
  HTTP: ['HTTP', 'HTTPS', 'PROXY', 'PROXYV2'],
  HTTPS: ['HTTPS', 'PROXY', 'PROXYV2', 'TCP'],
  TCP: ['HTTP', 'HTTPS', 'PROXY', 'PROXYV2', 'TCP'],
  TERMINATED_HTTPS: ['HTTP', 'HTTPS', 'PROXY', 'PROXYV2'],
  UDP: ['UDP'],
};
const ALL = ['HTTP', 'HTTPS', 'PROXY', 'PROXYV2', 'TCP', 'UDP'];

/** The protocols of pools behind a listener, or of all pools without one. */
export function poolProtocols(listenerProtocol: string | undefined): readonly string[] {
  return (listenerProtocol && POOL_PROTOCOLS[listenerProtocol]) || ALL;
}
