package cli

import (
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestSections finds each option in exactly one section of the help.
func TestSections(t *testing.T) {
	count := map[string]int{}
	for _, s := range new(options).sections() {
		for _, f := range s.flags() {
			count[f.name]++
		}
	}
	flags := newCommand(&options{}, func(*cobra.Command) error { return nil }).Flags()
	flags.VisitAll(func(f *pflag.Flag) {
		want := 1
		if f.Hidden { // is shown as another one
			want = 0
		}
		if count[f.Name] != want {
			t.Errorf("--%s is in %d sections, want %d", f.Name, count[f.Name], want)
		}
		delete(count, f.Name)
	})
	if len(count) > 0 {
		t.Errorf("options that do not exist: %v", count)
	}
}

// TestHelpBreaksAtBlanks: no name of an option is broken in two at the end of a line.
func TestHelpBreaksAtBlanks(t *testing.T) {
	flags := newCommand(&options{}, func(*cobra.Command) error { return nil }).Flags()
	for width := 60; width <= 120; width++ {
		for _, s := range new(options).sections() {
			for line := range strings.Lines(usages(flags, s.flags(), width)) {
				if strings.HasSuffix(strings.TrimSpace(line), "-") {
					t.Errorf("%d columns: %q", width, line)
				}
			}
		}
	}
}

// TestVerbsAreDescribed: the description of an option with a word has each of its words.
func TestVerbsAreDescribed(t *testing.T) {
	flags := newCommand(new(options), nil).Flags()
	for _, name := range []string{"list", "secret", "bundle", "key"} {
		for _, word := range verbWords(name) {
			if usage := flags.Lookup(name).Usage; !regexp.MustCompile(`\b` + word + `\b`).MatchString(usage) {
				t.Errorf("--%s: %q is not in %q", name, word, usage)
			}
		}
	}
}
