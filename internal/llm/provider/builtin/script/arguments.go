package script

import (
	"regexp"

	"loki/internal/base/value"
	"loki/internal/base/value/yamldoc"
)

// readArguments reads the arguments of a call: a mapping becomes a JSON object with
// its keys in order and its strings as templates, a text is sent as it stands.
func readArguments(n *yamldoc.Node, re *regexp.Regexp) []jsonPiece {
	w := jsonWriter{re: re}
	switch n.Kind() {
	case yamldoc.String:
		w.raw(n.Literal())
	case yamldoc.Mapping:
		w.add(n)
	case yamldoc.Null: // reported as a key without a value
	default:
		n.Errorf("expected a mapping or a string, found %s", n.Describe())
	}
	w.flush()
	return w.pieces
}

// jsonWriter turns YAML into JSON with places to fill in.
type jsonWriter struct {
	re     *regexp.Regexp
	pieces []jsonPiece
	json   []byte // raw JSON behind the last piece
}

// add appends the JSON of n.
func (w *jsonWriter) add(n *yamldoc.Node) {
	switch n.Kind() {
	case yamldoc.Mapping:
		separator := "{"
		for e := range n.Map().All() {
			w.raw(separator)
			w.json = append(value.Of(e.Key).AppendJSON(w.json), ':')
			w.add(e.Node)
			separator = ","
		}
		if separator == "{" {
			w.raw("{")
		}
		w.raw("}")
	case yamldoc.List:
		list, _ := n.List()
		w.raw("[")
		for i, item := range list {
			if i > 0 {
				w.raw(",")
			}
			w.add(item)
		}
		w.raw("]")
	case yamldoc.String:
		w.addText(n)
	default:
		if v, ok := n.Value(); ok {
			w.json = v.AppendJSON(w.json)
		}
	}
}

func (w *jsonWriter) addText(n *yamldoc.Node) {
	t, err := parseTemplate(n.Literal(), w.re)
	if err != nil {
		n.Errorf("%v", err)
	}
	if t == nil { // an empty text has no parts, and nil means raw
		w.raw(`""`)
		return
	}
	w.flush()
	w.pieces = append(w.pieces, jsonPiece{value: t})
}

func (w *jsonWriter) raw(s string) { w.json = append(w.json, s...) }

// flush makes a piece of the raw JSON.
func (w *jsonWriter) flush() {
	if len(w.json) > 0 {
		w.pieces = append(w.pieces, jsonPiece{raw: string(w.json)})
		w.json = w.json[:0]
	}
}
