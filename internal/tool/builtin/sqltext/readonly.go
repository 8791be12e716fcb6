package sqltext

import (
	"slices"
	"strings"
)

// changing are the words that a reading statement never has outside of quotes.
var changing = []word{
	"INSERT", "UPDATE", "DELETE", "MERGE", "REPLACE", "INTO", "CREATE", "ALTER", "DROP", "TRUNCATE", "GRANT", "REVOKE",
	"CALL", "EXEC", "EXECUTE", "COPY", "LOAD", "ATTACH", "DETACH", "VACUUM", "REINDEX", "LOCK", "OUTFILE", "DUMPFILE",
}

// elsewhere are words of other databases than SQLite that begin a statement, also without a
// semicolon before it.
var elsewhere = []word{"SHUTDOWN", "BACKUP", "RESTORE", "KILL", "RECONFIGURE", "DBCC", "WAITFOR", "BULK", "DENY"}

// functions are those that do more than compute. So do names that begin with one of
// prefixes, unless they are among harmless.
var (
	functions = []string{
		"NEXTVAL", "SETVAL", "SET_CONFIG", "LOAD_EXTENSION", "WRITEFILE", "READFILE", "EDIT", "FTS3_TOKENIZER", "TS_STAT", "CURSOR_TO_XML", "CURSOR_TO_XMLSCHEMA",
		"LOAD_FILE", "SLEEP", "BENCHMARK", "GET_LOCK", "RELEASE_LOCK", "SYS_EXEC", "SYS_EVAL", "OPENROWSET", "OPENQUERY",
		"OPENDATASOURCE", "URL", "FILE", "S3", "REMOTE", "READ_CSV", "READ_TEXT", "HTTP_GET", "HTTP_POST",
	}
	prefixes = []string{"PG_", "LO_", "DBLINK", "XP_", "SP_", "DBMS_", "UTL_", "QUERY_TO_", "CROSSTAB"}
	harmless = []string{
		"PG_TYPEOF", "PG_SIZE_PRETTY", "PG_TABLE_SIZE", "PG_TOTAL_RELATION_SIZE", "PG_RELATION_SIZE", "PG_INDEXES_SIZE",
		"PG_DATABASE_SIZE", "PG_GET_VIEWDEF", "PG_GET_INDEXDEF", "PG_GET_CONSTRAINTDEF", "PG_GET_FUNCTIONDEF",
		"PG_GET_EXPR", "PG_TABLE_IS_VISIBLE", "PG_GET_USERBYID", "PG_ENCODING_TO_CHAR",
	}
)

// pragmas of SQLite that only return something, also with an argument in
// parentheses.
var pragmas = []word{
	"TABLE_INFO", "TABLE_XINFO", "TABLE_LIST", "INDEX_LIST", "INDEX_INFO", "INDEX_XINFO", "FOREIGN_KEY_LIST",
	"FOREIGN_KEY_CHECK", "DATABASE_LIST", "COLLATION_LIST", "FUNCTION_LIST", "MODULE_LIST", "PRAGMA_LIST", "COMPILE_OPTIONS",
	"INTEGRITY_CHECK", "QUICK_CHECK",
}

// working are pragmas that change something even without a value.
var working = []word{"WAL_CHECKPOINT", "OPTIMIZE", "INCREMENTAL_VACUUM", "SHRINK_MEMORY"}

// ReadOnly reports whether the statement only reads.
func (s Statement) ReadOnly(d Dialect) bool {
	if s.ambiguous && d != SQLite || len(s.words) == 0 {
		return false
	}
	w := s.words
	if w[0] == "EXPLAIN" {
		// EXPLAIN ANALYZE runs the statement, so that it has to be one that reads; only
		// SQLite never does.
		if d == SQLite {
			return true
		}
		i := slices.IndexFunc(w, func(x word) bool { return slices.Contains(readers, x) })
		return i > 0 && !slices.ContainsFunc(w[:i], func(x word) bool { return slices.Contains(changing, x) }) && s.reads(w[i:])
	}
	if w[0] == "PRAGMA" {
		return d == SQLite && pragmaReads(w[1:])
	}
	if d != SQLite && slices.ContainsFunc(w, func(x word) bool { return slices.Contains(elsewhere, x) }) {
		return false
	}
	return s.reads(w)
}

// readers begin statements that read, unless they hold a changing word or
// function.
var readers = []word{"SELECT", "WITH", "VALUES", "TABLE", "SHOW", "DESCRIBE", "DESC", "("}

func (s Statement) reads(w []word) bool {
	if !slices.Contains(readers, w[0]) {
		return false
	}
	for i, x := range w {
		call := i+1 < len(w) && w[i+1] == "("
		switch {
		case x == "REPLACE" && call:
			// the function for strings
		case slices.Contains(changing, x):
			return false
		case call && doesMore(string(x)):
			return false
		case i+1 < len(w) && w[i+1] == "." && inPackage(string(x)):
			return false
		case x == "'" && call:
			return false // a function whose name is in quotes
		}
	}
	return true
}

// doesMore reports whether a function may do more than compute.
func doesMore(name string) bool {
	if slices.Contains(functions, name) {
		return true
	}
	return !slices.Contains(harmless, name) && slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

// inPackage reports whether a name is that of a package whose functions may do more than compute.
func inPackage(name string) bool {
	return strings.HasPrefix(name, "DBMS_") || strings.HasPrefix(name, "UTL_") || strings.HasPrefix(name, "DBLINK")
}

// pragmaReads looks at the words behind PRAGMA.
func pragmaReads(w []word) bool {
	if len(w) > 2 && w[1] == "." {
		w = w[2:]
	}
	if len(w) > 0 && slices.Contains(working, w[0]) {
		return false
	}
	return len(w) == 1 || len(w) > 1 && slices.Contains(pragmas, w[0]) && !slices.Contains(w, "=")
}
