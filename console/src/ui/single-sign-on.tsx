import { useQuery } from '@tanstack/react-query';
import { api, unwrap } from '../api/client.ts';

/** As the server accepts it (`return_to`). */
const PAGE = /^\/console(\/[\w~-][\w.~-]*)*\/?(\?[\w.~%=&+-]*)?$/;

/**
 * A link to the OpenID Connect provider, if the operator has configured one. It leads back to the current page.
 * `isRenewal`: the page is open and has text, so the sign-in takes place in another tab.
 */
export default function SingleSignOn({ isRenewal }: { isRenewal: boolean }) {
  const { data } = useQuery({
    queryKey: ['sign-in'],
    queryFn: () => unwrap(api.GET('/cloudyard/v1/sign_in', {})),
    retry: false,
  });
  if (!data?.oidc) return null;
  const { pathname, search } = location;
  const page = isRenewal ? '/console/' : ([pathname + search, pathname].find((path) => PAGE.test(path)) ?? '/console/');
  return (
    <a
      className="button"
      href={`/cloudyard/v1/sign_in/oidc?return_to=${encodeURIComponent(page)}`}
      target={isRenewal ? '_blank' : undefined}
    >
      Sign in with single sign-on{isRenewal && ' (new tab)'}
    </a>
  );
}
