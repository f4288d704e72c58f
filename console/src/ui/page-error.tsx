import { Link, useRouter } from '@tanstack/react-router';
import { MissingChunkError } from './chunks.ts';
import { EmptyState, ErrorState } from './states.tsx';
import { useTitle } from './title.ts';

/** The error boundary of each page: the frame around it keeps working. */
export function PageError({ error, reset }: { error: unknown; reset: () => void }) {
  const router = useRouter();
  const retry = () => {
    // Its component stays failed until the page is loaded again.
    if (error instanceof MissingChunkError) return location.reload();
    reset();
    void router.invalidate();
  };
  return <ErrorState error={error} retry={retry} />;
}

/** An address that belongs to no page, or to a dialog that does not exist. */
export function NotFound() {
  useTitle('Page not found');
  return (
    <EmptyState title="Page not found" action={<Link to="/">Go to the overview</Link>}>
      The address does not belong to a page of the console.
    </EmptyState>
  );
}
