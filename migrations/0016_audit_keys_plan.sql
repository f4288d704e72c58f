-- PL/pgSQL caches the plan. A function in SQL was parsed and planned for each entry that the index "audit_entries_keys" got.
CREATE OR REPLACE FUNCTION cloudyard_audit_keys(changes jsonb) RETURNS bigint[] LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
  -- Hashes of the tables and of the ids of changes: small, and a row that only shares a hash is filtered out by the query.
  RETURN array(
    SELECT hashtextextended(key, 0) FROM jsonb_array_elements(changes) AS change,
      LATERAL (VALUES (change ->> 'table'), ('/' || (change ->> 'id'))) AS keys (key)
    WHERE key IS NOT NULL);
END $$;
