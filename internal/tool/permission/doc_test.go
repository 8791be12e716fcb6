package permission_test

import (
	"os"
	"strings"
	"testing"

	"loki/internal/base/value/yamldoc"
	"loki/internal/tool/permission"
)

// The examples of the user document are rules that can be read.
func TestDocument(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../../docs/permissions.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := strings.Split(string(data), "```yaml\n")[1:]
	if len(examples) < 2 {
		t.Fatalf("%d examples", len(examples))
	}
	for _, example := range examples {
		source, _, _ := strings.Cut(example, "```")
		doc, err := yamldoc.Parse("docs/permissions.md", []byte(source))
		if err != nil {
			t.Fatal(err)
		}
		rules, ok := permission.Read(doc.Root().Map().Get("permission"))
		if !ok || doc.Err() != nil || len(rules.List) == 0 {
			t.Errorf("%v, %+v", doc.Err(), rules)
		}
	}
}
