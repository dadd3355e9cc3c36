package queries

import bindings "github.com/duckdb/duckdb-go-bindings"

// EngineVersion is the version of DuckDB that is linked into commq, for example v1.5.5.
func EngineVersion() string { return bindings.LibraryVersion() }
