package graph

import "fmt"

// String returns the predicate in its normal form, "len(input) >= 3".
func (p Predicate) String() string { return fmt.Sprintf("len(input) %s %d", p.op, p.limit) }
