package record

import "loki/internal/workflow/run"

// Rows are the record of a run as one store has it, for another store to take over: documents as they are stored, without
// secrets.
type Rows struct {
	Info               run.Info
	About, Ending, Gap []byte   // documents; nil for none
	Tables             []Table  // in any order
	Hashes, Blobs      [][]byte // of the texts that documents refer to
}

// Table is a table that has rows of each run.
type Table struct {
	Name    string
	Columns []string
	Rows    [][]any // an integer, a text, bytes or nil for each column
}

// Tables returns the tables of a run, without rows.
func Tables() []Table {
	return []Table{
		{Name: "checkpoints", Columns: []string{"step", "doc", "visits"}},
		{Name: "state", Columns: []string{"key", "step", "full_step", "doc"}},
		{Name: "tasks", Columns: []string{"step", "node", "doc", "writes"}},
		{Name: "steps", Columns: []string{"n", "step", "node", "key", "kind", "name", "at", "size", "result"}},
		{Name: "questions", Columns: []string{"id", "n", "step", "node", "key", "answered", "doc"}},
		{Name: "signals", Columns: []string{"n", "name", "at", "doc", "taken", "key"}},
		{Name: "events", Columns: []string{"first", "batch"}},
	}
}
