import { type KeyboardEvent, useState } from 'react';
import { codeFor } from '../code/code-for.ts';
import type { Call } from './by-code.tsx';
import { CodeBlock } from './copy.tsx';

const LANGUAGES = [
  ['curl', 'curl'],
  ['python', 'Python'],
  ['terraform', 'Terraform'],
] as const;

/** One tab a language; languages that cannot do this request have none. */
export default function CodeTabs({ calls }: { calls: readonly Call[] }) {
  const [first, ...others] = calls.map((call) => ({ ...call, query: call.query ?? {}, url: location.origin }));
  const code = codeFor(first!, ...others);
  const shown = LANGUAGES.filter(([key]) => code[key] !== null);
  const [chosen, setChosen] = useState<(typeof LANGUAGES)[number][0]>('curl');
  const index = Math.max(
    0,
    shown.findIndex(([key]) => key === chosen),
  );
  function onKeyDown(event: KeyboardEvent<HTMLElement>): void {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step === undefined) return;
    const next = (index + step + shown.length) % shown.length;
    setChosen(shown[next]![0]);
    event.currentTarget.querySelectorAll('button')[next]?.focus();
  }
  return (
    <div>
      <div className="tabs" role="tablist" aria-label="Language" onKeyDown={onKeyDown}>
        {shown.map(([key, title], at) => (
          <button
            key={key}
            type="button"
            role="tab"
            aria-selected={at === index}
            tabIndex={at === index ? 0 : -1}
            onClick={() => setChosen(key)}
          >
            {title}
          </button>
        ))}
      </div>
      <div role="tabpanel" aria-label={shown[index]![1]}>
        <CodeBlock text={code[shown[index]![0]]!} />
      </div>
    </div>
  );
}
