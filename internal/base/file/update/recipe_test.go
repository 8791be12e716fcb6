package update

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"text/template"

	"loki/internal/base/value/yamldoc"
)

// TestRecipe: a release that is made by .goreleaser.yaml is one that the program finds, verifies and unpacks.
func TestRecipe(t *testing.T) {
	t.Parallel()
	const file = "../../../../.goreleaser.yaml"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := yamldoc.Parse(file, text)
	if err != nil {
		t.Fatal(err)
	}
	at := func(pointer string) *yamldoc.Node {
		n := doc.Root().At(pointer)
		if n == nil {
			t.Fatalf("%s has no %s", file, pointer)
		}
		return n
	}
	str := func(pointer string) string {
		s, _ := at(pointer).Str()
		return s
	}

	name, err := template.New("").Parse(str("/archives/0/name_template"))
	if err != nil {
		t.Fatal(err)
	}
	targets, _ := at("/builds/0/targets").Strs()
	for _, target := range targets {
		parts := strings.Split(target, "_")
		var b strings.Builder
		if err := name.Execute(&b, map[string]string{"Os": parts[0], "Arch": parts[1]}); err != nil {
			t.Fatal(err)
		}
		want := archiveName(parts[0], parts[1])
		if base, _, _ := strings.Cut(want, ".tar.gz"); b.String() != strings.TrimSuffix(base, ".zip") {
			t.Errorf("%s: the archive is %q, but the program looks for %q", target, b.String(), want)
		}
	}
	if len(targets) < 6 {
		t.Errorf("only %v", targets)
	}
	if got := str("/checksum/name_template"); got != sumsName {
		t.Errorf("the checksums are in %s, but the program looks for %s", got, sumsName)
	}
	if got := str("/signs/0/signature"); got != "${artifact}"+strings.TrimPrefix(signatureName, sumsName) {
		t.Errorf("the signature is in %s", got)
	}
	sources := map[string]string{"app.Version": "../../../app/app.go", "base/file/update.builtinFeed": "update.go", "base/file/update.builtinKeys": "update.go"}
	for name, source := range sources {
		code, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		_, variable, _ := strings.Cut(name, ".")
		if !regexp.MustCompile(`(?m)^(var |\t)`+variable+` .*`).Match(code) || !strings.Contains(string(text), "loki/internal/"+name+"=") {
			t.Errorf("%s is not a variable that the linker sets", name)
		}
	}
}
