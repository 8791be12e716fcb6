package yamldoc_test

import (
	"testing"

	"loki/internal/base/value"
	"loki/internal/base/value/yamldoc"
)

func TestWriterMembers(t *testing.T) {
	t.Parallel()
	const text = `{"a":"x","num":1,"f":2.0,"no":null,"on":"on","text":"one\ntwo\n","list":["p","a: b",{"k":"v","deep":["l\nm"]},["q"],[],{}],"map":{"x y":true,"empty":[]},"none":{}}`
	const want = `a: x
num: 1
f: 2.0
"no": null
"on": "on"
text: |
  one
  two
list:
  - p
  - "a: b"
  - k: v
    deep:
      - |-
        l
        m
  -
    - q
  - []
  - {}
map:
  x y: true
  empty: []
none: {}
`
	v, err := value.ParseJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var w yamldoc.Writer
	w.Members(0, v.AsObject())
	if w.String() != want {
		t.Errorf("got\n%s\nwant\n%s", w.String(), want)
	}
	doc, err := yamldoc.Parse("", []byte(w.String()))
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := doc.Root().Value(); !ok || !value.Equal(got, v) {
		t.Errorf("read back as %s", got)
	}
}
