declare module 'schema:*' {
  const schema: import('./ui/form/schema.ts').JsonSchema;
  export default schema;
}
