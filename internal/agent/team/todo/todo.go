// Package todo holds a model's list of tasks and the tools to keep it, and lets the model continue
// while the list has open items.
//
// A list has a goal and items. An item is open until it is done.
package todo

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Item is one thing to do.
type Item struct {
	ID   int    `json:"id"` // from 1, unique in the list
	Desc string `json:"desc"`
	Done bool   `json:"done"`
}

// UnmarshalJSON implements [json.Unmarshaler]. The text may also be called description.
func (i *Item) UnmarshalJSON(data []byte) error {
	type plain Item
	v := struct {
		*plain
		Description string `json:"description"`
	}{plain: (*plain)(i)}
	if err := json.Unmarshal(data, &v); err != nil {
		return err
	}
	if i.Desc == "" {
		i.Desc = v.Description
	}
	return nil
}

// List is a list. The zero value is empty and ready. It may be used from several
// goroutines, and must not be copied once it is used.
type List struct {
	mu       sync.Mutex
	goal     string
	items    []Item
	revision int
	clears   int // how often a model has cleared it
}

// state is the JSON form of a list.
type state struct {
	Goal  string `json:"goal"`
	Items []Item `json:"todos"`
}

// Init empties the list and sets its goal.
func (l *List) Init(goal string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.goal, l.items = goal, nil
	l.revision++
}

// Clear empties the list.
func (l *List) Clear() { l.Init("") }

// Add adds an item and returns its id, which is one more than the highest there is.
func (l *List) Add(desc string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	id := 1
	for _, i := range l.items {
		id = max(id, i.ID+1)
	}
	l.items = append(l.items, Item{ID: id, Desc: desc})
	l.revision++
	return id
}

// Done marks an item, and reports whether there is one with this id.
func (l *List) Done(id int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.IndexFunc(l.items, func(i Item) bool { return i.ID == id })
	if i < 0 {
		return false
	}
	if !l.items[i].Done {
		l.items[i].Done = true
		l.revision++
	}
	return true
}

// Items returns a copy of the items, in the order in which they were added.
func (l *List) Items() []Item {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.items)
}

// Open returns how many items are not done.
func (l *List) Open() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, i := range l.items {
		if !i.Done {
			n++
		}
	}
	return n
}

// Revision returns a number that is larger after each change.
func (l *List) Revision() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.revision
}

// clearCount returns how often a model has cleared the list.
func (l *List) clearCount() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.clears
}

// Clone returns a copy for a context of its own.
func (l *List) Clone() *List {
	l.mu.Lock()
	defer l.mu.Unlock()
	return &List{goal: l.goal, items: slices.Clone(l.items), revision: l.revision}
}

// Render returns the list for models and users, without a line feed at the end:
//
//	Goal: write a book
//	Progress: 1/2 completed
//	  ✓ 1. find a title
//	  ○ 2. write
func (l *List) Render() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	done := 0
	var items strings.Builder
	for _, i := range l.items {
		mark := "○"
		if i.Done {
			mark = "✓"
			done++
		}
		fmt.Fprintf(&items, "\n  %s %d. %s", mark, i.ID, i.Desc)
	}
	goal := ""
	if l.goal != "" {
		goal = "Goal: " + l.goal + "\n"
	}
	return fmt.Sprintf("%sProgress: %d/%d completed%s", goal, done, len(l.items), items.String())
}

// MarshalJSON implements [json.Marshaler].
func (l *List) MarshalJSON() ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := state{Goal: l.goal, Items: l.items}
	if s.Items == nil {
		s.Items = []Item{}
	}
	return json.Marshal(s)
}

// UnmarshalJSON implements [json.Unmarshaler].
func (l *List) UnmarshalJSON(data []byte) error {
	var s state
	if err := json.Unmarshal(data, &s); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.goal, l.items = s.Goal, s.Items
	l.revision++
	return nil
}
