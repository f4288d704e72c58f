/**
 * The same by code: a request of the console as text for `curl`, the official Python SDK and the official Terraform
 * provider. Runs in the browser and imports nothing of the server, so load it lazily.
 */
import { curlFor } from './curl.ts';
import { pythonFor } from './python.ts';
import { terraformFor } from './terraform.ts';
import type { ApiRequest } from './request.ts';

interface Code {
  /** Bash with curl, and with jq if the operation answers with tasks. Reads the token from `$CLOUDYARD_TOKEN`. */
  curl: string;
  /** null: the SDK lacks the operation, or cannot express this request. */
  python: string | null;
  /** null: the provider has no resource for the operation, or cannot express this request. */
  terraform: string | null;
}

/**
 * Returns text that sends exactly these requests, all of one operation, in this order until one is refused, and waits until
 * their tasks end. Never throws.
 */
export function codeFor(...requests: readonly [ApiRequest, ...ApiRequest[]]): Code {
  return {
    curl: curlFor(requests),
    python: pythonFor(requests),
    terraform: requests.length === 1 ? terraformFor(requests[0]) : null,
  };
}
