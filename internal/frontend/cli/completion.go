package cli

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"loki/assets"
	"loki/docs"
	"loki/internal/agent/bundle/remote"
	"loki/internal/app"
	"loki/internal/base/ask"
	"loki/internal/base/process/environ"
	"loki/internal/frontend/command/completion"
	"loki/internal/knowledge/input"
	"loki/internal/knowledge/rag"
	"loki/internal/llm/catalog"
	"loki/internal/workflow/graph"
)

// Values returns the values that the flag may have, nil for any.
func (o *once) Values() []string { return o.values }

// printCompletions prints the script that completes options in a shell.
func (c *command) printCompletions(context.Context) error {
	shell, err := completion.ParseShell(c.opts.value)
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(c.Out, completion.Static(shell, completionFlags(newCommand(new(options), nil).Flags())))
	return err
}

// printIntegration prints the script that binds a key of a shell to this program.
func (c *command) printIntegration(context.Context) error {
	shell, err := completion.ParseShell(c.opts.value)
	if err != nil {
		return err
	}
	script, err := fs.ReadFile(assets.Shell, string(shell))
	if err == nil {
		_, err = c.Out.Write(script)
	}
	return err
}

// completionFlags returns what completion has to know of the flags.
func completionFlags(set *pflag.FlagSet) []completion.Flag {
	var two []string
	set.VisitAll(func(f *pflag.Flag) {
		if takesTwo(f) {
			two = append(two, f.Name)
		}
	})
	return completion.Flags(set, two...)
}

// complete does what the variable COMPLETE asks for; ok is false if it asks for nothing.
// Without arguments it prints the script that registers the program with a shell. Behind
// "--" are the words to complete, which never fails: whatever goes wrong, there are no
// candidates.
func (c *command) complete(ctx context.Context, flags *pflag.FlagSet, args []string) (ok bool, err error) {
	name := environ.Get(c.environ, completion.Variable)
	if name == "" || name == "0" || len(args) > 0 && args[0] != "--" {
		return false, nil
	}
	shell, err := completion.ParseShell(name)
	if len(args) == 0 {
		script := ""
		if err == nil {
			script, err = completion.Registration(shell)
		}
		if err == nil {
			_, err = fmt.Fprint(c.Out, script)
		}
		return true, err
	}
	if err != nil || len(args) == 1 {
		return true, nil
	}
	words := completion.Words(shell, args[1:])
	candidates := completion.Complete(completionFlags(flags), words, c.sources(ctx))
	_ = completion.Print(c.Out, shell, args[len(args)-1], candidates) // a shell that does not listen needs no answer
	return true, nil
}

// sources returns the user's own names of things. They ask, start and install nothing. Names that
// cannot be read are left out.
func (c *command) sources(ctx context.Context) map[string]completion.Source {
	names := func(list func(a *app.App, given map[string]string) ([]string, error)) completion.Source {
		return func(_ string, given map[string]string) (found []completion.Candidate) {
			a := c.quietApp()
			if a == nil {
				return nil
			}
			all, _ := list(a, given) // what could be listed is better than nothing
			for _, name := range all {
				found = append(found, completion.Candidate{Value: name})
			}
			return found
		}
	}
	verb := func(flag string, named ...completion.Source) completion.Source {
		return func(prefix string, given map[string]string) (found []completion.Candidate) {
			if given[flag] != "" {
				for _, source := range named {
					found = append(found, source(prefix, given)...)
				}
				return found
			}
			for _, word := range verbWords(flag) {
				found = append(found, completion.Candidate{Value: word})
			}
			return found
		}
	}
	secrets := names(func(a *app.App, _ map[string]string) ([]string, error) { return a.Vault().List(ctx) })
	bundles := names(func(a *app.App, _ map[string]string) ([]string, error) {
		records, err := a.Bundles(ask.Unavailable{}, func(string) {}).List()
		return remote.Names(records), err
	})
	agents := names(func(a *app.App, _ map[string]string) ([]string, error) { return a.Agents.Names() })
	return map[string]completion.Source{
		"MODEL": func(string, map[string]string) (found []completion.Candidate) {
			a := c.quietApp()
			if a == nil {
				return nil
			}
			for m := range a.Catalog.Models(catalog.Chat) {
				found = append(found, completion.Candidate{Value: m.ID(), Description: strings.TrimRight(m.Description(), " ")})
			}
			return found
		},
		"AGENT": func(prefix string, given map[string]string) []completion.Candidate {
			if strings.ContainsRune(prefix, '/') || strings.ContainsRune(prefix, filepath.Separator) {
				return completion.Files(prefix, true)
			}
			return agents(prefix, given)
		},
		"NODE": func(_ string, given map[string]string) (found []completion.Candidate) {
			for _, n := range c.graphOf(given["agent"]).Nodes {
				found = append(found, completion.Candidate{Value: n.ID, Description: string(n.Type)})
			}
			return found
		},
		"KEY": func(_ string, given map[string]string) (found []completion.Candidate) {
			for _, key := range c.graphOf(given["agent"]).Keys() {
				found = append(found, completion.Candidate{Value: key})
			}
			return found
		},
		"DIR": func(prefix string, _ map[string]string) []completion.Candidate { return completion.Files(prefix, true) },
		"NAME VALUE": func(_ string, given map[string]string) []completion.Candidate {
			return c.variableCandidates(given["agent"], given["agent-variable"])
		},
		"PAGE": func(string, map[string]string) (found []completion.Candidate) {
			for _, p := range docs.Pages() {
				found = append(found, completion.Candidate{Value: p.Name, Description: p.Line})
			}
			return found
		},
		"ROLE": names(func(a *app.App, _ map[string]string) ([]string, error) { return a.Roles().Names() }),
		"SESSION": names(func(_ *app.App, given map[string]string) ([]string, error) {
			c.opts.agent = given["agent"]
			return c.sessionNames(ctx, mostUnnamed)
		}),
		"SESSION NAME": names(func(_ *app.App, given map[string]string) ([]string, error) {
			if given["rename-session"] != "" {
				return nil, nil
			}
			c.opts.agent = given["agent"]
			return c.sessionNames(ctx, mostUnnamed)
		}),
		"RAG": names(func(a *app.App, _ map[string]string) ([]string, error) { return a.Knowledge().Library().Names() }),
		"SOURCE": func(prefix string, given map[string]string) []completion.Candidate {
			return c.sourceCandidates(ctx, given["rag"], filepath.IsAbs(prefix))
		},
		"KEY=VALUE,...": func(string, map[string]string) (found []completion.Candidate) {
			for _, key := range rag.Keys() {
				found = append(found, completion.Candidate{Value: key + "="})
			}
			return found
		},
		"SECRET":      secrets,
		"BUNDLE":      bundles,
		"VERB SECRET": verb("secret", secrets),
		"VERB BUNDLE": verb("bundle", bundles),
		"VERB KEY":    verb("key"),
		"MACRO":       names(func(a *app.App, _ map[string]string) ([]string, error) { return a.Macros().Names() }),
		"CLIENT": names(func(a *app.App, _ map[string]string) (clients []string, _ error) {
			for _, cl := range a.Config.Clients {
				clients = append(clients, cl.Name)
			}
			return clients, nil
		}),
	}
}

// sourceCandidates returns the sources of the knowledge base called name, unless it is in a database.
// Paths below the working directory are relative to it, unless absolute ones are wanted.
func (c *command) sourceCandidates(ctx context.Context, name string, absolute bool) (found []completion.Candidate) {
	a := c.quietApp()
	if a == nil || name == "" || a.Config.RAGStore != nil {
		return nil
	}
	file, err := a.Knowledge().Library().File(name)
	if err != nil {
		return nil
	}
	stats, err := a.Knowledge().Stats(ctx, name, file)
	if err != nil {
		return nil
	}
	dir, _ := os.Getwd()
	for _, source := range stats.Settings.Documents {
		if rel, err := filepath.Rel(dir, source); err == nil && !absolute && filepath.IsAbs(source) && filepath.IsLocal(rel) {
			source = rel
		}
		if input.WithoutPassword(source) == source { // not one for a screen
			found = append(found, completion.Candidate{Value: source})
		}
	}
	return found
}

// quietApp returns the app, or nil if the configuration cannot be used. It warns of nothing.
func (c *command) quietApp() *app.App {
	if c.app == nil {
		a, err := app.New(app.Options{Environ: c.environ})
		if err != nil {
			return nil
		}
		c.app = a
	}
	return c.app
}

// graphOf returns the graph of an agent, an empty one if there is none.
func (c *command) graphOf(agent string) *graph.Graph {
	if a := c.quietApp(); a != nil && agent != "" {
		if of, err := a.Agents.Peek(agent); err == nil && of.Graph != nil {
			return of.Graph
		}
	}
	return new(graph.Graph)
}

// variableCandidates returns the variables of an agent or, with a name, the default of that one.
func (c *command) variableCandidates(agent, name string) (found []completion.Candidate) {
	a := c.quietApp()
	if a == nil || agent == "" {
		return nil
	}
	of, err := a.Agents.Peek(agent)
	if err != nil {
		return nil
	}
	for _, v := range of.InForce.Variables {
		switch {
		case name == "":
			found = append(found, completion.Candidate{Value: v.Name, Description: firstWords(v.Description, mostColumns)})
		case name == v.Name && v.Default != nil:
			found = append(found, completion.Candidate{Value: *v.Default})
		}
	}
	return found
}
