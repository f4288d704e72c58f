import { Link } from '@tanstack/react-router';

interface NoneYetProps {
  /** Such as `The project has no network yet.` */
  readonly text: string;
  readonly to: string;
  readonly action: string;
}

/** In place of the help of a select without choices: what is missing, and a link to its form. */
export function NoneYet({ text, to, action }: NoneYetProps) {
  return (
    <>
      {text} <Link to={to}>{action}</Link>
    </>
  );
}
