import { useState } from 'react';
import { Icon } from './icons.tsx';

/** Copies `text`. `what` names it for screen readers. */
export function CopyButton({ text, what = 'text' }: { text: string; what?: string }) {
  const [wasCopied, setCopied] = useState(false);
  async function copy(): Promise<void> {
    await copyText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), 2000);
  }
  return (
    <button type="button" className="button small" onClick={() => void copy()} aria-label={`Copy ${what}`}>
      <Icon name={wasCopied ? 'check' : 'copy'} /> <span aria-live="polite">{wasCopied ? 'Copied' : 'Copy'}</span>
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

/** The clipboard API exists on HTTPS and localhost only. */
async function copyText(text: string): Promise<void> {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = document.createElement('textarea');
  area.value = text;
  (document.querySelector('dialog[open]') ?? document.body).append(area);
  area.select();
  document.execCommand('copy');
  area.remove();
}

/** Text to copy, in a fixed-width font. */
export function CodeBlock({ text, what }: { text: string; what?: string }) {
  return (
    <div className="code">
      <pre tabIndex={0}>{text}</pre>
      <CopyButton text={text} {...(what === undefined ? {} : { what })} />
    </div>
  );
}
