import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import { useRef } from 'react';
import type { ReactNode } from 'react';
import { useScope } from '../ui/scope.tsx';
import { loadBalancerQuery, treeQuery } from './data.ts';
import type { L7Policy, L7Rule, LbPool, Listener, LoadBalancer, Tree } from './data.ts';

export interface Current {
  readonly balancer: LoadBalancer;
  readonly tree: Tree;
}

/** Renders a dialog once the load balancer of the URL is loaded; the page below shows the loading and the failure. */
export function CurrentBalancer({ children }: { children: (current: Current) => ReactNode }) {
  const { id } = useParams({ strict: false }) as { id: string };
  const scope = useScope();
  const balancer = useQuery(loadBalancerQuery(scope, id)).data;
  const tree = useQuery(treeQuery(scope, id)).data;
  return balancer && tree ? children({ balancer, tree }) : null;
}

interface Parts {
  readonly listeners: Listener;
  readonly pools: LbPool;
  readonly policies: L7Policy;
}

interface CurrentPartProps<K extends keyof Parts> {
  readonly kind: K;
  readonly children: (part: Parts[K], current: Current) => ReactNode;
}

/** Renders a dialog of the listener, pool or policy of the URL. */
export function CurrentPart<K extends keyof Parts>({ kind, children }: CurrentPartProps<K>) {
  return <CurrentBalancer>{(current) => <Part kind={kind} current={current} render={children} />}</CurrentBalancer>;
}

interface PartProps<K extends keyof Parts> {
  readonly kind: K;
  readonly current: Current;
  readonly render: CurrentPartProps<K>['children'];
}

function Part<K extends keyof Parts>({ kind, current, render }: PartProps<K>) {
  const { part: id } = useParams({ strict: false }) as { part: string };
  const parts = current.tree[kind] as readonly Parts[K][];
  const part = useLast(parts.find((each) => each.id === id));
  if (part) return render(part, current);
  return <p role="alert">This part of the load balancer was not found. It may have been deleted.</p>;
}

/** The rule of the URL within its policy. */
export function useCurrentRule(policy: L7Policy): L7Rule | undefined {
  const { rule: id } = useParams({ strict: false }) as { rule: string };
  return useLast(policy.rules.find((each) => each.id === id));
}

/** The last value that was defined: a dialog keeps its text when its part is deleted elsewhere, and the server then says so. */
function useLast<T>(value: T | undefined): T | undefined {
  const last = useRef(value);
  if (value !== undefined) last.current = value;
  return last.current;
}
