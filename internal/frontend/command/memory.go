package command

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"loki/internal/agent/memory"
	"loki/internal/app"
	"loki/internal/base/fault"
	"loki/internal/base/text"
	"loki/internal/base/value/yamldoc"
	"loki/internal/frontend/command/display"
)

func memoryCommands() []Command {
	return []Command{{
		Name: ".memory", Args: "[VERB] [ID|TEXT]", Help: "Show, add, accept or forget what is remembered", Group: General, Offered: always,
		do: (*Console).memory, complete: completeMemory,
	}}
}

// MemoryVerbs returns the verbs of --memory and .memory, the one that is meant without a verb first.
func MemoryVerbs() []string {
	return []string{"list", "show", "edit", "add", "forget", "search", "accept", "refuse", "prune"}
}

// mostRemembered is how many facts a search shows.
const mostRemembered = 20

// Memory is what --memory and .memory work on.
type Memory struct {
	App   *app.App
	Agent string                                                         // the scope of the agent in force, "" for none
	Edit  func(ctx context.Context, text, ending string) (string, error) // opens the user's editor
}

// Do does what a verb says with rest, which is an id or a text. It returns the facts that it is about, and what the user reads.
func (m Memory) Do(ctx context.Context, verb, rest string) (facts []memory.Fact, shown string, err error) {
	s, p := m.App.Memory(), m.App.MemoryPlace(m.Agent)
	rest = strings.TrimSpace(rest)
	switch {
	case rest == "" && !slices.Contains([]string{"list", "prune"}, verb):
		return nil, "", fault.New(fault.Usage, "%s needs %s", verb, memoryNeeds(verb)).WithHint("loki --memory list shows the facts with their ids")
	case rest != "" && verb == "prune":
		return nil, "", fault.New(fault.Usage, "prune takes nothing, but %q was given", rest)
	}
	switch verb {
	case "list":
		places := []memory.Place{p}
		if rest == "all" {
			places = s.Places(ctx)
		} else if rest != "" {
			return nil, "", fault.New(fault.Usage, "list takes nothing or all, not %q", rest).WithHint("loki --memory search %s finds words", text.Word(rest))
		}
		facts = factsOf(ctx, s, places)
		return facts, factTable(facts, s.Dir, rest == "all"), nil
	case "search":
		facts = s.Search(ctx, p, "", rest, mostRemembered)
		return facts, factTable(facts, "", false), nil
	case "add":
		f := memory.Fact{Scope: memory.User, By: memory.ByUser, Text: rest}
		if scope, of, ok := strings.Cut(rest, ":"); ok && slices.Contains(memory.Scopes(), scope) {
			f.Scope, f.Text = scope, of
		}
		f, err = s.Save(ctx, p, f)
		return []memory.Fact{f}, "saved: " + f.ID, err
	case "prune":
		facts, err = s.Prune(ctx)
		return facts, "removed: " + text.Count(len(facts), "fact"), err
	case "accept", "refuse":
		return m.decide(ctx, s, verb, rest)
	}
	f, err := s.Find(ctx, rest, s.Places(ctx)...)
	if err != nil {
		return nil, "", err
	}
	facts = []memory.Fact{f}
	switch verb {
	case "show":
		shown = text.Printable(string(f.Encode()))
	case "forget":
		_, err = s.Forget(ctx, f.Place(), f.Path)
		shown = "forgotten: " + f.ID
	case "edit":
		var edited string
		if edited, err = m.Edit(ctx, string(f.Encode()), ".md"); err == nil {
			facts[0], err = s.Edit(ctx, f, edited)
		}
		shown = "saved: " + f.ID
	}
	return facts, shown, err
}

// memoryNeeds says what a verb works on.
func memoryNeeds(verb string) string {
	switch verb {
	case "add":
		return "the text to remember"
	case "search":
		return "words to look for"
	case "accept", "refuse":
		return "the id of a proposal, or all"
	}
	return "the id of a fact"
}

// decide accepts or refuses a proposal, or all that are here.
func (m Memory) decide(ctx context.Context, s *memory.Store, verb, id string) (facts []memory.Fact, shown string, err error) {
	if id == "all" {
		facts = s.List(ctx, m.App.MemoryPlace(m.Agent), true)
	} else {
		f, err := s.Find(ctx, id, s.Places(ctx)...)
		if fault.CodeOf(err) == fault.NotFound {
			err = fault.New(fault.NotFound, "the memory has no proposal %q", id).WithHint("loki --memory list shows the proposals with their ids")
		}
		if err == nil && !f.Proposed {
			err = fault.New(fault.Usage, "fact %s is accepted already", f.ID).WithHint("loki --memory forget %s removes it", f.ID)
		}
		if err != nil {
			return nil, "", err
		}
		facts = []memory.Fact{f}
	}
	do, done := s.Accept, "accepted"
	if verb == "refuse" {
		do, done = s.Forget, "refused"
	}
	for i, f := range facts {
		if _, err := do(ctx, f.Place(), f.Path); err != nil {
			return facts[:i], "", fault.Wrap(fault.CodeOf(err), err, "%s", f.ID).WithHint("%s", fault.HintOf(err))
		}
	}
	return facts, done + ": " + text.Count(len(facts), "proposal"), nil
}

// factsOf returns the facts of places, those of the user once, and then what is proposed there.
func factsOf(ctx context.Context, s *memory.Store, places []memory.Place) (facts []memory.Fact) {
	for _, proposals := range []bool{false, true} {
		for i, p := range places {
			for _, f := range s.List(ctx, p, proposals) {
				if i == 0 || f.Scope != memory.User {
					facts = append(facts, f)
				}
			}
		}
	}
	return facts
}

// factTable shows facts, and below them proposals with all that they say. Dir is where they are, for an empty list. Those of elsewhere
// are shown with their workspace or agent.
func factTable(facts []memory.Fact, dir string, elsewhere bool) string {
	var rows [][]string
	var proposals strings.Builder
	for _, f := range facts {
		if f.Proposed {
			fmt.Fprintf(&proposals, "\nproposed: %s\n    %s\n", proposal(&f), strings.ReplaceAll(text.Visible(f.Text), "\n", "\n    "))
			continue
		}
		scope := f.Scope
		if elsewhere {
			scope = strings.TrimSpace(scope + " " + f.Of)
		}
		rows = append(rows, []string{f.ID, text.Visible(scope), text.Visible(f.Title), marks(&f)})
	}
	switch {
	case len(facts) == 0 && dir == "":
		return "nothing was found"
	case len(facts) == 0:
		return "nothing is remembered yet; facts are files below " + dir
	}
	table := ""
	if len(rows) > 0 {
		table = display.Table(rows)
	}
	return strings.Trim(table+proposals.String(), "\n")
}

// proposal describes a proposal in a line.
func proposal(f *memory.Fact) string {
	what := f.ID + " to remember in the scope " + f.Scope + ": " + text.Visible(f.Title)
	switch {
	case f.Forgets:
		what = f.ID + " to forget " + f.Changes + ", because"
	case f.Changes != "":
		what = f.ID + " to change " + f.Changes + " to: " + text.Visible(f.Title)
	}
	if f.Tainted {
		what += " (the model had read what others wrote)"
	}
	return what
}

// marks names what is particular about a fact.
func marks(f *memory.Fact) string {
	var all []string
	if f.Pinned {
		all = append(all, "pinned")
	}
	if f.Expired(time.Now()) {
		all = append(all, "expired")
	}
	for _, tag := range f.Tags {
		all = append(all, "#"+text.Visible(tag))
	}
	return strings.Join(all, " ")
}

// memory is for .memory.
func (c *Console) memory(ctx context.Context, args string) error {
	verb, rest, _ := strings.Cut(args, " ")
	if verb == "" {
		verb = MemoryVerbs()[0]
	}
	if !slices.Contains(MemoryVerbs(), verb) {
		err := fault.New(fault.Usage, ".memory has no verb %q", verb)
		if near := yamldoc.Nearest(verb, MemoryVerbs()); near != "" {
			return err.WithHint("did you mean .memory %s?", near)
		}
		return err.WithHint("the verbs: %s", strings.Join(MemoryVerbs(), ", "))
	}
	_, shown, err := Memory{c.App, string(c.conv.Scope()), c.editText}.Do(ctx, verb, rest)
	return c.printUnless(err, c.App.Hide(shown))
}

// completeMemory completes a verb, and then an id.
func completeMemory(c *Console, ctx context.Context, words []string) (found []Candidate) {
	switch len(words) {
	case 1:
		for _, verb := range MemoryVerbs() {
			found = append(found, Candidate{Value: verb, Space: verb != "list" && verb != "prune"})
		}
	case 2:
		if slices.Contains([]string{"list", "add", "search", "prune"}, words[0]) {
			return nil
		}
		s := c.App.Memory()
		for _, f := range factsOf(ctx, s, []memory.Place{c.App.MemoryPlace(string(c.conv.Scope()))}) {
			if decides := words[0] == "accept" || words[0] == "refuse"; decides == f.Proposed {
				found = append(found, Candidate{Value: f.ID, Description: text.Visible(f.Title)})
			}
		}
	}
	return found
}
