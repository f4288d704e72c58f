import { useState } from 'react';
import { Icon } from './icons.tsx';

interface CopyProps {
  readonly text: string;
  /** Names it for screen readers. */
  readonly what?: string | undefined;
  readonly onCopied?: (() => void) | undefined;
}

/** Copies `text`. */
export function CopyButton({ text, what = 'text', onCopied }: CopyProps) {
  const [outcome, setOutcome] = useState<'Copied' | 'Not copied' | null>(null);
  async function copy(): Promise<void> {
    const isCopied = await copyText(text);
    if (isCopied) onCopied?.();
    setOutcome(isCopied ? 'Copied' : 'Not copied');
    setTimeout(() => setOutcome(null), 2000);
  }
  return (
    <button type="button" className="button small" onClick={() => void copy()} aria-label={`Copy ${what}`}>
      <Icon name={outcome === 'Copied' ? 'check' : 'copy'} /> <span aria-live="polite">{outcome ?? 'Copy'}</span>
    </button>
  );
}

/** A short text in a row with a button that copies it. */
export function CopyableText({ text, what }: { text: string; what: string }) {
  return (
    <span className="row">
      <code>{text}</code> <CopyButton text={text} what={what} />
    </span>
  );
}

/** Returns whether the browser copied it. The clipboard API exists on HTTPS and localhost only, and may be forbidden. */
async function copyText(text: string): Promise<boolean> {
  const isWritten = await navigator.clipboard?.writeText(text).then(
    () => true,
    () => false,
  );
  return isWritten || copySelected(text);
}

function copySelected(text: string): boolean {
  const focused = document.activeElement;
  const area = document.createElement('textarea');
  area.value = text;
  (document.querySelector('dialog[open]') ?? document.body).append(area);
  area.select();
  const isCopied = document.execCommand('copy');
  area.remove();
  if (focused instanceof HTMLElement) focused.focus();
  return isCopied;
}

/** Text to copy, in a fixed-width font. */
export function CodeBlock(props: CopyProps) {
  return (
    <div className="code">
      <pre tabIndex={0} onCopy={props.onCopied}>
        {props.text}
      </pre>
      <CopyButton {...props} />
    </div>
  );
}
