import { lazy, Suspense, useState } from 'react';
import { loadChunk } from './chunks.ts';

/** One request of the API, as its operation in openapi.json. */
export interface Call {
  readonly operationId: string;
  readonly method: string;
  /** Template: `/cloud/v1/file_shares/{project_id}/{region_id}`. */
  readonly path: string;
  readonly params: Readonly<Record<string, string | number>>;
  readonly query?: Readonly<Record<string, string | number | boolean>>;
  readonly body?: unknown;
}

/** The path of a call with its parameters and query. */
export function pathOf({ path, params, query = {} }: Pick<Call, 'path' | 'params' | 'query'>): string {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(params[name] ?? ''));
  const pairs = new URLSearchParams(Object.entries(query).map(([name, value]) => [name, String(value)])).toString();
  return pairs === '' ? filled : `${filled}?${pairs}`;
}

const CodeTabs = lazy(() => loadChunk(() => import('./code-tabs.tsx')));

/** "The same by code": the requests of a form or action as curl, Python and Terraform. Loaded when it is opened. */
export function ByCode({ calls }: { calls: readonly Call[] }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details className="by-code" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>The same by code</summary>
      {isOpen && (
        <Suspense fallback={<span className="skeleton" />}>
          <CodeTabs calls={calls} />
        </Suspense>
      )}
    </details>
  );
}
