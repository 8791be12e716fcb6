package run

import (
	"context"
	"fmt"
	"time"
)

// The kinds of origins.
const (
	OfSchedule = "schedule"
	OfTrigger  = "trigger"
	OfMCP      = "mcp" // a client of the MCP server
)

// Origin says what started a run that no user started at Loki.
type Origin struct {
	Kind        string    `json:"kind"` // [OfSchedule], [OfTrigger] or [OfMCP]
	Name        string    `json:"name"` // of the schedule or trigger, or how the client is connected
	Due         time.Time `json:"due,omitzero"`
	LateSeconds float64   `json:"late_seconds,omitempty"` // after Due
	Outside     bool      `json:"outside,omitempty"`      // its prompt has data of a sender outside
}

// String returns the origin as [Query] selects it: "schedule/NAME". A nil origin is empty.
func (o *Origin) String() string {
	if o == nil {
		return ""
	}
	return o.Kind + "/" + o.Name
}

// Beginning is what a run that starts by itself is begun with.
type Beginning struct {
	Origin *Origin // nil for a run that a user started

	// Claims are written in the transaction that creates the run, all or nothing: if one of them conflicts, there is no run, and the
	// error of [Store.Create] is a [*ConflictError]. One whose Run is [NewRun] gets the id of the run. A unique key of a start is
	// a claim with Version 0. A run that was read has none.
	Claims []Entry
}

// NewRun is the [Entry.Run] of an entry that gets the id of the run that is created with it.
const NewRun = "*"

// Entry is a small document beside the runs, such as the state of a schedule, or the key of a start. It stays when its run is deleted.
//
// The first part of a key says whose it is: "start/" of starts, whose keys are unique, "schedule/" of schedules,
// "dead/" of deliveries that started no run, "alert/" of alerts, "usage/" of what was used, "spending/" of limits on that, and "retention/".
type Entry struct {
	Key     string
	Version int       // of a stored one, from 1. Of one that is written, the version that it replaces; 0 if there must be none
	At      time.Time // when it was written; the store sets it
	Run     string    // id of the run that it is about; empty for none
	Doc     []byte    // JSON; nil for none
	Gone    bool      // of one that is written: it is deleted
}

// StartKey returns the key of the entry for a start with a unique key.
func StartKey(key string) string { return "start/" + key }

// Entries keeps entries. All stores of runs have them. Its methods may be called from several goroutines and processes.
type Entries interface {
	// Put writes entries, all or nothing. If one has not the version that it replaces, the error is a [*ConflictError].
	Put(ctx context.Context, entries ...Entry) error
	// Entries returns the entries whose keys begin with prefix, by descending keys, at most limit; 0 means all.
	Entries(ctx context.Context, prefix string, limit int) ([]Entry, error)
	// DropEntries deletes the entries whose keys begin with prefix and that were written before a time.
	DropEntries(ctx context.Context, prefix string, before time.Time) error
}

// ConflictError says that an entry is not as its writer expected: another process was faster, or the start was made before.
type ConflictError struct {
	Key string
	Run string // of the entry that is there
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("another process has written %s", e.Key)
}

// withRun returns an entry of a run that is created as it is written.
func (e Entry) withRun(id string) Entry {
	if e.Run == NewRun {
		e.Run = id
	}
	return e
}

// ClaimsOf returns the claims of a run that gets an id.
func (i Info) ClaimsOf(id string) []Entry {
	claims := make([]Entry, len(i.Claims))
	for n, e := range i.Claims {
		claims[n] = e.withRun(id)
	}
	return claims
}
