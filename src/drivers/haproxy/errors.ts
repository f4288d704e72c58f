/** Errors that HAProxy and nginx have in common. */
import { exitStatus } from '../command.ts';
import { DriverError } from '../driver.ts';
import { busyPortSeconds } from '../ports.ts';

/** The proxy does not respond, or does not follow a command. */
export function proxyUnavailable(message: string, cause?: unknown): DriverError {
  return new DriverError(message, {
    customerMessage: 'the load balancer is temporarily unavailable',
    retryable: true,
    cause,
  });
}

/** An alert of HAProxy, an error of nginx. Programs that fail before they read the file exit with the same status without one. */
const VERDICT = /\[(ALERT|emerg)\]/;

/**
 * The check of a configuration file by `program` failed. Only what the program says of the file is a verdict: a check that
 * was killed, ran out of time, did not start or lacked space or memory says nothing about the configuration.
 */
export function rejectedConfiguration(program: string, cause: unknown): DriverError {
  if (cause instanceof DriverError && cause.shortage) return cause;
  const { message } = cause as Error;
  if (exitStatus(cause) !== 1 || !VERDICT.test(message)) {
    return proxyUnavailable(`${program} could not check the configuration: ${message}`, cause);
  }
  return new DriverError(`${program} rejects the configuration: ${message}`, {
    customerMessage: 'HAProxy or nginx rejects the configuration of the load balancer; ask the operator',
    retryable: false,
    cause,
  });
}

/** Another program may release a port at any moment, so a port in use is retried often. */
export function cannotListen(address: string, port: string, cause: unknown): DriverError {
  const { code } = cause as NodeJS.ErrnoException;
  const inUse = code === 'EADDRINUSE';
  return new DriverError(`cannot listen on ${address} ${port}: ${code}`, {
    customerMessage: whyNot(code, address, port),
    retryable: inUse,
    ...(inUse && { maxRetrySeconds: busyPortSeconds }),
    cause,
  });
}

function whyNot(code: string | undefined, address: string, port: string): string {
  if (code === 'EADDRINUSE') return `another program of the host uses ${port}`;
  if (code === 'EADDRNOTAVAIL') return `the host does not have the address ${address}; the operator must add it`;
  return `the load balancer cannot listen on ${port} of its address`;
}

/** `holder`: the id of the other load balancer; `endpoint`: as `endpointsOf` returns it. Permanent, because one must change. */
export function portConflict(holder: string, endpoint: string): DriverError {
  return new DriverError(`load balancer ${holder} already listens on ${endpoint}`, {
    customerMessage: `another load balancer listens on port ${endpoint.split(' ')[1]} of this address`,
    retryable: false,
  });
}
