/** Pure: parses the CSV of `show stat`. */

/**
 * The rows, as functions that return the value of a column; empty if the row does not have it. The responses to several commands
 * may follow each other, each with its own head.
 */
export function* rowsOf(csv: string): Generator<(column: string) => string> {
  let columns = new Map<string, number>();
  for (const line of csv.split('\n')) {
    const fields = line.split(',');
    if (line.startsWith('# pxname')) columns = new Map(fields.map((name, at) => [name.replace('# ', ''), at]));
    else yield (column) => fields[columns.get(column) ?? -1] ?? '';
  }
}
