/**
 * The entries of CHANGELOG.md that a release contains: those under `[Unreleased]`, or, once these have their version, the
 * section of the version.
 */
export function changelogSection(changelog: string, version: string): string {
  const sections = new Map(
    changelog
      .split(/^## (?=\[)/m)
      .slice(1)
      .map((text) => {
        const [title = '', ...lines] = text.split('\n');
        return [/^\[(.*?)\]/.exec(title)?.[1], lines.join('\n').trim()] as const;
      }),
  );
  const entries = sections.get('Unreleased') || sections.get(version);
  if (!entries) throw new Error(`CHANGELOG.md has no entries under [Unreleased] or [${version}]`);
  return `${entries}\n`;
}
