export interface CodeRequest {
  readonly operationId: string;
  readonly method: string;
  /** Template: `/cloud/v1/file_shares/{project_id}/{region_id}`. */
  readonly path: string;
  readonly params: Readonly<Record<string, string | number>>;
  readonly query: Readonly<Record<string, string | number | boolean>>;
  readonly body?: unknown;
  /** Origin of the server. */
  readonly url: string;
}

/** The texts that do the same; null where the client cannot do it. */
export interface Code {
  readonly curl: string;
  readonly python: string | null;
  readonly terraform: string | null;
}

export function codeFor(request: CodeRequest): Code {
  return { curl: curl(request), python: null, terraform: null };
}

function curl({ method, path, params, query, body, url }: CodeRequest): string {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(params[name] ?? ''));
  const search = new URLSearchParams(Object.entries(query).map(([key, value]) => [key, String(value)])).toString();
  const target = `${url}${filled}${search === '' ? '' : `?${search}`}`;
  const lines = [`curl -fsS -X ${method} ${quote(target)}`, '-H "Authorization: apikey $CLOUDYARD_TOKEN"'];
  if (body !== undefined)
    lines.push("-H 'Content-Type: application/json'", `-d ${quote(JSON.stringify(body, null, 2))}`);
  return lines.join(' \\\n  ');
}

/** One argument of a POSIX shell. */
function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
