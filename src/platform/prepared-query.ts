/**
 * Runs prepared statements through `pg` with less work for each call: `pg` copies the options of a query property by
 * property, and for each result asks PostgreSQL to describe its columns, looks up their parsers and makes an empty row,
 * which takes longer than the parsing. Statements with the same columns share a compiled function that makes their rows, on
 * all connections; a statement that a connection has prepared is not described again, because PostgreSQL refuses to run it
 * with other columns.
 */
import pg from 'pg';

/** A statement that PostgreSQL parses and plans once for each connection. */
export interface Statement {
  /** Absent: it is parsed and planned for each call. */
  name?: string | undefined;
  text: string;
  shape?: Shape;
}

/** The texts of all named statements, by name. */
export const statementTexts = new Map<string, string>();

/** @throws when another statement has the name: a connection that has prepared one of them would refuse the other */
export function nameStatement(name: string, text: string): Statement {
  if (statementTexts.has(name)) throw new Error(`two statements are named ${name}`);
  statementTexts.set(name, text);
  return { name, text };
}

type Field = pg.FieldDef;
type RowOf = (values: (string | null)[]) => pg.QueryResultRow;

/** How rows are made of the columns that PostgreSQL has described. */
interface Shape {
  fields: Field[];
  rowOf: RowOf;
}

/** Parts of `pg.Query` that its types omit. */
interface QueryInternals {
  name: string | undefined;
  _result: { fields: Field[]; parseRow: RowOf };
  /** Whether the connection has prepared the statement. */
  hasBeenParsed(connection: Connection): boolean;
}

/** How `pg` sends the messages of a query. */
interface Connection {
  describe(): void;
}

/** Of `pg.Query`; its types omit it. */
const { prepare } = pg.Query.prototype as unknown as { prepare(this: pg.Query, connection: Connection): void };

type Callback = (error: Error | null | undefined, result: pg.QueryResult) => void;
/** A pool, or one of its connections. */
type Queryable = { query(query: pg.Query, callback: Callback): unknown };

export class PreparedQuery<Row extends pg.QueryResultRow> extends pg.Query<Row> {
  readonly #statement: Statement;

  constructor(statement: Statement, values: unknown[]) {
    super(statement.text, values);
    this.#statement = statement;
    (this as unknown as QueryInternals).name = statement.name;
  }

  /** Called by `pg` to send the query. */
  prepare(connection: Connection): void {
    const { shape } = this.#statement;
    if (!shape || !(this as unknown as QueryInternals).hasBeenParsed(connection)) return prepare.call(this, connection);
    this.#useShape(shape);
    prepare.call(this, withoutDescribe(connection));
  }

  /** Called by `pg` when PostgreSQL describes the result. */
  handleRowDescription({ fields }: { fields: Field[] }): void {
    const { shape } = this.#statement;
    // The columns of a statement change only with a migration.
    this.#useShape(shape && isSame(shape.fields, fields) ? shape : (this.#statement.shape = sharedShapeOf(fields)));
  }

  #useShape({ fields, rowOf }: Shape): void {
    const { _result: result } = this as unknown as QueryInternals;
    Object.assign(result, { fields, parseRow: rowOf });
    Object.assign(this, { _accumulateRows: true });
  }

  async run(on: pg.Pool | pg.ClientBase): Promise<pg.QueryResult<Row>> {
    try {
      return await new Promise((resolve, reject) => {
        (on as Queryable).query(this, (error, result) => (error ? reject(error) : resolve(result)));
      });
    } catch (error) {
      // With the stack of the caller instead of the stack of the socket.
      if (error instanceof Error) Error.captureStackTrace(error);
      throw error;
    }
  }
}

const connections = new WeakMap<Connection, Connection>();

/** The connection, on which `pg` does not ask PostgreSQL to describe columns. */
function withoutDescribe(connection: Connection): Connection {
  let quiet = connections.get(connection);
  if (!quiet) connections.set(connection, (quiet = Object.create(connection, { describe: { value: () => {} } })));
  return quiet!;
}

function isSame(known: Field[], fields: Field[]): boolean {
  return (
    known.length === fields.length &&
    known.every(({ name, dataTypeID }, i) => fields[i]!.name === name && fields[i]!.dataTypeID === dataTypeID)
  );
}

/** Of all statements, by their columns: texts with filters are statements of one call. */
const shapes = new Map<string, Shape>();

function sharedShapeOf(fields: Field[]): Shape {
  const key = fields.map(({ name, dataTypeID }) => `${dataTypeID} ${name}`).join('\n');
  let shape = shapes.get(key);
  if (!shape) shapes.set(key, (shape = shapeOf(fields)));
  return shape;
}

const asText = pg.types.getTypeParser(pg.types.builtins.TEXT);

/** The function is compiled like those of the JSON serializers: a loop over the columns takes twice the time. */
function shapeOf(fields: Field[]): Shape {
  const parsers = fields.map(({ dataTypeID }) => pg.types.getTypeParser(dataTypeID));
  const properties = fields.map(({ name }, i) => {
    const value = parsers[i] === asText ? `values[${i}]` : `values[${i}] === null ? null : parsers[${i}](values[${i}])`;
    return `${JSON.stringify(name)}: ${value}`;
  });
  const compile = new Function('parsers', `return (values) => ({ ${properties.join(', ')} })`) as (p: unknown) => RowOf;
  return { fields, rowOf: compile(parsers) };
}
