import { useQuery } from '@tanstack/react-query';
import { api, unwrap } from '../api/client.ts';

/** A link to the OpenID Connect provider, if the operator has configured one. It leads back to the present page. */
export function SingleSignOn() {
  const { data } = useQuery({
    queryKey: ['sign-in'],
    queryFn: () => unwrap(api.GET('/cloudyard/v1/sign_in', {})),
    retry: false,
  });
  if (!data?.oidc) return null;
  const path = /^\/console(\/[\w./~-]*)?$/.test(location.pathname) ? location.pathname : '/console/';
  return (
    <a className="button" href={`/cloudyard/v1/sign_in/oidc?return_to=${encodeURIComponent(path)}`}>
      Sign in with single sign-on
    </a>
  );
}
