package vault

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"loki/internal/base/fault"
	"loki/internal/base/value"
	"loki/internal/base/value/yamldoc"
)

// version is the form of the file that is written.
const version = 2

// document is the content of a vault file.
type document struct {
	path    string            // where it was read
	legacy  bool              // it is of the older form, whose secrets are envelopes
	key     string            // an armored age file; empty in the older form and without secrets
	secrets map[string]string // encrypted, by name
}

// parse reads a vault file. The error wraps [ErrUnreadable].
func parse(path string, src []byte) (*document, error) {
	doc, err := yamldoc.Parse(path, src, yamldoc.HideSource)
	if err != nil {
		return nil, unreadable(err)
	}
	d := &document{path: path, secrets: make(map[string]string)}
	root := doc.Root().Map()
	if n := root.Get("version"); n == nil || n.Kind() == yamldoc.String {
		// Not a number: it is a secret of that name in the older form.
		d.legacy = root.Len() > 0
		d.readSecrets(doc.Root())
		return d, unreadable(doc.Err())
	}
	form := 0
	if root.Int("version", &form, 0, 1<<30) && form != version {
		p := root.Get("version").Errorf("a vault of version %d, and this program reads version %d", form, version)
		p.Hint = "update Loki: loki --update"
		return nil, unreadable(doc.Err())
	}
	root.Str("key", &d.key)
	if n := root.Get("secrets"); n != nil && n.Kind() != yamldoc.Null {
		d.readSecrets(n)
	}
	if len(d.secrets) > 0 && d.key == "" {
		root.Require("key")
	}
	for _, p := range root.Done() { // it would be gone after the next change
		doc.Root().Errorf("line %d: %s", p.Pos.Line, p.Msg)
	}
	return d, unreadable(doc.Err())
}

func (d *document) readSecrets(n *yamldoc.Node) {
	for entry := range n.Map().All() {
		if stored, ok := entry.Node.Str(); ok {
			d.secrets[entry.Key] = stored
		}
	}
}

func unreadable(err error) error {
	if err == nil {
		return nil
	}
	f := problem(fault.Config, fmt.Errorf("%w: %w", ErrUnreadable, err), "")
	for _, p := range yamldoc.AsProblems(err) {
		if f.Hint = p.Hint; f.Hint != "" {
			return f
		}
	}
	return f.WithHint("restore the file from a copy; it was not changed")
}

const header = "# The secrets of Loki, encrypted. They are changed with --secret add, --secret update and\n" +
	"# --secret delete; names are sorted so that versions of this file can be compared.\n"

// text returns the file, with the secrets in the order of their names.
func (d *document) text() []byte {
	var b bytes.Buffer
	indent := ""
	if !d.legacy {
		b.WriteString(header)
		fmt.Fprintf(&b, "version: %d\n", version)
		if d.key != "" {
			b.WriteString("key: |\n")
			for line := range strings.Lines(d.key) {
				b.WriteString("  " + line)
			}
		}
		b.WriteString("secrets:\n")
		indent = "  "
	}
	for _, name := range slices.Sorted(maps.Keys(d.secrets)) {
		fmt.Fprintf(&b, "%s%s: %s\n", indent, quoteJSON(name), quoteJSON(d.secrets[name]))
	}
	return b.Bytes()
}

// quoteJSON returns s as a JSON string, which is also valid YAML.
func quoteJSON(s string) string {
	doc, err := value.Marshal(s)
	if err != nil {
		panic(err) // strings can be encoded
	}
	return string(doc)
}
