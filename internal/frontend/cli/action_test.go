package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestActionsNameFlags: what the tables of flags and actions name is a flag.
func TestActionsNameFlags(t *testing.T) {
	flags := newCommand(&options{}, func(*cobra.Command) error { return nil }).Flags()
	known := func(where string, names ...string) {
		for _, name := range names {
			if flags.Lookup(name) == nil {
				t.Errorf("%s: there is no flag --%s", where, name)
			}
		}
	}
	for _, s := range new(options).sections() {
		for _, f := range s.flags() {
			known("flag "+f.name, f.with...)
			known("flag "+f.name, f.not...)
		}
	}
	all := actions()
	for i, a := range all {
		if last := i == len(all)-1; (a.flag == "") != last {
			t.Errorf("action %d, %q: only the last needs no flag", i, a.flag)
		} else if !last {
			known("action", a.flag)
		}
		known("action "+a.flag, a.refuses...)
		if (a.do == nil) == (a.work == nil) {
			t.Errorf("action %q needs one of do and work", a.flag)
		}
	}
}

// TestPageHasAllOptions: docs/cli.md names each option of --help all.
func TestPageHasAllOptions(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "cli.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range new(options).all() {
		if !regexp.MustCompile(regexp.QuoteMeta(flagText(f.name)) + "[^a-z-]").Match(page) {
			t.Errorf("docs/cli.md does not have %s", flagText(f.name))
		}
	}
}

// TestActionsAtServer: what a server means for an action is decided, and the page says it.
func TestActionsAtServer(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "cli.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n#### The command line as a client\n")
	section, _, _ = strings.Cut(section, "\n### ")
	works, refused, ok := strings.Cut(section, "Other options are errors with `--server`.")
	if !ok {
		t.Fatal("the page does not say what does not work with a server")
	}
	flags := newCommand(&options{}, func(*cobra.Command) error { return nil }).Flags()
	for _, a := range actions() {
		decided := 0
		for _, is := range []bool{a.remote != nil, a.noServer, a.local} {
			if is {
				decided++
			}
		}
		if decided != 1 {
			t.Errorf("action %q: %d of remote, noServer and local are set, want one", a.flag, decided)
		}
		if a.flag == "" || a.local {
			continue
		}
		where := works
		if a.noServer {
			where = refused
		}
		name := regexp.QuoteMeta(flagText(a.flag))
		if short := flags.Lookup(a.flag).Shorthand; short != "" {
			name += "|-" + short
		}
		if !regexp.MustCompile("`(" + name + ")[` ]").MatchString(where) {
			t.Errorf("docs/cli.md does not say what a server means for %s", flagText(a.flag))
		}
	}
}
