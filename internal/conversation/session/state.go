package session

import (
	"maps"
	"slices"
	"time"

	"loki/internal/agent/role"
	"loki/internal/base/fault"
	"loki/internal/base/value/yamldoc"
)

// Encode returns st as a YAML document. Settings that are not set are left out.
func (st State) Encode() []byte {
	var w yamldoc.Writer
	writeSettings(&w, &st.Settings)
	if st.Alias != "" {
		w.Key(0, "aliases")
		w.WriteString("\n- ")
		w.Scalar(2, string(st.Alias))
	}
	if st.Title != "" {
		w.Pair(0, "title", st.Title)
	}
	if st.Summary != "" {
		w.Pair(0, "summary", st.Summary)
	}
	if !st.Created.IsZero() {
		w.Pair(0, "created", st.Created.UTC().Format(time.RFC3339))
	}
	if st.Unnamed {
		w.Pair(0, "unnamed", true)
	}
	if len(st.DataURLs) > 0 {
		w.Key(0, "data_urls")
		w.WriteByte('\n')
		for _, hash := range slices.Sorted(maps.Keys(st.DataURLs)) {
			w.Pair(2, hash, st.DataURLs[hash])
		}
	}
	return []byte(w.String())
}

// writeSettings writes the settings that are set, and the model always. If there are
// keys it writes no others.
func writeSettings(w *yamldoc.Writer, s *Settings, keys ...string) {
	for _, f := range s.list() {
		v, set := f.Value()
		if len(keys) > 0 && !slices.Contains(keys, f.Key) || !set && f.Key != "model" {
			continue
		}
		variables, ok := v.([]Variable)
		if !ok {
			w.Pair(0, f.Key, v)
			continue
		}
		for i, v := range variables {
			if i == 0 {
				w.Key(0, f.Key)
				w.WriteByte('\n')
			}
			w.Pair(2, v.Name, v.Value)
		}
	}
}

// DecodeState reads what [State.Encode] wrote, and perhaps someone edited. Unknown
// keys are ignored. file is the name for messages; the error has code Config.
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
	m.Bool("unnamed", &st.Unnamed)
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
	for _, f := range s.list() {
		variables, ok := f.Ptr.(*[]Variable)
		if !ok {
			role.ReadSetting(m, f)
			continue
		}
		for e := range m.Map(f.Key).All() {
			if text, ok := e.Node.Text(); ok {
				*variables = append(*variables, Variable{e.Key, text})
			}
		}
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
