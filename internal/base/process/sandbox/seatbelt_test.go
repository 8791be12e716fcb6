package sandbox

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"loki/internal/base/text/pattern"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestSeatbelt(t *testing.T) {
	t.Parallel()
	later := []place{{path: ".git/hooks"}, {path: ".git/config"}, {path: ".envrc"}}
	const workspace, temp = "/Users/u/src/my \"project\"", "/private/var/folders/x/T/loki-sandbox-501/1"
	for _, level := range []Level{Read, Write, Network} {
		l := &limits{
			level: level, workspace: workspace, read: []string{"/usr", "/System", workspace}, closed: map[string]string{"/Users/u/.ssh": "", "/Users/u/.aws": ""},
			protected: map[string]string{}, needs: Needs{Read: []string{"/Users/u/.config/loki/tools"}, Write: []string{"/private/tmp/result"}},
		}
		port := 0
		if level != Read {
			l.write, l.protected = []string{workspace}, map[string]string{workspace + "/.envrc": ""}
			l.held = map[string]bool{"/Users": true, workspace: true, workspace + "/top": true}
		}
		if level == Network {
			port = 54321
		}
		got := seatbelt(l, temp, later, patterns(workspace+"/**/.env"), port)
		file := filepath.Join("testdata", "seatbelt-"+string(level)+".sb")
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(want), got); d != "" {
			t.Errorf("%s (-want +got):\n%s", level, d)
		}
		if open, closed := strings.Count(got, "\n("), strings.Count(got, ")\n"); open == 0 || closed == 0 || strings.Count(strings.ReplaceAll(got, `\"`, ""), `"`)%2 != 0 {
			t.Errorf("%s: quotes are not closed:\n%s", level, got)
		}
	}
}

// patterns returns what texts mean; they are patterns.
func patterns(texts ...string) (all []pattern.Branch) {
	for _, text := range texts {
		p, _ := pattern.Compile(text)
		all = append(all, p.Branches()...)
	}
	return all
}

func TestPathExpression(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ pattern, matches, not string }{
		{"/w/**/.env", "/w/.env /w/a/.env /w/a/b/.env", "/w/.envrc /w/a.env /x/.env"},
		{"/w/*.pem", "/w/a.pem /w/.pem", "/w/a/b.pem /w/aXpem"},
		{"/w/**", "/w/a /w/a/b", "/v/a"},
		{"/w/secret?", "/w/secret1", "/w/secret /w/secret12 /w/secret/"},
		{"/w/{a,b*}.key", "/w/a.key /w/bc.key", "/w/c.key"},
		{"/w/[!a-c].x", "/w/d.x", "/w/a.x"},
		{`/w/\*.x`, "/w/*.x", "/w/a.x"},
		{"/w/é/*.É", "/w/é/x.É /w/É/x.é", "/w/e/x.E"},
		{"/w/a(b)+", "/w/a(b)+", "/w/ab /w/abb"},
	} {
		var e []string
		for _, b := range patterns(tt.pattern) {
			e = append(e, pathExpression(b))
		}
		for path := range strings.FieldsSeq(tt.matches) {
			if !regexp.MustCompile("^(" + strings.Join(e, "|") + ")$").MatchString(path) {
				t.Errorf("%s does not match %s", tt.pattern, path)
			}
		}
		for path := range strings.FieldsSeq(tt.not) {
			if regexp.MustCompile("^(" + strings.Join(e, "|") + ")$").MatchString(path) {
				t.Errorf("%s matches %s", tt.pattern, path)
			}
		}
	}
}

func TestLaterFilters(t *testing.T) {
	t.Parallel()
	expressions := func(filters []string) (all []*regexp.Regexp) {
		for _, f := range filters {
			text, ok := strings.CutPrefix(strings.TrimSuffix(f, `")`), `(regex #"`)
			if !ok {
				t.Fatal(f)
			}
			all = append(all, regexp.MustCompile(text))
		}
		return all
	}
	places, around := laterFilters("/w", laterPlaces)
	matches := func(filters []string, path string) bool {
		return slices.ContainsFunc(expressions(filters), func(e *regexp.Regexp) bool { return e.MatchString(path) })
	}
	for path, want := range map[string]bool{
		"/w/.envrc": true, "/w/.ENVRC": true, "/w/a/.envrc": true, "/w/.git/hooks": true, "/w/.git/hooks/pre-commit": true, "/w/a/b/.git/config": true, "/w/.git": false, "/w/.github": false,
		"/w/.github/workflows/x.yml": true, "/w/main.go": false, "/w/.envrc2": false, "/w/.git/index": false, "/w/.git/objects/aa/bb": false, "/w/.github/README": false, "/v/.envrc": false, "/w/hooks": false,
	} {
		if got := matches(places, path); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
	for path, want := range map[string]bool{"/w/.git": true, "/w/a/.git": true, "/w/.github": true, "/w/.github/x": false, "/w": false, "/w/src": false} {
		if got := matches(around, path); got != want {
			t.Errorf("around %s: %v", path, got)
		}
	}
}
