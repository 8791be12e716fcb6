package rag

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"loki/internal/base/fault"
	"loki/internal/base/value/yamldoc"
)

// Change is what a user says of the settings of a knowledge base. The zero value changes nothing.
type Change struct {
	to   Settings        // the new values
	said map[string]bool // the keys with a new value; false for those with an empty one

	// Withdrawn are the keys that were said and mean nothing anymore.
	Withdrawn []string
}

// ParseChange parses a text KEY=VALUE[,KEY=VALUE...]. An empty value, or null, is the default. The last
// value of a key counts. The error has code Usage.
func ParseChange(pairs string) (Change, error) {
	c := Change{said: make(map[string]bool)}
	list := keys()
	for pair := range strings.SplitSeq(pairs, ",") {
		name, text, ok := strings.Cut(pair, "=")
		if name, text = strings.TrimSpace(name), strings.TrimSpace(text); !ok || name == "" {
			return Change{}, fault.New(fault.Usage, "%q is not a setting", pair).WithHint("write KEY=VALUE, such as top_k=8")
		}
		i := slices.IndexFunc(list, func(k key) bool { return k.name == name })
		if slices.Contains(withdrawn, name) {
			c.Withdrawn = append(c.Withdrawn, name)
			continue
		}
		if i < 0 {
			return Change{}, unknown(name)
		}
		if text == "null" {
			text = ""
		}
		if err := parse(list[i].field(&c.to), text); err != nil {
			return Change{}, fault.New(fault.Usage, "%s: %v", name, err)
		}
		if err := CheckChunkSize(c.to.ChunkSize); name == "chunk_size" && text != "" && err != nil {
			return Change{}, fault.New(fault.Usage, "%v", err)
		}
		if c.said[name] = text != ""; !c.said[name] {
			assign(list[i].field(&c.to), list[i].field(&Settings{TopK: DefaultTopK}))
		}
	}
	return c, nil
}

// New returns what the change says of a knowledge base that does not exist yet, and the change that
// sets it, also where it is 0, once the other settings are known. Defaults are left to those who know
// them: what is not said is zero, and an overlap is -1.
func (c Change) New() (Settings, Change) {
	s := Settings{ChunkOverlap: -1}
	rest := Change{to: c.to, said: make(map[string]bool)}
	for _, k := range keys() {
		if c.said[k.name] {
			assign(k.field(&s), k.field(&c.to))
			rest.said[k.name] = true
		}
	}
	return s, rest
}

// Set returns s with a change. An empty embedding_model is the one that models has for an empty id, an
// empty chunk_size what suits the model, and an empty chunk_overlap what suits the size. An overlap that
// suits the size also does after a change of the size only. Models that are named have to exist, and are
// stored by their full ids. The error has code Config if the settings do not fit together, or is that of
// models.
func (s Settings) Set(ctx context.Context, models Models, c Change) (Settings, error) {
	said, changed := c.said["chunk_overlap"]
	derived := changed && !said || !changed && s.ChunkOverlap == DefaultOverlap(s.ChunkSize)
	for _, k := range keys() {
		if _, changed := c.said[k.name]; changed {
			assign(k.field(&s), k.field(&c.to))
		}
	}
	said, changed = c.said["chunk_size"]
	suits := changed && !said
	if _, other := c.said["embedding_model"]; other || suits {
		m, err := models.Embedder(ctx, s.EmbeddingModel)
		if err != nil {
			return Settings{}, err
		}
		if !m.StandsIn || s.EmbeddingModel == "" {
			s.EmbeddingModel = m.ID
		}
		if suits {
			s.ChunkSize = Defaults(m).ChunkSize
		}
	}
	if c.said["reranker_model"] {
		m, err := models.Reranker(ctx, s.RerankerModel)
		if err != nil {
			return Settings{}, err
		}
		s.RerankerModel = m.ID
	}
	if derived {
		s.ChunkOverlap = DefaultOverlap(s.ChunkSize)
	}
	return s, s.Validate()
}

func unknown(name string) error {
	names := Keys()
	err := fault.New(fault.Usage, "there is no setting %q of a knowledge base", name)
	if near := yamldoc.Nearest(name, names); near != "" {
		return err.WithHint("did you mean %s?", near)
	}
	return err.WithHint("the settings are %s", strings.Join(names, ", "))
}

// parse reads text into the field at to, unless the text is empty.
func parse(to any, text string) error {
	if text == "" {
		return nil
	}
	switch to := to.(type) {
	case *string:
		*to = text
	case *int:
		n, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("%q is not a whole number", text)
		}
		*to = n
	case *float64:
		x, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsInf(x, 0) || math.IsNaN(x) {
			return fmt.Errorf("%q is not a number", text)
		}
		*to = x
	}
	return nil
}

// assign sets the field at to to the value at from, which has the same type.
func assign(to, from any) { reflect.ValueOf(to).Elem().Set(reflect.ValueOf(from).Elem()) }
