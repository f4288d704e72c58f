/** The parts of an e-mail. */
import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { emailParts } from './desired.ts';

it('both have the line breaks of a text, such as the reason of a decision', () => {
  const { text, html } = emailParts({
    ...{ id: randomUUID(), clientId: 1, type: 'quota_request_declined', subject: 's', createdAt: new Date() },
    body: { paragraphs: ['It was declined.', 'Reason: no space.\n\n1. Wait\n2. <Ask>'] },
    data: {},
  });
  expect(text).toContain('\n\nReason: no space.\n\n1. Wait\n2. <Ask>\n\n');
  expect(html).toContain('<p style="white-space: pre-line">Reason: no space.\n\n1. Wait\n2. &lt;Ask&gt;</p>');
});
