/**
 * Finds statements of migrations that break the previous release, whose servers may still run during an upgrade. A schema
 * changes in two releases: one adds (expand), and the next one removes what no running version uses (contract).
 *
 * A statement that is safe in spite of its form has a comment `-- contract: <reason>` before it in the migration.
 */
interface Rule {
  statement: RegExp;
  problem: string;
}

const rules: Rule[] = [
  {
    statement: /\bdrop\s+(table|column|view|schema|type|function)\b/,
    problem: 'removes what the previous release may use',
  },
  {
    statement: /\brename\s+(to|column|constraint)\b|\brename\s+"/,
    problem: 'renames what the previous release uses by name',
  },
  {
    statement: /\balter\s+column\s+"?\w+"?\s+(set\s+data\s+)?type\b/,
    problem: 'changes a type and rewrites the table',
  },
  { statement: /\bset\s+not\s+null\b/, problem: 'refuses rows of the previous release' },
  {
    statement: /\badd\s+column\b(?=[^;]*\bnot\s+null\b)(?![^;]*\bdefault\b)/,
    problem: 'needs a default for rows of the previous release',
  },
  { statement: /\btruncate\b|\bdelete\s+from\b/, problem: 'deletes rows that the previous release wrote' },
  { statement: /\block\s+table\b/, problem: 'blocks running servers' },
];
/** On a table that the migration does not create: existing rows and those of the previous release may violate it. */
const onExisting: Rule[] = [
  { statement: /\bcreate\s+unique\s+index\b/, problem: 'may refuse rows of the previous release' },
  { statement: /\badd\s+constraint\b(?![^;]*\bnot\s+valid\b)/, problem: 'may refuse rows of the previous release' },
];

/** The problems of a migration, one line each. */
export function lintMigration(name: string, text: string): string[] {
  const created = [...text.matchAll(/create\s+table\s+(?:if\s+not\s+exists\s+)?"?(\w+)"?/gi)].map((match) => match[1]!);
  return text.split('--> statement-breakpoint').flatMap((statement) => {
    if (/^\s*-- contract: \S/m.test(statement)) return [];
    const plain = statement.replace(/--.*$/gm, '').toLowerCase();
    const table = /(?:alter\s+table(?:\s+only)?|\bon)\s+"?(?:public"?\.)?"?(\w+)"?/.exec(plain)?.[1];
    const applied = table !== undefined && created.includes(table) ? rules : [...rules, ...onExisting];
    const found = applied.filter((rule) => rule.statement.test(plain));
    return found.map(({ problem }) => `${name}: ${plain.trim().split('\n')[0]!.slice(0, 80)} ${problem}`);
  });
}
