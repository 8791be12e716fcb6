package run

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"loki/internal/llm/event"
)

// Gap is a part of a run that is not on record, because its journal could not be
// written. Resuming from the record would repeat what the run did in it. Fields that
// are not known are zero.
type Gap struct {
	Reason string         `json:"reason,omitempty"` // why the journal could not be written
	Since  time.Time      `json:"since,omitzero"`
	Step   int            `json:"step"`             // the last super-step on record
	Nodes  map[string]int `json:"nodes,omitempty"`  // finished visits that are not on record
	Status Status         `json:"status,omitempty"` // how the run ended; empty if it is not known to have ended
	Error  string         `json:"error,omitempty"`
}

// Repeats says what is repeated if the run resumes from the record.
func (g Gap) Repeats() string {
	if len(g.Nodes) == 0 {
		return fmt.Sprintf("everything the run did after super-step %d", g.Step)
	}
	var parts []string
	for _, node := range slices.Sorted(maps.Keys(g.Nodes)) {
		part := node
		if n := g.Nodes[node]; n > 1 {
			part = fmt.Sprintf("%s (%d times)", node, n)
		}
		parts = append(parts, part)
	}
	if len(parts) > 10 {
		parts = append(parts[:10], fmt.Sprintf("%d more nodes", len(parts)-10))
	}
	return fmt.Sprintf("everything the run did after super-step %d, at least %s", g.Step, strings.Join(parts, ", "))
}

// GapError says that a run cannot be resumed, because a part of it is not on record.
type GapError struct {
	ID  string
	Gap Gap
}

func (e *GapError) Error() string {
	text := fmt.Sprintf("run %s is not on record from super-step %d on", e.ID, e.Gap.Step+1)
	if e.Gap.Reason != "" {
		text += ", because " + e.Gap.Reason
	}
	return text
}

// acceptGap lets a run resume although a part of it is not on record. The user is warned of what is
// repeated.
func acceptGap(ctx context.Context, store Store, info Info, events event.Scope) error {
	if info.Gap == nil {
		return nil
	}
	if err := patiently(ctx, events, func() error { return store.AcceptGap(ctx, info.ID) }); err != nil {
		return refusal(err, info.Kind)
	}
	return events.Emit(ctx, event.Warning{
		Text: fmt.Sprintf("run %s resumes after super-step %d, the last one on record, and repeats %s", info.ID, info.Gap.Step, info.Gap.Repeats()),
	})
}
