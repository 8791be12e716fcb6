package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"loki/internal/base/ask"
	"loki/internal/base/fault"
	"loki/internal/llm/catalog"
	"loki/internal/setup/config"
)

// part is something that Change offers to set up.
type part struct {
	label string // with the present value
	ask   func(ctx context.Context, cfg *config.Config) error
}

// Change asks what to set up in a configuration that there is, until the user is done. Each answer is written
// at once; all other lines of the file stay as they are. The error is one of the asker, or a [*fault.Error].
func Change(ctx context.Context, o Options) error {
	w := &wizard{Options: o}
	for {
		cfg, err := o.Load()
		if err != nil {
			return err
		}
		w.taken = nil
		keys := 0
		for _, c := range cfg.Clients {
			if c.Where != "" { // the others are of the environment
				w.taken = append(w.taken, c.Name)
			}
			if takesKey(c) {
				keys++
			}
		}
		parts := []part{
			{"Default model: " + cmp.Or(cfg.Model, "the first one"), w.changeModel},
			{"Add a provider; there is: " + cmp.Or(strings.Join(w.taken, ", "), "none"), w.addProvider},
		}
		if keys > 0 {
			parts = append(parts, part{"Store a key", w.changeKey})
		}
		parts = append(parts, part{"Editor keys: " + string(cfg.Keybindings), w.changeEditorKeys}, part{label: "Done"})
		labels := make([]string, len(parts))
		for i, p := range parts {
			labels[i] = p.label
		}
		answer, err := w.selectOne(ctx, "change", "What do you want to set up?", labels)
		if err != nil {
			return err
		}
		i := slices.Index(labels, answer)
		if i < 0 || parts[i].ask == nil {
			return nil
		}
		if err := parts[i].ask(ctx, cfg); err != nil && !errors.Is(err, errBack) {
			return err
		}
	}
}

// set writes a setting, and notes that a variable beats it.
func (w *wizard) set(ctx context.Context, key, value string) error {
	if err := config.Set(ctx, w.File, key, value); err != nil {
		return err
	}
	w.note(fmt.Sprintf("Saved %s: %s in %s", key, value, w.File))
	if variable := "LOKI_" + strings.ToUpper(key); w.getenv(variable) != "" {
		w.note(variable + " is set, and is what will be used.")
	}
	return nil
}

func (w *wizard) changeModel(ctx context.Context, cfg *config.Config) error {
	models := slices.Collect(cfg.Catalog(w.Known...).On(w.Today).Models(catalog.Chat))
	for i := range models {
		models[i].Name = models[i].ID()
	}
	labels := modelLabels(models)
	q := ask.Question{ID: "model", Kind: ask.Select, Text: "Which model is the default?", Options: labels}
	if i := slices.IndexFunc(models, func(m catalog.Model) bool { return m.Name == cfg.Model }); i >= 0 {
		q.Default, q.HasDefault = labels[i], true
	}
	answer, err := w.Asker.Ask(ctx, q)
	if err != nil {
		return err
	}
	i := slices.Index(labels, answer)
	if i < 0 {
		return fmt.Errorf("there is no model %q", answer)
	}
	return w.set(ctx, "model", models[i].Name)
}

func (w *wizard) addProvider(ctx context.Context, cfg *config.Config) error {
	d := draft{keeps: cfg.Model}
	if err := w.ask(ctx, &d); err != nil {
		return err
	}
	if err := config.AddClient(ctx, w.File, d.item()); err != nil {
		return err
	}
	w.note(fmt.Sprintf("Saved the provider %s in %s", d.name, w.File))
	if cfg.FromKeys {
		w.note("Keys in the environment make no providers any more, because the file lists one.")
	}
	if d.model != "" {
		if err := w.set(ctx, "model", d.model); err != nil {
			return err
		}
	}
	return w.saveKey(ctx, &d)
}

// saveKey writes where the password of the vault is, and shows it.
func (w *wizard) saveKey(ctx context.Context, d *draft) error {
	if d.keychain {
		if err := config.Set(ctx, w.File, "vault_keychain", true); err != nil {
			return err
		}
	}
	w.noteKey(d)
	return nil
}

// takesKey reports whether a client of the configuration file logs in with a key.
func takesKey(c *config.Client) bool {
	i := slices.IndexFunc(config.ClientTypes(), func(t config.ClientType) bool { return t.Name == c.Type })
	return c.Where != "" && i >= 0 && slices.Contains(config.ClientTypes()[i].Asks, "api_key")
}

func (w *wizard) changeKey(ctx context.Context, cfg *config.Config) error {
	var clients []*config.Client
	var labels []string
	for _, c := range cfg.Clients {
		if !takesKey(c) {
			continue
		}
		present := c.KeyPlace()
		if variable, set := w.variable(c.Name, "api_key"); set {
			present = variable
		}
		clients = append(clients, c)
		labels = append(labels, c.Name+": "+cmp.Or(present, "none"))
	}
	answer, err := w.selectOne(ctx, "client", "The key of which provider?", labels)
	if err != nil {
		return err
	}
	i := slices.Index(labels, answer)
	if i < 0 {
		return fmt.Errorf("there is no provider %q", answer)
	}
	c := clients[i]
	s := secret{}
	name, referred := strings.CutPrefix(c.KeyPlace(), config.InVault)
	s.name = name
	if !referred {
		s.name = secretName(c.Name, "api_key")
	}
	stored, err := w.Vault.List(ctx)
	if err != nil {
		return err
	}
	s.replaces = slices.Contains(stored, s.name)
	if s.text, err = w.checkedLine(ctx, ask.Secret, "api_key", "API key of "+c.Name, true, checkSecret); err != nil {
		return err
	}
	d := draft{secrets: []secret{s}}
	if err := w.keep(ctx, &d); err != nil {
		return err
	}
	if !referred {
		if err := config.SetInClient(ctx, w.File, c.Name, "api_key", "{{"+s.name+"}}"); err != nil {
			return fault.Wrap(fault.CodeOf(err), err, "the vault has %s now, but", s.name).WithHint("%s", fault.HintOf(err))
		}
	}
	if variable, set := w.variable(c.Name, "api_key"); set {
		w.note(variable + " is set, and is what will be used.")
	}
	return w.saveKey(ctx, &d)
}

func (w *wizard) changeEditorKeys(ctx context.Context, cfg *config.Config) error {
	answer, err := w.Asker.Ask(ctx, ask.Question{
		ID: "keybindings", Kind: ask.Select, Text: "Which keys does the line editor of the chat have?",
		Options: []string{string(config.Emacs), string(config.Vi)}, Default: string(cfg.Keybindings), HasDefault: true,
	})
	if err != nil {
		return err
	}
	return w.set(ctx, "keybindings", answer)
}
