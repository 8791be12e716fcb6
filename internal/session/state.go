package session

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"loki/internal/fault"
	"loki/internal/provider"
	"loki/internal/yamldoc"
)

// Encode returns st as a YAML document. Settings that are not set are left out.
func (st State) Encode() []byte {
	var w yamlWriter
	writeSettings(&w, &st.Settings)
	if st.Alias != "" {
		w.key(0, "aliases")
		w.b.WriteString("\n- ")
		w.scalar(2, string(st.Alias))
	}
	if st.Title != "" {
		w.pair(0, "title", st.Title)
	}
	if st.Summary != "" {
		w.pair(0, "summary", st.Summary)
	}
	if !st.Created.IsZero() {
		w.pair(0, "created", st.Created.UTC().Format(time.RFC3339))
	}
	if len(st.DataURLs) > 0 {
		w.key(0, "data_urls")
		w.b.WriteByte('\n')
		for _, hash := range slices.Sorted(maps.Keys(st.DataURLs)) {
			w.pair(2, hash, st.DataURLs[hash])
		}
	}
	return []byte(w.b.String())
}

// writeSettings writes the settings that are set, and the model always. If there are
// keys it writes no others.
func writeSettings(w *yamlWriter, s *Settings, keys ...string) {
	for _, f := range s.fields() {
		if len(keys) > 0 && !slices.Contains(keys, f.key) {
			continue
		}
		if v, ok := f.value(); ok || f.key == "model" {
			w.pair(0, f.key, v)
			continue
		}
		if list, ok := f.ptr.(*[]Variable); ok && len(*list) > 0 {
			w.key(0, f.key)
			w.b.WriteByte('\n')
			for _, v := range *list {
				w.pair(2, v.Name, v.Value)
			}
		}
	}
}

// value returns what a scalar setting is set to; ok is false if it is not set, or no
// scalar.
func (f field) value() (v any, ok bool) {
	switch p := f.ptr.(type) {
	case *string:
		return *p, *p != ""
	case *provider.Effort:
		return string(*p), *p != ""
	case **string:
		return deref(*p)
	case **float64:
		return deref(*p)
	case **bool:
		return deref(*p)
	case **int:
		return deref(*p)
	}
	return nil, false
}

func deref[T any](p *T) (v any, ok bool) {
	if p == nil {
		return nil, false
	}
	return *p, true
}

// maxInt is the largest number a setting may have.
const maxInt = 1 << 40

// DecodeState reads what [State.Encode] wrote, and perhaps someone edited. Unknown
// keys are ignored. file is the name for messages; the error is of code Config.
func DecodeState(file string, src []byte) (State, error) {
	doc, err := yamldoc.Parse(file, src)
	if err != nil {
		return State{}, badState(file, err)
	}
	m := doc.Root().Map()
	st := State{Settings: ReadSettings(m)}
	if aliases := m.List("aliases"); len(aliases) > 0 {
		if text, ok := aliases[0].Text(); ok {
			if st.Alias, err = ParseAlias(text); err != nil {
				aliases[0].Errorf("%s", err)
			}
		}
	}
	m.Text("title", &st.Title)
	m.Text("summary", &st.Summary)
	var created string
	if m.Text("created", &created) {
		if st.Created, err = time.Parse(time.RFC3339, created); err != nil {
			m.Get("created").Errorf("not a time: %s", created)
		}
	}
	st.DataURLs = ReadTexts(m.Map("data_urls"))
	if err := doc.Err(); err != nil {
		return State{}, badState(file, err)
	}
	return st, nil
}

func badState(file string, err error) error {
	return fault.Wrap(fault.Config, err, "the settings of a session cannot be read").
		WithHint("repair %s; the messages beside it are not affected", file)
}

// ReadSettings reads the settings among the keys of m.
func ReadSettings(m *yamldoc.Map) Settings {
	var s Settings
	for _, f := range s.fields() {
		f.read(m)
	}
	return s
}

// ReadTexts reads a mapping of texts; a nil one is nil.
func ReadTexts(m *yamldoc.Map) map[string]string {
	if m.Len() == 0 {
		return nil
	}
	texts := make(map[string]string, m.Len())
	for e := range m.All() {
		if text, ok := e.Node.Text(); ok {
			texts[e.Key] = text
		}
	}
	return texts
}

func (f field) read(m *yamldoc.Map) {
	switch p := f.ptr.(type) {
	case *string:
		m.Text(f.key, p)
	case *provider.Effort:
		readEffort(m, f.key, p)
	case **string:
		read := m.Text
		if strings.HasPrefix(f.key, "enabled_") {
			read = m.CommaList // other programs write lists
		}
		optional(read, f.key, p)
	case **float64:
		optional(m.Float, f.key, p)
	case **bool:
		optional(m.Bool, f.key, p)
	case **int:
		optional(func(key string, n *int) bool { return m.Int(key, n, 0, maxInt) }, f.key, p)
	case *[]Variable:
		for e := range m.Map(f.key).All() {
			if text, ok := e.Node.Text(); ok {
				*p = append(*p, Variable{e.Key, text})
			}
		}
	default:
		panic(fmt.Sprintf("session: a setting of type %T", f.ptr))
	}
}

func readEffort(m *yamldoc.Map, key string, dst *provider.Effort) {
	var text string
	if !m.Text(key, &text) {
		return
	}
	if *dst = provider.Effort(text); !dst.Valid() {
		m.Get(key).Errorf("want %s, found %q", provider.EffortNames(), text)
	}
}

func optional[T any](read func(string, *T) bool, key string, dst **T) {
	var v T
	if read(key, &v) {
		*dst = &v
	}
}
