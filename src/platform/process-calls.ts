/**
 * Calls between two processes over the IPC channel of Node: each side names the functions that the other may call.
 * Arguments and results are JSON.
 *
 * Failure modes: a call rejects if the function throws, or if the other process ends.
 */

/** One end of a channel: `process` in a child, the `ServerProcess` in its parent. */
export interface Channel {
  send?(message: unknown): unknown;
  on(event: 'message', listener: (message: unknown) => void): unknown;
  on(event: 'disconnect', listener: () => void): unknown;
}

type CallHandlers = Record<string, (argument: never) => unknown>;

export type Calls = ReturnType<typeof openCalls>;

interface Message {
  cloudyard: 'call' | 'result';
  id: number;
  name?: string;
  value?: unknown;
  error?: string;
}

/**
 * Answers the calls of the other process with `handlers`. Calls reject when the channel closes, and with the message of
 * an error of the other process.
 */
export function openCalls(channel: Channel, handlers: CallHandlers) {
  const pending = new Map<number, PromiseWithResolvers<never>>();
  let last = 0;
  let isOpen = true;

  const handle = async ({ id, name, value }: Message): Promise<Message> => {
    try {
      const handler = handlers[name!] as ((argument: unknown) => unknown) | undefined;
      if (!handler) throw new Error(`unknown call ${name}`);
      return { cloudyard: 'result', id, value: await handler(value) };
    } catch (error) {
      return { cloudyard: 'result', id, error: (error as Error).message };
    }
  };
  const settle = ({ id, value, error }: Message) => {
    const call = pending.get(id);
    pending.delete(id);
    if (error === undefined) call?.resolve(value as never);
    else call?.reject(new Error(error));
  };

  channel.on('message', (received) => {
    const message = received as Message;
    if (message.cloudyard === 'result') settle(message);
    else if (message.cloudyard === 'call') void handle(message).then((result) => isOpen && channel.send?.(result));
  });
  channel.on('disconnect', () => {
    isOpen = false;
    for (const { reject } of pending.values()) reject(new Error('the process ended'));
    pending.clear();
  });
  return {
    call<Result = void>(name: string, argument?: unknown): Promise<Result> {
      if (!isOpen) return Promise.reject(new Error('the process ended'));
      const call = Promise.withResolvers<never>();
      pending.set(++last, call);
      channel.send?.({ cloudyard: 'call', id: last, name, value: argument } satisfies Message);
      return call.promise;
    },
  };
}
