package setup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"loki/internal/base/fault"
	"loki/internal/base/file/atomicfile"
	"loki/internal/base/file/vault"
	"loki/internal/base/value/yamldoc"
	"loki/internal/llm/catalog"
)

// draft is the configuration to be.
type draft struct {
	typ, name string            // of the client
	settings  []setting         // of the client, in order
	secrets   []secret          // still to be put into the vault
	known     map[string]string // settings as they will be in force, secret ones too
	models    []catalog.Model   // that the client lists; none for those of the catalog
	model     string            // id of the default model, or empty
	keeps     string            // id of the default model that there is; the user may keep it
	place     vault.Place       // of the vault's password, if there are secrets
	keychain  bool              // the configuration has to name that place
}

// setting is one line of the client. Those of its mapping oauth begin with "oauth." and
// stand together.
type setting struct{ name, value string }

// secret goes to the vault.
type secret struct {
	name, text string
	replaces   bool // there is one of that name
}

// refer adds a setting whose value is a secret of the vault.
func (d *draft) refer(name, secret string) {
	d.settings = append(d.settings, setting{name: name, value: "{{" + secret + "}}"})
}

// keep puts the secrets into the vault, which gets a password first if it has none.
func (w *wizard) keep(ctx context.Context, d *draft) error {
	if len(d.secrets) == 0 {
		return nil
	}
	var err error
	if d.place, err = w.Vault.CreatePassword(ctx, w.Asker, w.Keychain); err != nil {
		return err
	}
	d.keychain = w.Keychain && d.place.Keychain
	for _, s := range d.secrets {
		store := w.Vault.Add
		if s.replaces {
			store = w.Vault.Update
		}
		if err := store(ctx, s.name, s.text); err != nil {
			return err
		}
	}
	return nil
}

// noteKey shows where the keys are.
func (w *wizard) noteKey(d *draft) {
	if len(d.secrets) > 0 {
		w.note(fmt.Sprintf("The key is encrypted in %s; %s has the password that opens it.", w.VaultFile, d.place))
	}
}

// yaml returns the text of the configuration file.
func (d *draft) yaml() string {
	var b strings.Builder
	b.WriteString("# Configuration of Loki. All settings: loki --docs settings. Those in force: loki --info\n\n")
	if d.model == "" {
		b.WriteString("# model: CLIENT:MODEL               # used unless another one is named\n")
	}
	b.WriteString(d.top())
	b.WriteString(`
stream: true                       # show answers while they arrive
save: true                         # keep answers outside sessions in messages.md
keybindings: emacs                 # or vi
wrap: auto                         # at the width of the terminal; no, or a number of columns
wrap_code: false

function_calling_support: true
enabled_tools: null                # tools that models are offered by default; all for every tool
mcp_server_support: true
enabled_mcp_servers: null

highlight: true                    # colors in answers
# theme: light                     # or dark; without it, the terminal is asked

`)
	b.WriteString(d.client())
	return b.String()
}

// essentials returns the text of a configuration that has no more than a model and a client.
func (d *draft) essentials() string { return d.top() + d.client() }

// top returns the keys that say which model is used and where the password of the vault is.
func (d *draft) top() string {
	var b strings.Builder
	if d.model != "" {
		fmt.Fprintf(&b, "model: %s   # used unless another one is named\n", scalar(d.model))
	}
	if d.keychain {
		b.WriteString("vault_keychain: true   # has the password of the vault, where the keys are\n")
	}
	return b.String()
}

// client returns the key clients.
func (d *draft) client() string {
	var b strings.Builder
	b.WriteString("clients:\n")
	fmt.Fprintf(&b, "  - type: %s\n", scalar(d.typ))
	if d.name != d.typ {
		fmt.Fprintf(&b, "    name: %s\n", scalar(d.name))
	}
	inOAuth := false
	for _, s := range d.settings {
		name, note := s.name, ""
		if nested, ok := strings.CutPrefix(s.name, "oauth."); ok {
			if !inOAuth {
				b.WriteString("    oauth:\n")
			}
			inOAuth, name = true, "  "+nested
		}
		if strings.HasPrefix(s.value, "{{") {
			note = "   # a secret of the vault"
		}
		fmt.Fprintf(&b, "    %s: %s%s\n", name, scalar(s.value), note)
	}
	if len(d.models) > 0 {
		b.WriteString("    models:\n")
	}
	for _, m := range d.models {
		fmt.Fprintf(&b, "      - name: %s\n", scalar(m.Name))
		if m.Type != catalog.Chat {
			fmt.Fprintf(&b, "        type: %s\n", m.Type)
		}
		if m.SupportsFunctionCalling {
			b.WriteString("        supports_function_calling: true\n")
		}
		if m.SupportsVision {
			b.WriteString("        supports_vision: true\n")
		}
		if m.Type == catalog.Embedding {
			fmt.Fprintf(&b, "        default_chunk_size: %d\n        max_batch_size: %d\n", m.DefaultChunkSize, m.MaxBatchSize)
		}
	}
	return b.String()
}

// item returns the lines of the client, as an item of a list.
func (d *draft) item() []string {
	var lines []string
	for line := range strings.SplitSeq(strings.TrimSpace(d.client()), "\n") {
		lines = append(lines, strings.TrimPrefix(line, "  "))
	}
	return lines[1:] // without the key of the list
}

// scalar writes a text as a scalar of YAML.
func scalar(s string) string {
	var w yamldoc.Writer
	w.Scalar(0, s)
	return strings.TrimSuffix(w.String(), "\n")
}

// Extends reports whether a configuration file with this text can be given a model and a
// client by adding lines at its end: it has neither, and is not a mapping in braces.
func Extends(text []byte) bool {
	doc, err := yamldoc.Parse("", text, yamldoc.HideSource)
	if err != nil || doc.Root().Kind() != yamldoc.Null && doc.Root().Kind() != yamldoc.Mapping {
		return false
	}
	if doc.Root().Kind() == yamldoc.Mapping {
		if m := doc.Root().Map(); m.Has("clients") || m.Has("model") || m.Has("vault_password_file") {
			return false
		}
	}
	_, err = yamldoc.Parse("", []byte(string(text)+"\nmodel: m\nclients: []\n"), yamldoc.HideSource)
	return err == nil
}

// extend adds lines to a configuration file, which must still have the text present.
func extend(file string, present []byte, lines string) error {
	now, err := os.ReadFile(file)
	if err == nil && !bytes.Equal(now, present) {
		err = fmt.Errorf("%s has changed in the meantime", file)
	}
	if err == nil {
		if n := len(now); n > 0 && now[n-1] != '\n' {
			lines = "\n" + lines
		}
		err = atomicfile.Write(file, append(now, lines...), atomicfile.Options{})
	}
	if err != nil {
		return fault.Wrap(fault.Config, err, "adding to the configuration")
	}
	return nil
}

// write makes the configuration file, readable for the user alone. It never writes over
// another one.
func write(file, text string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return fault.Wrap(fault.Config, err, "writing the configuration")
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return existsAlready(file)
	}
	if err != nil {
		return fault.Wrap(fault.Config, err, "writing the configuration")
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		os.Remove(file) // half of it would be worse than none
		return fault.Wrap(fault.Config, err, "writing the configuration")
	}
	return nil
}
