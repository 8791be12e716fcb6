package sqltext

import (
	"slices"
	"unicode"
	"unicode/utf8"
)

// changing are the words that a reading statement never has outside of quotes.
var changing = []word{
	"INSERT", "UPDATE", "DELETE", "MERGE", "REPLACE", "INTO", "CREATE", "ALTER", "DROP", "TRUNCATE", "GRANT", "REVOKE",
	"CALL", "EXEC", "EXECUTE", "COPY", "LOAD", "ATTACH", "DETACH", "VACUUM", "REINDEX", "LOCK", "OUTFILE", "DUMPFILE",
}

// elsewhere are words of other databases than SQLite that begin a statement, also without a
// semicolon before it.
var elsewhere = []word{"SHUTDOWN", "BACKUP", "RESTORE", "KILL", "RECONFIGURE", "DBCC", "WAITFOR", "BULK", "DENY"}

// functions are those of SQLite that do more than compute.
var functions = []word{"LOAD_EXTENSION", "WRITEFILE", "READFILE", "EDIT", "FTS3_TOKENIZER"}

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
		// EXPLAIN ANALYZE runs the statement, so it must be one that reads; only
		// SQLite never does.
		if d == SQLite {
			return true
		}
		i := slices.IndexFunc(w, func(x word) bool { return slices.Contains(readers, x) })
		return i > 0 && !slices.ContainsFunc(w[:i], func(x word) bool { return slices.Contains(changing, x) }) && reads(w[i:], d)
	}
	if w[0] == "PRAGMA" {
		return d == SQLite && pragmaReads(w[1:])
	}
	if d != SQLite && slices.ContainsFunc(w, func(x word) bool { return slices.Contains(elsewhere, x) }) {
		return false
	}
	return reads(w, d)
}

// readers begin statements that read, unless they hold a changing word or
// function.
var readers = []word{"SELECT", "WITH", "VALUES", "TABLE", "SHOW", "DESCRIBE", "DESC", "("}

func reads(w []word, d Dialect) bool {
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
		case call && (x == "'" || x == "]"):
			return false // a function whose name is in quotes
		case call && d == SQLite && slices.Contains(functions, x):
			return false
		case call && d != SQLite && named(x) && !computes(w, i):
			return false
		}
	}
	return true
}

// named reports whether a word is a name or a keyword.
func named(x word) bool {
	r, _ := utf8.DecodeRuneInString(string(x))
	return r == '_' || unicode.IsLetter(r)
}

// computes reports whether what is called by the word at i only computes in all databases. A function of
// a schema or a package is not known to, nor is one whose name is not known.
func computes(w []word, i int) bool {
	before := word("")
	if i > 0 {
		before = w[i-1]
	}
	switch before {
	case ".":
		return false
	case "AS", "WITH", "RECURSIVE": // the names of columns are in the parentheses
		return true
	}
	_, ok := slices.BinarySearch(computing(), w[i])
	return ok
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
