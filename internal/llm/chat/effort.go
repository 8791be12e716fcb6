package chat

import (
	"fmt"
	"slices"
	"strings"
)

// Effort says how much a model is to reason before it answers. Providers without levels of
// their own translate efforts into budgets of tokens. A model that lacks an effort gets the
// nearest one that it has.
type Effort string

// The efforts, in ascending order.
const (
	NoEffort      Effort = "none"
	MinimalEffort Effort = "minimal"
	LowEffort     Effort = "low"
	MediumEffort  Effort = "medium"
	HighEffort    Effort = "high"
	XHighEffort   Effort = "xhigh"
	MaxEffort     Effort = "max"
)

// Efforts returns the efforts in ascending order.
func Efforts() []Effort {
	return []Effort{NoEffort, MinimalEffort, LowEffort, MediumEffort, HighEffort, XHighEffort, MaxEffort}
}

// EffortNames lists the efforts for messages.
func EffortNames() string {
	var names []string
	for _, e := range Efforts() {
		names = append(names, string(e))
	}
	return strings.Join(names, ", ")
}

// Valid reports whether e is one of the efforts.
func (e Effort) Valid() bool { return slices.Contains(Efforts(), e) }

// Nearest returns the effort in a model's list that is nearest to e, the higher one of two
// that are equally near. [MaxEffort] counts as one step further away, since it may cost
// many times more, and [NoEffort] is taken only for itself or if the list has nothing else.
// The nearest of an empty list is "".
func (e Effort) Nearest(list []Effort) Effort {
	all := Efforts()
	wanted := slices.Index(all, e)
	nearest, distance := Effort(""), 2*len(all)
	for i, candidate := range all {
		d := max(i-wanted, wanted-i)
		switch {
		case candidate == e:
		case candidate == NoEffort:
			d += len(all)
		case candidate == MaxEffort:
			d++
		}
		if d <= distance && slices.Contains(list, candidate) {
			nearest, distance = candidate, d
		}
	}
	return nearest
}

// ReplacedNote returns a note for the user: a model gets another effort instead of e, or none
// at all if instead is empty.
func (e Effort) ReplacedNote(instead Effort) string {
	if instead == "" {
		return fmt.Sprintf("effort %s is not available, so the model reasons as it does by default", e)
	}
	return fmt.Sprintf("effort %s is not available, so %s is used", e, instead)
}
