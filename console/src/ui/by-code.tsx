import { lazy, Suspense, useState } from 'react';

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

/** The path of a call with its parameters. */
export function pathOf({ path, params }: Pick<Call, 'path' | 'params'>): string {
  return path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(params[name] ?? ''));
}

const CodeTabs = lazy(() => import('./code-tabs.tsx'));

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
