package command

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"strings"

	"loki/internal/app"
	"loki/internal/base/text"
	"loki/internal/conversation/session"
	"loki/internal/llm/catalog"
)

// completer is what completes the last of the words behind a command.
type completer = func(c *Console, ctx context.Context, words []string) []Candidate

// first completes the first word only.
func first(complete completer) completer {
	return func(c *Console, ctx context.Context, words []string) []Candidate {
		if len(words) != 1 {
			return nil
		}
		return complete(c, ctx, words)
	}
}

// oneOf completes the first word to one of several.
func oneOf(values ...string) completer {
	return first(func(*Console, context.Context, []string) []Candidate { return candidatesOf(values) })
}

// candidatesOf returns a candidate for each name.
func candidatesOf(names []string) []Candidate {
	list := make([]Candidate, len(names))
	for i, name := range names {
		list[i].Value = name
	}
	return list
}

// namesOf completes the first word to one of the names that list returns. What could be listed before an error is
// better than nothing.
func namesOf(list func(c *Console, ctx context.Context) ([]string, error)) completer {
	return first(func(c *Console, ctx context.Context, _ []string) []Candidate {
		names, _ := list(c, ctx)
		return candidatesOf(names)
	})
}

func completeRole() completer {
	return namesOf(func(c *Console, _ context.Context) ([]string, error) { return c.App.Roles().Names() })
}

func completeMacro() completer {
	return first(func(c *Console, _ context.Context, _ []string) []Candidate {
		names, _ := c.App.Macros().Names()
		list := candidatesOf(names)
		for i, name := range names {
			if m, _, err := c.App.Macros().Load(name); err == nil {
				list[i].Description = strings.TrimPrefix(strings.TrimPrefix(m.Usage(), name), " ")
			}
		}
		return list
	})
}

func completeBase() completer {
	return namesOf(func(c *Console, ctx context.Context) ([]string, error) { return c.App.Knowledge().Names(ctx) })
}

func completeModel() completer {
	return first(func(c *Console, _ context.Context, _ []string) []Candidate { return c.modelCandidates(catalog.Chat) })
}

// modelCandidates returns the models of a type.
func (c *Console) modelCandidates(of catalog.Type) (found []Candidate) {
	for m := range c.App.Catalog.Models(of) {
		found = append(found, Candidate{Value: m.ID(), Description: strings.TrimRight(m.Description(), " ")})
	}
	return found
}

// autoSaved is the prefix of the names of sessions that were saved without one.
const autoSaved = "_/"

// sessions returns the names of the sessions of a scope, or, if their prefix is typed, the ones saved without a name,
// the latest first.
func (c *Console) sessions(ctx context.Context, scope session.Scope, typed string) (found []Candidate) {
	store, err := c.App.Sessions()
	if err != nil {
		return nil
	}
	list, _ := store.List(ctx, scope)
	unnamed := strings.HasPrefix(typed, autoSaved)
	if unnamed {
		slices.SortStableFunc(list, func(a, b session.Meta) int { return strings.Compare(string(b.Alias), string(a.Alias)) })
	}
	for _, m := range list {
		switch {
		case m.Alias == "" || m.Alias.AutoSaved() != unnamed:
		case unnamed:
			found = append(found, Candidate{Value: autoSaved + string(m.Alias)})
		default:
			found = append(found, Candidate{Value: string(m.Alias)})
		}
	}
	return found
}

// completeAgent completes the name of an agent, then one of its sessions, and then its variables.
func completeAgent() completer {
	return func(c *Console, ctx context.Context, words []string) (found []Candidate) {
		if len(words) == 1 {
			list, _ := c.App.Agents.List()
			for _, e := range list {
				found = append(found, Candidate{Value: e.Name, Description: e.Description})
			}
			return found
		}
		of, err := c.App.Agents.Peek(words[0])
		if err != nil {
			return nil
		}
		if len(words) == 2 {
			found = c.sessions(ctx, c.App.SessionScope(of.Ref), words[1])
		}
		for _, v := range of.InForce.Variables {
			name := v.Name + "="
			if slices.ContainsFunc(words[1:len(words)-1], func(w string) bool { return strings.HasPrefix(w, name) }) {
				continue
			}
			about := text.CutRunes(strings.Join(strings.Fields(text.Printable(v.Description)), " "), 50)
			if v.Default != nil {
				about = strings.TrimSpace(about + " [" + *v.Default + "]")
			}
			found = append(found, Candidate{Value: name, Description: about})
		}
		return found
	}
}

// completeInstall completes what to install.
func completeInstall() completer {
	return func(_ *Console, _ context.Context, words []string) []Candidate {
		if len(words) > 1 {
			return nil
		}
		return append(candidatesOf(app.Categories()), Candidate{Value: "remote", Description: "a bundle from a Git repository", Space: true})
	}
}

// completeVault completes what to do with the vault, and then the name of a secret.
func completeVault() completer {
	return func(c *Console, ctx context.Context, words []string) (found []Candidate) {
		switch {
		case len(words) == 1:
			for _, verb := range []string{"add", "delete", "get", "list", "update"} {
				found = append(found, Candidate{Value: verb, Space: true})
			}
		case len(words) == 2 && words[0] != "add" && words[0] != "list":
			names, _ := c.App.Vault().List(ctx)
			found = candidatesOf(names)
		}
		return found
	}
}

// choices returns what can be added to a list with commas that is being typed: "all" if it is the first, and the choices that it
// does not have, by name.
func choices(typed string, list func() ([]app.Choice, error)) []Candidate {
	all, _ := list()
	slices.SortFunc(all, func(a, b app.Choice) int { return cmp.Compare(a.Name, b.Name) })
	var found []Candidate
	if !strings.Contains(typed, ",") {
		found = append(found, Candidate{Value: "all"})
	}
	for _, choice := range all {
		found = append(found, Candidate{Value: choice.Name, Description: choice.Description})
	}
	return unlistedCandidates(typed, found)
}

// unlistedCandidates returns the candidates that a list with commas does not have yet, each behind what it has.
func unlistedCandidates(typed string, candidates []Candidate) (found []Candidate) {
	kept := typed[:strings.LastIndexByte(typed, ',')+1]
	has := strings.Split(kept, ",")
	for _, candidate := range candidates {
		if !slices.Contains(has, candidate.Value) {
			candidate.Value = kept + candidate.Value
			found = append(found, candidate)
		}
	}
	return found
}

// completeFile completes the path of a source.
func completeFile() completer {
	return func(_ *Console, _ context.Context, words []string) []Candidate {
		if slices.Contains(words[:len(words)-1], "--") {
			return nil // the text has begun
		}
		if len(words) == 1 && words[0] != "" && strings.HasPrefix(noIgnore, words[0]) {
			return []Candidate{{Value: noIgnore}}
		}
		typed := strings.Join(words, " ")
		s := wordScanner{rest: typed, windows: runtime.GOOS == "windows"}
		word, raw := "", ""
		for {
			next, text, ok := s.next()
			if !ok {
				break
			}
			word, raw = next, text
			if s.rest != "" {
				word, raw = "", ""
			}
		}
		return pathsIn(word, raw, words[len(words)-1])
	}
}

// pathsIn returns the paths that a word can become. word is the meaning of raw, which was typed, and tail is what follows the last blank in raw.
func pathsIn(word, raw, tail string) (found []Candidate) {
	quote := ""
	if raw != "" && strings.Contains("'\"", raw[:1]) {
		quote = raw[:1]
		word = strings.TrimPrefix(word, quote) // it is open
	}
	if strings.HasPrefix(raw, "`") {
		return nil
	}
	kept := strings.TrimSuffix(raw, tail)
	for _, path := range paths(word) {
		text := quotePath(path.Value, quote)
		if rest, ok := strings.CutPrefix(text, kept); ok {
			found = append(found, Candidate{Value: rest})
		}
	}
	return found
}

// quotePath writes a path so that [Words] reads it: in quotes, or with backslashes in front of blanks. A directory has no
// closing quote, because the user continues to type in it.
func quotePath(path, quote string) string {
	if quote == "" && strings.ContainsAny(path, "'\"`") {
		quote = "'"
		if strings.Contains(path, "'") {
			quote = `"`
		}
	}
	switch {
	case quote != "" && strings.HasSuffix(path, "/"):
		return quote + path
	case quote != "":
		return quote + path + quote
	case runtime.GOOS == "windows" && strings.ContainsAny(path, separators):
		return `"` + path + `"`
	case runtime.GOOS == "windows":
		return path
	}
	return strings.NewReplacer(`\`, `\\`, " ", `\ `, "\t", "\\\t").Replace(path)
}
